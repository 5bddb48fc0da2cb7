#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/html_sections.h"
#include "tests/reports/page_elements.h"
#include "tests/reports/read_tables.h"
#include "tests/result/sample_result.h"

namespace assay {
namespace html_verification_test {

using nlohmann::json;
using test::own_text;
using Row = std::vector<std::string>;

std::string page_of(const json& verification) {
  return html::verification_sections(verification, "", 2);
}
bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

TEST(HtmlVerification, SaysWhereANanWasBorn) {
  const std::string page = own_text(test::nan_verification());
  for (const char* text : {"exp-overflow", "kernels/gla/chunk.cu:142", "g[b=0,t=16,h=0,k=3]", "-88.7",
                           "mask-after-exponential", "0x7fc0", "out-of-bounds", "same-bits-twice",
                           "assay replay gla.chunk/B1/T80/H2/K64/V32/bf16/g-fp32/ladder:8/s42/h0",
                           "weight = exp2f(x) * (j &lt;= i);"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
}

TEST(HtmlVerification, SaysWhatStandsBehindAnElementWhichLinesRoundAndHowNearTheEdgesAre) {
  const std::string page = own_text(test::nan_verification());
  for (const char* text :
       {"Behind <code>o[b=0,t=16,h=0,v=3]</code>", "3 of 12 blocks", "sum += a &lt; b;",
        "Every distinct origin", "Which roundings made them", "within 1.5 of overflow (threshold 128)"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
  const std::string clean = own_text(test::passed_verification());
  for (const char* text : {"Behind <code>", "Every distinct origin", "Which roundings made them"})
    EXPECT_EQ(clean.find(text), std::string::npos) << text;
}

TEST(HtmlVerification, TheFirstWordsOfAPassAreThatEveryElementIsWithinItsBoundAndNoCallout) {
  const std::string page = page_of(test::passed_verification());
  EXPECT_TRUE(page.starts_with("<p class=\"lead\">Every element lies within the proved bound.</p>")) << page;
  EXPECT_FALSE(holds(page, "callout"));
}

TEST(HtmlVerification, WhatTheFormulaAloneDecidedIsNotSaidToBeWithinABound) {
  json v = test::passed_verification();
  v["outputs"][0]["by_formula"] = v["outputs"][0]["elements"];
  const std::string page = page_of(v);
  EXPECT_TRUE(
      page.starts_with("<p class=\"lead\">Every element lies within the proved bound, or where none is "
                       "finite is right by its formula.</p>"))
      << page;
  EXPECT_TRUE(holds(page, "have no finite bound: the formula alone decides them.")) << page;
}

TEST(HtmlVerification, AFindingBeginsWithItsOriginTheLikeliestCauseAndTheLine) {
  json v = test::nan_verification();
  v["diagnosis"].push_back(v["diagnosis"][0]);
  v["diagnosis"][1]["cause"] = "less-likely";
  v["also"] = {{{"sentence", "o is a < b"}, {"replay", "assay replay other"}}};
  const std::string page = page_of(v), lead = page.substr(0, page.find("</div>"));
  EXPECT_EQ(lead,
            "<div class=\"callout\"><p class=\"lead\">ex2 at kernels/gla/chunk.cu:142 got 130.25 because "
            "g[b=0,t=16,h=0,k=3] = -90.5</p>\n"
            "<p><b>mask-after-exponential</b>: a masked lane overflows</p>\n"
            "<p><code>kernels/gla/chunk.cu:142</code></p>\n"
            "<pre><code>weight = exp2f(x) * (j &lt;= i);</code></pre>\n"
            "<p>The same defect: o is a &lt; b (<code>assay replay other</code>)</p>\n");
}

TEST(HtmlVerification, WithoutAnOriginTheLineIsTheFirstSuspectsAndUndecidedIsNoAlarm) {
  json v = test::nan_verification();
  v["origin"] = nullptr, v["trap"] = nullptr, v["verdict"] = "undecided";
  const std::string page = page_of(v), lead = page.substr(0, page.find("</div>"));
  EXPECT_TRUE(lead.starts_with("<div class=\"callout note\">")) << lead;
  EXPECT_TRUE(holds(lead, "kernels/gla/chunk.cu:151")) << lead;
  EXPECT_TRUE(holds(lead, "s = fused(keep, s, x);")) << lead;
  v["trap"] = test::nan_verification()["trap"];
  const std::string trapped = page_of(v);
  EXPECT_TRUE(holds(trapped, "kernels/gla/chunk.cu:77</code></p>\n</div>"))
      << "no other line's text below it";
}

TEST(HtmlVerification, OfTheGpuItSaysWhetherBitsDifferAndNothingWhereItDidNotRun) {
  json v = test::passed_verification();
  EXPECT_FALSE(holds(page_of(v), "GPU against machine"));
  v["bits_differ"] = 0;
  EXPECT_TRUE(holds(page_of(v), "<dt>GPU against machine</dt><dd><span class=\"good\">the same bits</span>"));
  v["bits_differ"] = 12;
  EXPECT_TRUE(holds(page_of(v), "<span class=\"bad\">12 elements differ</span>"));
}

TEST(HtmlVerification, ParametersOfTheCaseAreExactAndThoseThatAreEmptyAreLeftOut) {
  const auto rows = test::read_page_rows(page_of(test::passed_verification()));
  const auto value = [&](const std::string& name) {
    for (const Row& row : rows)
      if (row.size() == 2 && row[0] == name) return row[1];
    return std::string("no row");
  };
  EXPECT_EQ(value("seed"), "18446744073709551615");
  EXPECT_EQ(value("cu_seqlens"), "0, 15, 80");
  EXPECT_EQ(value("initial_state"), "no");
  for (const char* absent : {"scale", "layout", "without", "kernel"})
    EXPECT_EQ(value(absent), "no row") << absent;
}

TEST(HtmlVerification, AVerdictHasASignThatNeedsNoColour) {
  EXPECT_EQ(html::verdict_badge("pass"), "<span class=\"badge pass\">\u2713 pass</span>");
  EXPECT_EQ(html::verdict_badge("finding"), "<span class=\"badge finding\">\u2717 finding</span>");
  EXPECT_EQ(html::verdict_badge("undecided"), "<span class=\"badge undecided\">? undecided</span>");
}

TEST(HtmlVerification, WithoutACommandNothingIsToBeCopied) {
  EXPECT_EQ(html::replay_line(""), "");
  EXPECT_TRUE(holds(html::replay_line("assay replay a<b"), "<code>assay replay a&lt;b</code><button "));
}

}  // namespace html_verification_test
}  // namespace assay
