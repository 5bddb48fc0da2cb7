#include "reports/markdown_trend.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/reports/read_tables.h"
#include "tests/reports/sample_trend.h"
#include "tests/reports/well_formed.h"
#include "tests/result/sample_result.h"

namespace assay {
namespace {

using nlohmann::json;

TEST(MarkdownTrend, FindingsStandWithTheRunsThatHadThem) {
  const test::Rows rows =
      test::read_markdown_table(trend_markdown(test::sample_trend()).markdown, "| kernel |");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0][2], "run 2, assay bbb");
  EXPECT_EQ(rows[0][3], "run 3, assay ccc");
  EXPECT_EQ(rows[0][4], "`assay replay of ccc`");
  EXPECT_EQ(rows[0][5], "2");
  EXPECT_EQ(rows[1][2], rows[1][3]);
}

TEST(MarkdownTrend, WithoutFindingsItSaysSo) {
  json trend = test::sample_trend();
  trend["findings"] = json::array();
  EXPECT_NE(trend_markdown(trend).markdown.find("No run had a finding."), std::string::npos);
}

/// A line for each format over the runs that have it, and the bound; commits name the places.
TEST(MarkdownTrend, EachKernelHasAPictureOfItsRatiosByRun) {
  const IllustratedText text = trend_markdown(test::sample_trend());
  ASSERT_EQ(text.pictures.size(), 1u);
  EXPECT_EQ(text.pictures[0].first, "1_trend_gla.chunk.svg");
  std::string error;
  std::set<std::string> words;
  int paths = 0;
  for (const test::Element& e : test::read_markup(text.pictures[0].second, false, &error)) {
    std::string word = e.text;
    std::erase(word, '\n');
    words.insert(word);
    paths += e.name == "path";
  }
  EXPECT_EQ(error, "");
  EXPECT_EQ(paths, 3);
  for (const char* word : {"bf16: run 1, 0.75", "bf16: run 2, 4", "bf16: run 4, 0.5", "fp32: run 2, 0.25",
                           "bound: run 4, 1", "assay aaa", "assay bbb", "assay ccc", "assay ddd"})
    EXPECT_TRUE(words.count(word)) << word;
}

TEST(MarkdownTrend, WhatIsNoNumberIsInTheTableOnly) {
  json trend = test::sample_trend();
  trend["runs"][0]["ratios"][0]["max_ratio"] = "inf";
  const IllustratedText text = trend_markdown(trend);
  EXPECT_EQ(text.pictures[0].second.find("run 1, 0.75"), std::string::npos);
  EXPECT_EQ(text.pictures[0].second.find("bf16: run 1"), std::string::npos);
  EXPECT_EQ(test::read_markdown_table(text.markdown, "| run |").at(0).at(2), "gla.chunk bf16 inf");
}

TEST(MarkdownTrend, HostileTextsStayTexts) {
  json hostile = test::with_hostile_texts(test::sample_trend(), "|\n<b>](x)");
  hostile["kind"] = "trend";
  const IllustratedText text = trend_markdown(hostile);
  EXPECT_EQ(test::read_markdown_table(text.markdown, "| run |").size(), 4u);
  for (const auto& [name, svg] : text.pictures) {
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-"), name.npos) << name;
    EXPECT_EQ(svg.find("<b>"), svg.npos);
  }
}

}  // namespace
}  // namespace assay
