#include "reports/finding_parts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/result/sample_result.h"

namespace assay {
namespace {

using nlohmann::json;

/// From the best place to the last one: what is taken away shows the next.
TEST(FindingParts, ThePlaceIsTheBestOneKnown) {
  json v = test::nan_verification();
  const auto where = [](const char* file) {
    return json{{"file", file}, {"line", 3}, {"ptx_line", 4}, {"function", "f"}};
  };
  v["trap"]["where"] = where("trap.cu");
  v["checks"] = {
      {"findings",
       {{{"kind", "race"}, {"check", "races"}, {"message", "m"}, {"at", {{"where", where("check.cu")}}}}}}};
  v["lines"][0]["at"]["where"] = where("suspect.cu");
  v["slice"]["chain"][0]["at"]["where"] = where("slice.cu");
  v["shadow"]["lines"][0]["where"] = where("shadow.cu");
  v["entry"] = where("entry.cu");
  const std::pair<const char*, const char*> table[] = {{"kernels/gla/chunk.cu", "origin"},
                                                       {"trap.cu", "trap"},
                                                       {"check.cu", "checks"},
                                                       {"suspect.cu", "lines"},
                                                       {"slice.cu", "slice"},
                                                       {"shadow.cu", "shadow"},
                                                       {"entry.cu", "entry"}};
  for (const auto& [file, part] : table) {
    EXPECT_EQ(place_of(v)["file"], file);
    v[part] = nullptr;
  }
  EXPECT_TRUE(place_of(v).is_null());
}

TEST(FindingParts, TheRuleIsTheBestNameKnownAndHasAText) {
  json v = test::nan_verification();
  v["cause"] = "property/causality";
  v["checks"] = {{"findings", {{{"kind", "race"}, {"check", "races"}, {"message", "m"}}}}};
  const std::pair<const char*, std::pair<const char*, json>> table[] = {
      {"mask-after-exponential", {"diagnosis", json::array()}},
      {"exp-overflow", {"origin", nullptr}},
      {"out-of-bounds", {"trap", nullptr}},
      {"race", {"checks", nullptr}},
      {"causality", {"cause", "violation/o"}}};
  for (const auto& [rule, next] : table) {
    EXPECT_EQ(rule_of(v).name, rule);
    EXPECT_FALSE(rule_of(v).text.empty()) << rule;
    EXPECT_FALSE(headline_of(v).empty()) << rule;
    v[next.first] = next.second;
  }
  EXPECT_EQ(rule_of(v).name, "violation");
  EXPECT_NE(rule_of(v).text.find("proved bound"), std::string::npos);
  v["cause"] = "wrong-class/o";
  EXPECT_NE(rule_of(v).text.find("reference is infinite"), std::string::npos);
}

TEST(FindingParts, AFormulaThatAloneIsWrongIsTheHeadline) {
  json v = test::passed_verification();
  v["formula"] = test::nan_verification()["formula"];
  EXPECT_EQ(headline_of(v),
            "3 of 5118 elements of o are wrong in exact arithmetic too: o[b=0,t=70,h=0,v=5] is -0.456, the "
            "formula gives -0.4522, 0.003852 apart where 8.69e-09 can be explained");
  v["formula"]["outputs"][0]["violation"] = 0;
  EXPECT_EQ(headline_of(v), "");
}

TEST(FindingParts, AContradictedOutputOfTheFileIsSaidToBeItsOwnAndHasNoPlaceInTheKernel) {
  json v = test::contradicted_verification();
  EXPECT_EQ(headline_of(v),
            "37 of 5120 elements of o in the inputs' file: o[b=0,t=2,h=0,v=1] is 0.375, expected "
            "0.8128, error 1234 times its bound");
  EXPECT_EQ(rule_of(v).name, "transposed");
  EXPECT_TRUE(place_of(v).is_null());
  v["diagnosis"] = json::array();
  EXPECT_EQ(rule_of(v).name, "expected");
  EXPECT_NE(rule_of(v).text.find("the inputs' file"), std::string::npos);
}

TEST(FindingParts, TheCauseIsSaidAsTheConsoleDoesWhereThereIsOne) {
  json v = test::nan_verification();
  EXPECT_EQ(cause_sentence_of(v), "cause mask-after-exponential (94 %): a masked lane overflows");
  v["diagnosis"] = json::array();
  EXPECT_EQ(cause_sentence_of(v), "");
}

TEST(FindingParts, AViolationIsSaidWithItsWorstElement) {
  json v = test::passed_verification();
  v["verdict"] = "finding", v["cause"] = "violation/final_state", v["outputs"][1]["violation"] = 3;
  EXPECT_NE(headline_of(v).find("3 of"), std::string::npos) << headline_of(v);
  EXPECT_NE(headline_of(v).find("final_state[b=0,t=17,h=1,v=3]"), std::string::npos) << headline_of(v);
}

}  // namespace
}  // namespace assay
