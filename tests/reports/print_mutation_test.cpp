#include "reports/print_mutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/reports/console_text.h"

namespace assay {
namespace print_mutation_test {

std::string text_of(const MutationRun& run, bool details = false) {
  return test::printed([&](const Console& console) { print_mutation_run(console, run, details); });
}
bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

Mutant mutant(const std::string& id, int line, MutantOutcome outcome) {
  Mutant m;
  m.id = id, m.change = id.substr(0, id.find('@')), m.outcome = outcome;
  m.where.file = "k.cu", m.where.line = line, m.where.ptx_line = 10 * line;
  m.source_text = "line " + std::to_string(line) + ";";
  m.original = "add.f32 %f1, %f2, %f3;", m.replacement = "sub.f32 %f1, %f2, %f3;";
  return m;
}

/// Two survivors of line 7 behind one of line 5, one of each other kind, one of six untried.
MutationRun sample() {
  MutationRun run;
  run.kernel = "gla.chunk", run.backend = "vm sm_90", run.seed = 3;
  run.asked = 7, run.possible = 900, run.places = 120, run.cases = 24;
  run.instructions = 50, run.instructions_reached = 48, run.seconds = 12.5;
  run.mutants = {
      mutant("swap@8", 7, MutantOutcome::survived),     mutant("negate@1", 7, MutantOutcome::survived),
      mutant("swap@2", 5, MutantOutcome::survived),     mutant("swap@3", 6, MutantOutcome::killed),
      mutant("swap@4", 6, MutantOutcome::within_bound), mutant("drop@5", 9, MutantOutcome::equivalent)};
  run.mutants[3].token = "gla.chunk/T80", run.mutants[3].reason = "violation o";
  run.mutants[5].replacement = "", run.mutants[5].reason = "nothing reads %f1";
  return run;
}

TEST(PrintMutation, SurvivorsStandByTheirLinesInTheOrderOfTheSourceEachWithItsCommand) {
  const std::string text = text_of(sample());
  EXPECT_TRUE(holds(text,
                    "survived: the same bits on every case\n"
                    "k.cu:5  line 5;\n"
                    "  swap: add.f32 %f1, %f2, %f3;  ->  sub.f32 %f1, %f2, %f3;\n"
                    "    --mutant swap@2\n"
                    "k.cu:7  line 7;\n"
                    "  negate: add.f32 %f1, %f2, %f3;  ->  sub.f32 %f1, %f2, %f3;\n"
                    "    --mutant negate@1\n"
                    "  swap: add.f32 %f1, %f2, %f3;  ->  sub.f32 %f1, %f2, %f3;\n"
                    "    --mutant swap@8\n"))
      << text;
  EXPECT_FALSE(holds(text, "\nkilled\n")) << "only survivors, where nothing more is asked for";
}

TEST(PrintMutation, WithDetailsEveryOtherMutantIsGivenItsReasonAndTheCaseThatShowsIt) {
  const std::string text = text_of(sample(), true);
  EXPECT_TRUE(holds(text, "    violation o\n    gla.chunk/T80 --mutant swap@3\n")) << text;
  EXPECT_TRUE(holds(text, "  ->  (nothing)\n    nothing reads %f1\n")) << text;
  EXPECT_TRUE(holds(text, "\nwithin bound: other bits, and nothing wrong\nk.cu:6  line 6;\n")) << text;
}

TEST(PrintMutation, TheScoreIsOfKilledAndSurvivedAloneAndWhatWasNotTriedIsSaid) {
  MutationRun run = sample();
  EXPECT_TRUE(holds(text_of(run),
                    "\n25.0 %  of 6 mutants 1 killed, 3 survived, 1 equivalent, 1 within bound, 1 untried in "
                    "12.5 s; seed 3\n"))
      << text_of(run);
  run.asked = 6;
  EXPECT_FALSE(holds(text_of(run), "untried"));
  std::erase_if(run.mutants, [](const Mutant& m) {
    return m.outcome == MutantOutcome::killed || m.outcome == MutantOutcome::survived;
  });
  EXPECT_FALSE(has_score(run));
  EXPECT_TRUE(holds(text_of(run), "\nno score  of 2 mutants 0 killed")) << text_of(run);
}

TEST(PrintMutation, TheTableCountsByChangeAndCasesThatTheKernelFailsAreSaid) {
  MutationRun run = sample();
  run.set_aside = {"gla.chunk/T9: violation o"};
  const std::string text = text_of(run);
  std::vector<std::string> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    rows.emplace_back();
    for (std::string word; words >> word;) rows.back() += word + " ";
  }
  for (const char* row : {"change killed within bound equivalent survived ", "swap 1 1 0 2 ",
                          "negate 0 0 0 1 ", "drop 0 0 1 0 ", "all 1 1 1 3 "})
    EXPECT_EQ(std::count(rows.begin(), rows.end(), row), 1) << row << "in\n" << text;
  EXPECT_TRUE(holds(text,
                    "24 cases; they execute 48 of 50 instructions\n"
                    "set aside the kernel does not pass it itself: gla.chunk/T9: violation o\n"))
      << text;
}

}  // namespace print_mutation_test
}  // namespace assay
