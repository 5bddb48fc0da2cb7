#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/html_sections.h"
#include "tests/reports/page_elements.h"
#include "tests/reports/read_tables.h"
#include "tests/reports/sample_trend.h"

namespace assay {
namespace html_trend_test {

using nlohmann::json;
using test::elements;
using test::Rows;

/// The rows below the heading with the id.
Rows rows_below(const std::string& page, const std::string& id) {
  const size_t from = page.find("<h2 id=\"" + id), to = page.find("<h2", from + 1);
  return test::read_page_rows(std::string_view(page).substr(from, to - from));
}

TEST(HtmlTrend, OfEveryFindingItSaysBetweenWhichRunsItWasSeen) {
  const std::string page = html::trend_sections(test::sample_trend());
  EXPECT_EQ(rows_below(page, "findings"),
            (Rows{{"kernel", "finding", "first seen", "last seen", "runs", "replay"},
                  {"gla.chunk", "gla.chunk/violation o", "run 2, assay bbb", "run 3, assay ccc", "2",
                   "assay replay of ccc"},
                  {"gla.chunk", "gla.chunk/nonfinite o", "run 3, assay ccc", "run 3, assay ccc", "1",
                   "assay replay of ccc"}}));
}

TEST(HtmlTrend, OfEveryRunItSaysItsCountsAndTheLargestRatioByKernelAndFormat) {
  const Rows rows = rows_below(html::trend_sections(test::sample_trend()), "runs");
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[1], (Rows::value_type{"run 1, assay aaa", "2025-01-31 12:00:00", "20", "0", "0", "0",
                                       "gla.chunk bf16 0.75"}));
  EXPECT_EQ(rows[2], (Rows::value_type{"run 2, assay bbb", "2025-01-31 12:00:00", "20", "0", "1", "0",
                                       "gla.chunk bf16 4; gla.chunk fp32 0.25"}));
  EXPECT_EQ(rows[3][4], "3");
}

TEST(HtmlTrend, OnlyRunsWithFindingsAreMarked) {
  std::vector<std::string> marked;
  bool bad = false;
  for (const test::Element& e : elements(html::trend_sections(test::sample_trend()))) {
    if (bad) marked.push_back(e.attribute("value"));
    bad = e.attribute("class") == "number bad";
  }
  EXPECT_EQ(marked, (std::vector<std::string>{"1", "3"}));
}

TEST(HtmlTrend, EveryKernelHasOneChartAndNoFindingIsSaid) {
  json trend = test::sample_trend();
  trend["findings"] = json::array();
  trend["runs"][0]["ratios"].push_back({{"kernel", "gsa.chunk"}, {"dtype", "fp16"}, {"max_ratio", 0.5}});
  const std::string page = html::trend_sections(trend);
  std::vector<std::string> charts;
  for (const test::Element& e : elements(page))
    if (e.attribute("data-chart") == "trend") charts.push_back(e.attribute("data-kernel"));
  EXPECT_EQ(charts, (std::vector<std::string>{"gla.chunk", "gsa.chunk"}));
  EXPECT_NE(page.find("<p>No run had a finding.</p>"), page.npos);
}

}  // namespace html_trend_test
}  // namespace assay
