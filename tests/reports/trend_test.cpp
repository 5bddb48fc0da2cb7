#include "reports/trend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reports/csv.h"
#include "reports/html.h"
#include "reports/page_text.h"
#include "tests/reports/read_tables.h"
#include "tests/reports/sample_result.h"
#include "tests/reports/schema_check.h"
#include "tests/reports/well_formed.h"

namespace assay {
namespace {

using nlohmann::json;

/// A run with the ratios (kernel, dtype, ratio) and the findings of the causes.
StoredRun run_of(const std::string& commit, std::vector<TightnessRow> rows,
                 const std::vector<std::string>& causes) {
  StoredRun stored{commit, "2025-01-31 12:00:00", {}};
  stored.run.kernels = {"gla.chunk"};
  stored.run.cases = 20;
  stored.run.tightness = std::move(rows);
  for (const std::string& cause : causes) {
    Verification v;
    v.kernel = "gla.chunk";
    v.verdict = "finding";
    v.cause = cause;
    v.replay = "assay replay of " + commit;
    stored.run.findings.push_back(v);
  }
  return stored;
}

TightnessRow row(const std::string& kernel, const std::string& dtype, double ratio) {
  TightnessRow r;
  r.kernel = kernel, r.dtype = dtype, r.max_ratio = ratio;
  return r;
}

/// A finding that comes with the second run and goes with the fourth, another in the third alone.
json sample() {
  return trend_of(
      {run_of("aaa", {row("gla.chunk", "bf16", 0.75), row("gla.chunk", "bf16", 0.5)}, {}),
       run_of("bbb", {row("gla.chunk", "bf16", 4), row("gla.chunk", "fp32", 0.25)}, {"violation o"}),
       run_of("ccc", {row("gla.chunk", "bf16", 4)}, {"violation o", "violation o", "nonfinite o"}),
       run_of("ddd", {row("gla.chunk", "bf16", 0.5)}, {})});
}

TEST(Trend, HoldsTheLargestRatioOfEachKernelAndFormatByRun) {
  const json trend = sample();
  ASSERT_EQ(trend["runs"].size(), 4u);
  EXPECT_EQ(trend["runs"][0]["ratios"],
            json::parse(R"([{"kernel":"gla.chunk","dtype":"bf16","max_ratio":0.75}])"));
  EXPECT_EQ(trend["runs"][1]["ratios"].size(), 2u);
  EXPECT_EQ(trend["runs"][2]["findings"], 3);
  EXPECT_EQ(trend["runs"][3]["commit"], "ddd");
}

TEST(Trend, AFindingIsOneByItsIdentityWithTheRunsThatHadIt) {
  const json findings = sample()["findings"];
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0]["runs"], (json{1, 2}));
  EXPECT_EQ(findings[0]["replay"], "assay replay of ccc");
  EXPECT_EQ(findings[1]["runs"], json::array({2}));
}

TEST(Trend, HoldsAgainstTheSchema) {
  std::ifstream file(ASSAY_SOURCE_DIR "/reports/schema.json");
  const SchemaCheck check(json::parse(file));
  for (const std::string& error : check.errors(sample())) ADD_FAILURE() << error;
  json broken = sample();
  broken["runs"][0].erase("commit");
  EXPECT_FALSE(check.errors(broken).empty());
}

TEST(Trend, ThePageAndTheTableCarryItsNumbers) {
  std::string page = render_html(sample()), error, words;
  page.erase(page.find(text::vega()), text::vega().size());
  int charts = 0;
  for (const test::Element& e : test::read_markup(page, true, &error)) {
    charts += e.attribute("data-chart") == "trend";
    words += e.text + ";";
  }
  EXPECT_EQ(error, "");
  EXPECT_EQ(charts, 1);
  for (const char* part : {"run 2, bbb;", "run 3, ccc;", "violation o", "pass"})
    EXPECT_NE(words.find(part), words.npos) << part;
  // Cases, passed, findings, undecided and the first ratio of the second run.
  EXPECT_EQ(test::read_page_numbers(page, "runs").at(1),
            (std::vector<std::string>{"20", "0", "1", "0", "4"}));
  const test::Rows csv = test::read_csv(render_csv(sample()));
  ASSERT_EQ(csv.size(), 6u);
  EXPECT_EQ(csv[2], (std::vector<std::string>{"bbb", "2025-01-31 12:00:00", "gla.chunk", "bf16", "4", "20",
                                              "0", "1", "0"}));
}

TEST(Trend, HostileTextsStayTexts) {
  json hostile = test::with_hostile_texts(sample(), "</script><b>\"");
  hostile["kind"] = "trend";
  EXPECT_EQ(render_html(hostile).find("</script><b>"), std::string::npos);
}

}  // namespace
}  // namespace assay
