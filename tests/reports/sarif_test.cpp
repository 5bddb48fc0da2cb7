#include "reports/sarif.h"

#include <gtest/gtest.h>

#include "src/numerics/bad_input.h"
#include "tests/reports/sample_result.h"

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
  EXPECT_NE(result["message"]["text"].get<std::string>().find("assay replay gla.chunk/"), std::string::npos);
}

TEST(Sarif, WithoutAnOriginTheTrapGivesTheLineAndWithoutBothThereIsNone) {
  json v = test::nan_verification();
  v["origin"] = nullptr;
  v["diagnosis"] = json::array();
  json result = json::parse(render_sarif(v))["runs"][0]["results"][0];
  EXPECT_EQ(result["ruleId"], "out-of-bounds");
  EXPECT_EQ(result["locations"][0]["physicalLocation"]["region"]["startLine"], 77);
  v["trap"] = nullptr;
  result = json::parse(render_sarif(v))["runs"][0]["results"][0];
  EXPECT_EQ(result["ruleId"], "finding");
  EXPECT_TRUE(result["locations"].empty());
}

TEST(Sarif, InvalidTextsStillMakeADocument) {
  EXPECT_NO_THROW(json::parse(render_sarif(test::with_hostile_texts(test::fuzz_run(1), "\xff\""))));
}

TEST(Sarif, RefusesWhatIsNoResult) {
  EXPECT_THROW(render_sarif(json::array()), BadInput);
}

}  // namespace
}  // namespace assay
