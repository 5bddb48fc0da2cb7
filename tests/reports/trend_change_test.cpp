#include "reports/trend_change.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/reports/sample_trend.h"

namespace assay {
namespace trend_change_test {

using nlohmann::json;

/// The sample's first `runs` runs, with the findings that they had.
json first_runs(size_t runs) {
  json trend = test::sample_trend();
  trend["runs"].erase(trend["runs"].begin() + static_cast<int64_t>(runs), trend["runs"].end());
  json findings = json::array();
  for (json finding : trend["findings"]) {
    json seen = json::array();
    for (const json& run : finding["runs"])
      if (run.get<size_t>() < runs) seen.push_back(run);
    finding["runs"] = seen;
    if (!seen.empty()) findings.push_back(finding);
  }
  trend["findings"] = findings;
  return trend;
}

TEST(TrendChange, NamesNewFindingsAndWhatMoved) {
  EXPECT_EQ(trend_change(first_runs(2)),
            "run 2, assay bbb against run 1, assay aaa of 2025-01-31: 1 new finding (gla.chunk/violation o), "
            "0 gone; error over bound: gla.chunk bf16 0.75 to 4");
}

TEST(TrendChange, AFindingOfBothRunsIsNeitherNewNorGone) {
  EXPECT_EQ(trend_change(first_runs(3)),
            "run 3, assay ccc against run 2, assay bbb of 2025-01-31: 1 new finding (gla.chunk/nonfinite o), "
            "0 gone; no error over bound moved by more than a tenth");
}

TEST(TrendChange, CountsWhatIsGone) {
  EXPECT_EQ(trend_change(test::sample_trend()),
            "run 4, assay ddd against run 3, assay ccc of 2025-01-31: 0 new findings, 2 gone; error over "
            "bound: gla.chunk bf16 4 to 0.5");
}

TEST(TrendChange, NamesTheLargestFourAndCountsTheOthers) {
  json trend = first_runs(2);
  for (int i = 0; i < 6; ++i) {
    const std::string kernel = "k" + std::to_string(i);
    trend["runs"][0]["ratios"].push_back({{"kernel", kernel}, {"dtype", "fp16"}, {"max_ratio", 0.01}});
    trend["runs"][1]["ratios"].push_back(
        {{"kernel", kernel}, {"dtype", "fp16"}, {"max_ratio", 0.1 * (i + 1)}});
  }
  const std::string text = trend_change(trend);
  EXPECT_NE(text.find("error over bound: k5 fp16 0.01 to 0.6; k4 fp16"), text.npos) << text;
  EXPECT_TRUE(text.ends_with("; 3 more")) << text;
}

TEST(TrendChange, OneRunHasNothingBeforeIt) {
  EXPECT_EQ(trend_change(first_runs(1)), "");
  EXPECT_EQ(trend_run_text(test::sample_trend()["runs"], 1), "run 2, assay bbb");
}

}  // namespace trend_change_test
}  // namespace assay
