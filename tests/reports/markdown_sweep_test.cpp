#include "reports/markdown_sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "reports/markup.h"
#include "reports/sweep_answers.h"
#include "tests/reports/read_tables.h"
#include "tests/result/sample_sweep.h"

namespace assay {
namespace {

std::set<std::string> names_of(const IllustratedText& text) {
  std::set<std::string> names;
  for (const auto& [name, svg] : text.pictures) names.insert(name);
  return names;
}

TEST(MarkdownSweep, HoldsEveryAnswerAndARowPerCell) {
  const Sweep sweep = test::full_sweep();
  const std::string text = sweep_markdown(to_json(sweep)).markdown;
  ASSERT_EQ(answers(sweep).size(), 5u);
  for (const Answer& answer : answers(sweep)) {
    EXPECT_NE(text.find("## " + answer.question + "\n"), text.npos);
    for (const std::string& sentence : answer.sentences)
      EXPECT_NE(text.find("- " + escape_markdown(sentence) + "\n"), text.npos) << sentence;
    if (answer.table.rows.empty()) continue;
    const test::Rows shown =
        test::read_markdown_table(text.substr(text.find("## " + answer.question)),
                                  "| " + escape_markdown(answer.table.head.front()) + " |");
    ASSERT_EQ(shown.size(), answer.table.rows.size()) << answer.question;
    for (size_t i = 0; i < shown.size(); ++i)
      for (size_t j = 0; j < shown[i].size(); ++j)
        EXPECT_EQ(answer.table.rows[i][j], shown[i][j]) << answer.question;
  }
  const test::Rows rows = test::read_markdown_table(text, "| kernel |");
  ASSERT_EQ(rows.size(), sweep.cells.size());
  EXPECT_EQ(rows[1][1], "length=64 decay=none dtype=bf16");
  EXPECT_EQ(rows[23][3], "refused");
  EXPECT_EQ(rows[23][4], "-");  // no run, no number
}

TEST(MarkdownSweep, EveryPictureIsNamedInTheTextAndEveryNameHasItsPicture) {
  const IllustratedText text = sweep_markdown(to_json(test::full_sweep()));
  std::set<std::string> linked;
  for (size_t at = 0; (at = text.markdown.find("](", at)) != std::string::npos; ++at)
    linked.insert(text.markdown.substr(at + 2, text.markdown.find(')', at) - at - 2));
  EXPECT_EQ(linked, names_of(text));
  EXPECT_EQ(text.pictures.size(), 2u + 4u);  // error of two formats, ratio of two kernels in each
}

TEST(MarkdownSweep, PicturesCarryTheCellsNumbers) {
  const Sweep sweep = test::full_sweep();
  std::string pictures;
  for (const auto& [name, svg] : sweep_markdown(to_json(sweep)).pictures) pictures += svg;
  for (const SweepCell& cell : sweep.cells) {
    if (cell.samples.empty()) continue;
    for (const double number :
         {cell.over_seeds.max_error, cell.over_seeds.max_bound, cell.over_seeds.max_ratio}) {
      const std::string exact = exact_decimal(number);
      EXPECT_TRUE(pictures.find(" " + exact + "</title>") != pictures.npos ||
                  pictures.find(">" + exact + "</title>") != pictures.npos)
          << cell.token << " " << exact;
    }
  }
}

TEST(MarkdownSweep, PicturesOfKernelsOfAnyNameHaveNamesThatAreFilesAndDiffer) {
  Sweep sweep = test::sweep_of(
      {"../a b", "..-a-b", "gla.chunk%m1"}, {{"length", {"64", "128"}}}, 1,
      [](SweepCell& cell) { cell.token = "gla.chunk/B1/T64/H1/K64/V64/bf16/g-fp32/none/s1/h0"; });
  const IllustratedText text = sweep_markdown(to_json(sweep));
  const std::set<std::string> names = names_of(text);
  EXPECT_EQ(names.size(), text.pictures.size());
  for (const std::string& name : names)
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-"), name.npos) << name;
}

}  // namespace
}  // namespace assay
