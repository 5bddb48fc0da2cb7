#include "reports/sarif.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "tests/reports/sarif_check.h"
#include "tests/result/sample_result.h"

namespace assay {
namespace {

using nlohmann::json;

TEST(Sarif, APassHasNoResult) {
  const json document = json::parse(render_sarif(test::passed_verification()));
  EXPECT_EQ(document["version"], "2.1.0");
  EXPECT_TRUE(document["runs"][0]["results"].empty());
}

TEST(Sarif, AFindingStandsAtTheLineOfItsOrigin) {
  const json run = json::parse(render_sarif(test::fuzz_run(2)))["runs"][0];
  ASSERT_EQ(run["results"].size(), 2u);
  ASSERT_EQ(run["tool"]["driver"]["rules"].size(), 1u);
  const json& result = run["results"][0];
  EXPECT_EQ(result["ruleId"], "mask-after-exponential");
  EXPECT_EQ(result["level"], "error");
  const json& place = result["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"]["uri"], "kernels/gla/chunk.cu");
  EXPECT_EQ(place["region"]["startLine"], 142);
  EXPECT_NE(
      result["message"]["text"].get<std::string>().find(
          "cause mask-after-exponential (94 %): a masked lane overflows. Replay: assay replay gla.chunk/"),
      std::string::npos);
}

TEST(Sarif, WithoutAnOriginTheTrapGivesTheLineAndWithoutBothThereIsNone) {
  json v = test::nan_verification();
  v["origin"] = nullptr;
  v["diagnosis"] = json::array();
  json result = json::parse(render_sarif(v))["runs"][0]["results"][0];
  EXPECT_EQ(result["ruleId"], "out-of-bounds");
  EXPECT_EQ(result["locations"][0]["physicalLocation"]["region"]["startLine"], 77);
  v["trap"] = nullptr;
  v["slice"] = nullptr;
  v["lines"] = json::array();
  v["shadow"] = nullptr;
  v["properties_failed"] = json::array();
  v["cause"] = "violation/o";
  result = json::parse(render_sarif(v))["runs"][0]["results"][0];
  EXPECT_EQ(result["ruleId"], "violation");
  EXPECT_TRUE(result["locations"].empty());
  v["entry"] = {{"file", "kernels/gla/chunk.cu"}, {"line", 21}, {"ptx_line", 40}, {"function", "gla"}};
  result = json::parse(render_sarif(v))["runs"][0]["results"][0];
  EXPECT_EQ(result["locations"][0]["physicalLocation"]["region"]["startLine"], 21);
}

TEST(Sarif, EveryDocumentHoldsAgainstTheStandard) {
  json known = test::fuzz_run(2);
  known["findings"][0]["known"] = true;
  known["findings"][1]["known"] = false;
  json undecided = test::nan_verification();
  undecided["verdict"] = "undecided";
  json absolute = test::nan_verification();
  absolute["origin"]["where"]["file"] = "/home/some one/kernel:1#?%.cu";
  for (const json& sample :
       {test::passed_verification(), test::nan_verification(), test::fuzz_run(0), test::fuzz_run(3), known,
        undecided, absolute, test::with_hostile_texts(test::fuzz_run(1), "\xff\"<&%")}) {
    for (const std::string& error : test::sarif_errors(json::parse(render_sarif(sample))))
      ADD_FAILURE() << error;
  }
}

TEST(Sarif, TheCheckOfTheStandardSeesWhatIsWrong) {
  const auto broken = [](auto change) {
    json log = json::parse(render_sarif(test::fuzz_run(2)));
    change(log, log["runs"][0], log["runs"][0]["results"][0]);
    return !test::sarif_errors(log).empty();
  };
  EXPECT_FALSE(broken([](auto&, auto&, auto&) {}));
  EXPECT_TRUE(broken([](auto& log, auto&, auto&) { log["version"] = "2.0.0"; }));
  EXPECT_TRUE(broken([](auto& log, auto&, auto&) { log["more"] = 1; }));
  EXPECT_TRUE(broken([](auto&, auto& run, auto&) { run["tool"]["driver"].erase("name"); }));
  EXPECT_TRUE(broken([](auto&, auto& run, auto&) { run.erase("originalUriBaseIds"); }));
  EXPECT_TRUE(broken([](auto&, auto&, auto& result) { result["ruleIndex"] = 7; }));
  EXPECT_TRUE(broken([](auto&, auto&, auto& result) { result["level"] = "fatal"; }));
  EXPECT_TRUE(broken([](auto&, auto&, auto& result) { result.erase("message"); }));
  const auto physical = [](auto& result) -> json& { return result["locations"][0]["physicalLocation"]; };
  EXPECT_TRUE(broken([&](auto&, auto&, auto& r) { physical(r)["region"]["startLine"] = 0; }));
  EXPECT_TRUE(broken([&](auto&, auto&, auto& r) { physical(r)["artifactLocation"]["uri"] = "a b"; }));
  EXPECT_TRUE(broken([&](auto&, auto&, auto& r) { physical(r)["artifactLocation"]["uri"] = "file:///x"; }));
}

TEST(Sarif, TheFingerprintDependsOnTheIdentityAlone) {
  json v = test::nan_verification();
  v["identity"] = "gla.chunk/nonfinite/o/exp-overflow/kernels/gla/chunk.cu `x`";
  const auto prints = [](const json& document) {
    return json::parse(render_sarif(document))["runs"][0]["results"][0]["partialFingerprints"];
  };
  const json first = prints(v);
  v["token"] = "gla.chunk/B2/T99/H2/K64/V32/bf16/g-fp32/ladder:8/s43/h0";
  v["origin"]["where"]["line"] = 150;
  EXPECT_EQ(prints(v), first);
  v["identity"] = "gla.chunk/nonfinite/dq/exp-overflow/kernels/gla/chunk.cu `x`";
  EXPECT_NE(prints(v), first);
}

TEST(Sarif, TheWayFromTheOriginToTheOutputCanBeWalked) {
  const json result = json::parse(render_sarif(test::nan_verification()))["runs"][0]["results"][0];
  const json& steps = result["codeFlows"][0]["threadFlows"][0]["locations"];
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0]["location"]["physicalLocation"]["region"]["snippet"]["text"],
            "weight = exp2f(x) * (j <= i);");
}

TEST(Sarif, PtxWithoutSourceLinesIsPointedAtItself) {
  json v = test::nan_verification();
  v["origin"]["where"] = {{"file", ""}, {"line", 0}, {"ptx_line", 77}, {"function", "f"}};
  v["trap"] = nullptr;
  v["slice"] = nullptr;
  v["shadow"] = nullptr;
  v["entry"] = {{"file", "mine/f.ptx"}, {"line", 12}, {"ptx_line", 12}, {"function", "f"}};
  const json place =
      json::parse(render_sarif(v))["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"]["uri"], "mine/f.ptx");
  EXPECT_EQ(place["region"]["startLine"], 77);
}

TEST(Sarif, InvalidTextsStillMakeADocument) {
  EXPECT_NO_THROW(json::parse(render_sarif(test::with_hostile_texts(test::fuzz_run(1), "\xff\""))));
}

TEST(Sarif, RefusesWhatIsNoResult) {
  EXPECT_THROW(render_sarif(json::array()), BadInput);
}

}  // namespace
}  // namespace assay
