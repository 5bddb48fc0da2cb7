#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/html.h"
#include "reports/html_sections.h"
#include "tests/reports/page_elements.h"
#include "tests/reports/read_tables.h"
#include "tests/result/sample_result.h"

namespace assay {
namespace html_fuzz_test {

using nlohmann::json;
using test::elements;
using Row = std::vector<std::string>;

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

/// The first row that begins so.
Row row_of(const json& run, const Row& head) {
  for (const Row& row : test::read_page_rows(html::fuzz_sections(run)))
    if (row.size() >= head.size() && std::equal(head.begin(), head.end(), row.begin())) return row;
  return {};
}

TEST(HtmlFuzz, ALongFieldIsFoldedAndKeepsItsLargestAndItsNonFiniteValues) {
  json sample = test::passed_verification(43884);
  json& values = sample["outputs"][0]["fields"][0]["max_ratio"];
  values[30001] = 7.5;
  values[43883] = "inf";
  const json field = html::chart_data(sample)["outputs"][0]["fields"][0];
  const int64_t per = field["elements_per_point"];
  ASSERT_LE(field["max_ratio"].size(), static_cast<size_t>(html::kPointsPerField));
  ASSERT_EQ(field["max_ratio"].size(), static_cast<size_t>((43884 + per - 1) / per));
  for (size_t point = 0; point < field["max_ratio"].size(); ++point) {
    double largest = 0;
    for (size_t i = point * per; i < std::min<size_t>((point + 1) * per, 43884); ++i) {
      if (values[i].is_number()) largest = std::max(largest, values[i].get<double>());
    }
    const bool last = point == field["max_ratio"].size() - 1;
    EXPECT_EQ(field["max_ratio"][point], last ? json("inf") : json(largest));
  }
}

TEST(HtmlFuzz, ListsEveryFindingEvenWhereItIsNotShownInFull) {
  const json run = test::fuzz_run(html::kFindingsInFull + 7);
  int rows = 0, in_full = 0;
  for (const test::Element& element : elements(test::own_text(run))) {
    if (element.name == "code" && element.text.starts_with("assay replay ")) ++rows;
    if (element.attribute("id").starts_with("finding-")) ++in_full;
  }
  EXPECT_EQ(in_full, html::kFindingsInFull);
  EXPECT_EQ(rows, html::kFindingsInFull + 7 + html::kFindingsInFull);
}

/// The words of the tiles of a page.
std::string tiles_of(const json& run) {
  const std::string page = html::fuzz_sections(run);
  const size_t from = page.find("<dl class=\"tiles\">");
  std::string words;
  bool in_tag = false;
  for (const char c : page.substr(from, page.find("</dl>", from) - from)) {
    in_tag = c == '<' || (in_tag && c != '>');
    if (!in_tag && c != '\n' && (c != '>' || !words.ends_with(' '))) words += c == '>' ? ' ' : c;
  }
  return words;
}

TEST(HtmlFuzz, WhatIsKnownOfABaselineIsToldApartAndIsNotRed) {
  json run = test::fuzz_run(2);
  EXPECT_TRUE(holds(tiles_of(run), "findings 2 ")) << tiles_of(run);
  run["baseline"] = {{"source", "b.json"},
                     {"gone",
                      {{{"kernel", "gla.chunk"},
                        {"cause", "hang"},
                        {"token", "t"},
                        {"outcome", "pass"},
                        {"replay", "assay replay t --ptx k.ptx"}}}}};
  run["findings"][0]["known"] = true, run["findings"][1]["known"] = false;
  EXPECT_TRUE(holds(tiles_of(run), "new findings 1 known 1 gone 1 ")) << tiles_of(run);
  EXPECT_TRUE(holds(html::fuzz_sections(run), "assay replay t --ptx k.ptx"));
  EXPECT_TRUE(holds(render_html(run), "badge finding"));
  run["findings"][1]["known"] = true;
  EXPECT_TRUE(holds(render_html(run), "<span class=\"badge known\">? known</span></h1>"));
}

TEST(HtmlFuzz, OfAKernelTheWorstIsThatOfItsOwnRowsThatWereDecided) {
  json run = test::fuzz_run(2);
  run["coverage"].push_back({{"feature", "kernel"}, {"value", "gla.chunk"}, {"cases", 700}});
  run["coverage"].push_back({{"feature", "shape"}, {"value", "gla.chunk"}, {"cases", 1}});
  json& rows = run["tightness"];
  rows[1]["max_ratio"] = 0.75;                         // gla.chunk, "reset"
  rows[0]["cases"] = 0, rows[0]["max_ratio"] = "inf";  // nothing was decided in it
  rows[2]["max_ratio"] = 3.5;                          // of the other kernel
  EXPECT_EQ(row_of(run, {"gla.chunk", "700"}),
            (Row{"gla.chunk", "700", "0.75", "0.75", "", "o bf16, decay reset, T <= 64", "4", "2"}));
  rows[3]["max_ratio"] = "nan";
  EXPECT_EQ(row_of(run, {"gla.fused_recurrent", "-"}),
            (Row{"gla.fused_recurrent", "-", "nan", "nan", "", "o bf16, decay reset, T <= 64", "4", "0"}));
  EXPECT_EQ(row_of(run, {"gla.chunk", "o", "bf16", "none"}),
            (Row{"gla.chunk", "o", "bf16", "none", "T <= 64", "0", "2", "-", "-", "-"}));
}

TEST(HtmlFuzz, ARunThatIsNoPassSaysWhyFirst) {
  json run = test::fuzz_run(0);
  EXPECT_FALSE(holds(html::fuzz_sections(run), "Not a pass"));
  run["too_few"] = {{{"kernel", "gla.chunk"}, {"cases", 3}}}, run["min_cases"] = 10;
  EXPECT_TRUE(html::fuzz_sections(run).starts_with(
      "<div class=\"callout\"><p class=\"lead\">Not a pass: fewer than 10 cases judged of gla.chunk 3</p>"));
  run["ended_early"] = "out of <memory>";
  EXPECT_TRUE(holds(html::fuzz_sections(run), "Not a pass: the run ended early: out of &lt;memory&gt;<"));
}

TEST(HtmlFuzz, ASingleFindingStandsOpenAndAmongSeveralTheReaderChooses) {
  for (const int findings : {1, 2}) {
    int open = 0;
    for (const test::Element& element : elements(html::fuzz_sections(test::fuzz_run(findings))))
      open += element.attribute("id").starts_with("finding-") &&
              std::any_of(element.attributes.begin(), element.attributes.end(),
                          [](const auto& attribute) { return attribute.first == "open"; });
    EXPECT_EQ(open, findings == 1);
  }
}

TEST(HtmlFuzz, WhatIsKnownAndWhatFailedIsMarkedAndNothingElse) {
  json run = test::fuzz_run(2);
  run["findings"][1]["known"] = true;
  const auto rows = test::read_page_rows(html::fuzz_sections(run));
  const auto what = [&](const std::string& number) {
    for (const Row& row : rows)
      if (row.size() == 5 && row[0] == number) return row[3];
    return std::string();
  };
  EXPECT_FALSE(holds(what("1"), "(known)"));
  EXPECT_TRUE(holds(what("2"), "(known)")) << what("2");
  run["kernel_properties"][0]["failed"] = 2;
  const std::string page = html::fuzz_sections(run);
  EXPECT_TRUE(holds(page,
                    "<td class=\"number bad\"><data value=\"2\">2</data></td></tr>\n<tr><th scope=\"row\">"
                    "<code>gla.fused_recurrent</code></th><td>within-bound</td><td class=\"number\">"
                    "<data value=\"600\">600</data></td><td class=\"number\"><data value=\"0\">0</data>"));
}

TEST(HtmlFuzz, CoverageIsAShareOfAllCases) {
  EXPECT_EQ(row_of(test::fuzz_run(0), {"bf16"}), (Row{"bf16", "300", "25.0 %", ""}));
  EXPECT_EQ(row_of(test::fuzz_run(0), {"K != V"}), (Row{"K != V", "543", "45.2 %", ""}));
  EXPECT_EQ(row_of(test::fuzz_run(0), {"gla.chunk", "branch sides"}),
            (Row{"gla.chunk", "branch sides", "811", "840"}));
}

}  // namespace html_fuzz_test
}  // namespace assay
