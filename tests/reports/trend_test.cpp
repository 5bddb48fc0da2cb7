#include "src/result/trend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reports/csv.h"
#include "reports/html.h"
#include "reports/page_text.h"
#include "tests/reports/read_tables.h"
#include "tests/reports/sample_trend.h"
#include "tests/reports/well_formed.h"
#include "tests/result/sample_result.h"
#include "tests/result/schema_check.h"

namespace assay {
namespace {

using nlohmann::json;

TEST(Trend, HoldsTheLargestRatioOfEachKernelAndFormatByRun) {
  const json trend = test::sample_trend();
  ASSERT_EQ(trend["runs"].size(), 4u);
  EXPECT_EQ(trend["runs"][0]["ratios"],
            json::parse(R"([{"kernel":"gla.chunk","dtype":"bf16","max_ratio":0.75}])"));
  EXPECT_EQ(trend["runs"][1]["ratios"].size(), 2u);
  EXPECT_EQ(trend["runs"][2]["findings"], 3);
  EXPECT_EQ(trend["runs"][3]["commit"], "assay ddd");
}

TEST(Trend, AFindingIsOneByItsIdentityWithTheRunsThatHadIt) {
  const json findings = test::sample_trend()["findings"];
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0]["runs"], (json{1, 2}));
  EXPECT_EQ(findings[0]["replay"], "assay replay of ccc");
  EXPECT_EQ(findings[1]["runs"], json::array({2}));
}

TEST(Trend, HoldsAgainstTheSchema) {
  std::ifstream file(ASSAY_SOURCE_DIR "/reports/schema.json");
  const SchemaCheck check(json::parse(file));
  for (const std::string& error : check.errors(test::sample_trend())) ADD_FAILURE() << error;
  json broken = test::sample_trend();
  broken["runs"][0].erase("commit");
  EXPECT_FALSE(check.errors(broken).empty());
}

TEST(Trend, ThePageAndTheTableCarryItsNumbers) {
  std::string page = render_html(test::sample_trend()), error, words;
  page.erase(page.find(text::vega()), text::vega().size());
  int charts = 0;
  for (const test::Element& e : test::read_markup(page, true, &error)) {
    charts += e.attribute("data-chart") == "trend";
    words += e.text + ";";
  }
  EXPECT_EQ(error, "");
  EXPECT_EQ(charts, 1);
  for (const char* part : {"run 2, assay bbb;", "run 3, assay ccc;", "violation o", "pass"})
    EXPECT_NE(words.find(part), words.npos) << part;
  // Cases, passed, findings, undecided and the first ratio of the second run.
  EXPECT_EQ(test::read_page_numbers(page, "runs").at(1),
            (std::vector<std::string>{"20", "0", "1", "0", "4"}));
  const test::Rows csv = test::read_csv(render_csv(test::sample_trend()));
  ASSERT_EQ(csv.size(), 6u);
  EXPECT_EQ(csv[2], (std::vector<std::string>{"assay bbb", "2025-01-31 12:00:00", "gla.chunk", "bf16", "4",
                                              "20", "0", "1", "0"}));
}

TEST(Trend, HostileTextsStayTexts) {
  json hostile = test::with_hostile_texts(test::sample_trend(), "</script><b>\"");
  hostile["kind"] = "trend";
  EXPECT_EQ(render_html(hostile).find("</script><b>"), std::string::npos);
}

}  // namespace
}  // namespace assay
