#include "src/cli/print_defects.h"

#include <gtest/gtest.h>

namespace assay::cli {
namespace {

DefectTrial trial(bool found, bool cause_right, bool nonfinite, bool line_right) {
  DefectTrial t;
  t.defect = "gla.chunk@S1";
  t.token = found ? "gla.chunk@S1/B1/T4/H1/K1/V1/bf16/g-fp32/none/s1" : "";
  t.replay = {Verdict::finding, "nonfinite/o/exp-overflow/kernels/gla/chunk.cu:1", "0", Verdict::pass, ""};
  t.cause = "masked-lane-overflow", t.cause_right = cause_right;
  t.nonfinite = nonfinite, t.line = "kernels/gla/chunk.cu:1", t.line_right = line_right;
  return t;
}

TEST(DefectTotals, AllowTwoMissesATenthOfTheCausesAndATwentiethOfTheLines) {
  const DefectTrial good = trial(true, true, true, true), missed = trial(false, false, false, false),
                    unnamed = trial(true, false, true, true), elsewhere = trial(true, true, true, false);
  const auto with = [&](const DefectTrial& bad, size_t times) {
    std::vector<DefectTrial> trials(100 - times, good);
    trials.insert(trials.end(), times, bad);
    return DefectTotals(trials).within_limits();
  };
  EXPECT_TRUE(with(missed, 2));
  EXPECT_FALSE(with(missed, 3));
  EXPECT_TRUE(with(unnamed, 10));
  EXPECT_FALSE(with(unnamed, 11));
  EXPECT_TRUE(with(elsewhere, 5));
  EXPECT_FALSE(with(elsewhere, 6));
}

TEST(DefectTotals, CountNoFindingThatTheCleanKernelHasToo) {
  DefectTrial both = trial(true, true, true, true);
  both.replay.clean_verdict = Verdict::finding;
  DefectTrial gone = trial(true, true, true, true);
  gone.replay.verdict = Verdict::pass;
  EXPECT_EQ(DefectTotals({both, gone}).found, 0);
}

TEST(DefectsPage, HasARowForEachTrialAndForEachRecordedDefect) {
  const std::string page = defects_page({trial(true, true, true, true)}, "assay defects all", "2025-11-20");
  for (const char* part : {"`gla.chunk@S1` | both sides", "masked-lane-overflow (right)", "B1 T4 H1 K1 V1",
                           "1 of 1 defects found", "| Z1 |", "| S1 | pairwise decays", "2025-11-20"})
    EXPECT_NE(page.find(part), page.npos) << part << '\n' << page.substr(0, 1500);
}

}  // namespace
}  // namespace assay::cli
