#include "reports/print_sweep.h"

#include <gtest/gtest.h>

#include <sstream>

#include "reports/sweep_answers.h"
#include "tests/reports/console_text.h"
#include "tests/result/sample_sweep.h"

namespace assay {
namespace print_sweep_test {

std::string text_of(const Sweep& sweep) {
  return test::printed([&](const Console& console) { print_sweep(console, sweep); });
}

/// The words of the first line that begins with these words.
std::vector<std::string> words_of(const std::string& text, const std::string& begin) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> found;
    std::string all;
    for (std::string word; words >> word;) found.push_back(word), all += word + " ";
    if (all.starts_with(begin + " ")) return found;
  }
  return {};
}
using Words = std::vector<std::string>;

TEST(PrintSweep, TheLongestDimensionGoesAcrossWithTheLargestErrorOverTheSeeds) {
  const Sweep sweep = test::sweep_of(
      {"gla.chunk", "gla.fused_recurrent"}, {{"decay", {"mild", "strong"}}, {"length", {"64", "128", "256"}}},
      2, [](SweepCell& cell) {
        const double length = std::stod(setting(cell, "length"));
        cell.samples[0].max_error = length / 64, cell.samples[0].rms_exact = 4;  // 0.25, 0.5, 1
        cell.samples[1].max_error = length / 64, cell.samples[1].rms_exact = 2;  // 0.5, 1, 2
      });
  const std::string text = text_of(sweep);
  EXPECT_TRUE(
      text.starts_with("largest error / root mean square of the output, over 2 seeds; across: length\n"))
      << text;
  EXPECT_EQ(words_of(text, "kernel"), (Words{"kernel", "output", "decay", "64", "128", "256"}));
  EXPECT_EQ(words_of(text, "gla.chunk o strong"), (Words{"gla.chunk", "o", "strong", "0.5", "1", "2"}));
}

TEST(PrintSweep, ACellThatIsNoPassSaysWhatItIsAndIsNoNumber) {
  Sweep sweep = test::sweep_of({"gla.chunk"}, {{"length", {"1", "2", "3", "4", "5"}}}, 1, [](SweepCell&) {});
  sweep.cells[1].verdict = CellVerdict::finding, sweep.cells[1].violation = 3;
  sweep.cells[2].verdict = CellVerdict::finding, sweep.cells[2].nonfinite = 1;
  sweep.cells[3].verdict = CellVerdict::refused, sweep.cells[3].samples.clear();
  sweep.cells.pop_back();  // not run yet
  sweep.complete = false;
  EXPECT_EQ(words_of(text_of(sweep), "gla.chunk o"),
            (Words{"gla.chunk", "o", "0.00098", "beyond", "NaN/Inf", "refused", "-"}))
      << text_of(sweep);
}

TEST(PrintSweep, AnswersAreGivenOnceAllCellsRan) {
  Sweep sweep = test::full_sweep();
  const std::string whole = text_of(sweep);
  for (const Answer& answer : answers(sweep)) {
    const size_t question = whole.find(answer.question + "\n");
    ASSERT_NE(question, whole.npos) << answer.question;
    for (const std::string& sentence : answer.sentences)
      EXPECT_NE(whole.find("  " + sentence + "\n", question), whole.npos) << sentence;
  }
  EXPECT_NE(whole.find("finding  24 cells on vm sm_90 in 0.0 s\n"), whole.npos) << whole;
  sweep.complete = false;
  const std::string part = text_of(sweep);
  EXPECT_TRUE(whole.starts_with(part));
  EXPECT_EQ(part.find(answers(sweep).front().question), part.npos);
  sweep.cells.clear();
  EXPECT_EQ(text_of(sweep), "");
}

TEST(PrintSweep, TheVerdictIsTheWorstOfTheCellsAndOneThatRanIsEnoughForAPass) {
  Sweep sweep = test::sweep_of({"gla.chunk"}, {{"length", {"1", "2", "3"}}}, 1, [](SweepCell&) {});
  const auto with = [&](CellVerdict a, CellVerdict b, CellVerdict c) {
    sweep.cells[0].verdict = a, sweep.cells[1].verdict = b, sweep.cells[2].verdict = c;
    return verdict_of(sweep);
  };
  using enum CellVerdict;
  EXPECT_EQ(with(pass, refused, domain), Verdict::pass);
  EXPECT_EQ(with(undecided, finding, pass), Verdict::finding);
  EXPECT_EQ(with(undecided, pass, pass), Verdict::undecided);
  EXPECT_EQ(with(domain, refused, domain), Verdict::domain);
}

}  // namespace print_sweep_test
}  // namespace assay
