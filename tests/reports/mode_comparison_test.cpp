#include "reports/mode_comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/result/sample_sweep.h"

namespace assay {
namespace {

using test::sweep_of;

const std::vector<SweepDimension> kLength = {{"length", {"64", "128", "256", "512"}}};
const std::vector<SweepDimension> kLengthAndDecay = {{"length", {"64", "128", "256", "512"}},
                                                     {"decay", {"mild", "strong"}}};

double length_of(const SweepCell& cell) {
  return std::stod(setting(cell, "length"));
}

/// `factor(cell)` times the first kernel's root mean square error for the second.
Sweep compared(const std::vector<SweepDimension>& over, int seeds,
               const std::function<double(const SweepCell&, uint64_t)>& factor) {
  return sweep_of({"gla.chunk", "gla.fused_recurrent"}, over, seeds, [&](SweepCell& cell) {
    for (SweepSample& s : cell.samples)
      if (cell.kernel == "gla.fused_recurrent") s.rms_error *= factor(cell, s.seed);
  });
}

using Sentences = std::vector<std::string>;
using Rows = std::vector<std::vector<std::string>>;

TEST(ModeComparison, DecaysAreGroupedByTheirWinnerAndTheTableHasTheFactors) {
  const Sweep sweep =
      compared({{"length", {"64", "128"}}, {"decay", {"mild", "none", "strong"}}}, 3,
               [](const SweepCell& cell, uint64_t) { return setting(cell, "decay") == "none" ? 0.25 : 2; });
  const Answer answer = which_kernel_is_more_precise(sweep);
  EXPECT_EQ(answer.sentences,
            Sentences{"bf16, decay mild, strong: gla.chunk; decay none: gla.fused_recurrent."});
  EXPECT_EQ(answer.table.head, (Sentences{"decay", "length", "bf16 o"}));
  const std::string chunk = "chunk × 2 (0.00024 against 0.00049)",
                    recurrent = "fused_recurrent × 4 (6.1e-05 against 0.00024)";
  EXPECT_EQ(answer.table.rows, (Rows{{"mild", "T = 64", chunk},
                                     {"mild", "T = 128", chunk},
                                     {"none", "T = 64", recurrent},
                                     {"none", "T = 128", recurrent},
                                     {"strong", "T = 64", chunk},
                                     {"strong", "T = 128", chunk}}));
}

TEST(ModeComparison, LargeFactorsAreWrittenOut) {
  const Answer answer = which_kernel_is_more_precise(
      compared({{"decay", {"mild"}}}, 3, [](const auto&, uint64_t) { return 15661; }));
  EXPECT_EQ(answer.table.rows.at(0).at(2), "chunk × 15700 (0.00024 against 3.8)");
}

TEST(ModeComparison, FormatsOfWhichTheSameIsSaidShareASentence) {
  const auto factor = [](const SweepCell& cell, uint64_t) {
    return setting(cell, "dtype") == "fp32" ? 0.5 : 8.0;
  };
  const Answer answer = which_kernel_is_more_precise(
      compared({{"decay", {"mild"}}, {"dtype", {"bf16", "fp16", "fp32"}}}, 3, factor));
  EXPECT_EQ(answer.sentences,
            (Sentences{"bf16, fp16, decay mild: gla.chunk.", "fp32, decay mild: gla.fused_recurrent."}));
}

TEST(ModeComparison, OutputsWithWinnersOfTheirOwnAreNamed) {
  Sweep sweep = compared({{"decay", {"mild"}}}, 3, [](const auto&, uint64_t) { return 2; });
  for (size_t i = 0, count = sweep.cells.size(); i < count; ++i) {
    SweepCell state = sweep.cells[i];
    state.output = "final_state";
    if (state.kernel == "gla.fused_recurrent")
      for (SweepSample& s : state.samples) s.rms_error /= 16;
    sweep.cells.push_back(state);
  }
  EXPECT_EQ(which_kernel_is_more_precise(sweep).sentences,
            Sentences{"bf16, decay mild: gla.chunk for o, gla.fused_recurrent for final_state."});
}

TEST(ModeComparison, EqualOnesAndNoiseOfEitherSignHaveNoWinner) {
  for (const bool noise : {false, true}) {
    const Answer answer =
        which_kernel_is_more_precise(compared(kLengthAndDecay, 4, [&](const auto&, uint64_t seed) {
          return !noise ? 1.0 : seed % 2 ? 3.0 : 1.0 / 3;
        }));
    EXPECT_EQ(answer.sentences, Sentences{"bf16, decay mild, strong: no sure difference."});
    for (const auto& row : answer.table.rows) EXPECT_EQ(row.back(), "-");
  }
}

TEST(ModeComparison, OneRunShowsNothing) {
  const Answer answer = which_kernel_is_more_precise(
      compared({{"decay", {"mild"}}}, 1, [](const auto&, uint64_t) { return 8; }));
  EXPECT_EQ(answer.sentences,
            Sentences{"bf16, decay mild: too few runs with rounding errors to tell (give more --seeds)."});
}

TEST(ModeComparison, ADifferenceAtTheLongestLengthAloneIsSaidToBeThere) {
  const auto at_last = [](const SweepCell& cell, uint64_t seed) {
    return length_of(cell) == 512 ? 4.0 : seed % 2 ? 0.25 : 2.0;
  };
  const Answer answer = which_kernel_is_more_precise(compared(kLength, 4, at_last));
  EXPECT_EQ(answer.sentences,
            Sentences{"bf16, decay logsigmoid: no sure difference at T = 64 and gla.chunk at T = 512."});
  EXPECT_EQ(answer.table.rows.at(0), (Sentences{"logsigmoid", "T = 64", "-"}));
  EXPECT_EQ(answer.table.rows.at(1),
            (Sentences{"logsigmoid", "T = 512", "chunk × 4 (0.00024 against 0.00098)"}));
}

TEST(ModeComparison, TheOtherWinnerAtTheLongestLengthIsNamed) {
  const auto turning = [](const SweepCell& cell, uint64_t) { return length_of(cell) == 512 ? 0.5 : 64; };
  const Answer answer = which_kernel_is_more_precise(compared(kLength, 8, turning));
  EXPECT_EQ(answer.sentences,
            Sentences{"bf16, decay logsigmoid: gla.chunk at T = 64 and gla.fused_recurrent at T = 512."});
  EXPECT_EQ(answer.table.rows.at(0).at(2), "chunk × 64 (0.00024 against 0.016)");
  EXPECT_EQ(answer.table.rows.at(1).at(2), "fused_recurrent × 2 (0.00012 against 0.00024)");
}

TEST(ModeComparison, RunsOfOtherSeedsAreNoPairs) {
  Sweep sweep = compared(kLength, 3, [](const auto&, uint64_t) { return 2; });
  for (SweepCell& cell : sweep.cells)
    for (SweepSample& s : cell.samples) s.seed += cell.kernel == "gla.chunk" ? 100 : 0;
  EXPECT_NE(which_kernel_is_more_precise(sweep).sentences.at(0).find("too few runs"), std::string::npos);
}

TEST(ModeComparison, OfOneKernelNothingIsSaid) {
  const Answer answer = which_kernel_is_more_precise(sweep_of({"gla.chunk"}, kLength, 3, [](SweepCell&) {}));
  EXPECT_TRUE(answer.sentences.empty());
  EXPECT_TRUE(answer.table.rows.empty());
}

TEST(PairedRatio, IsTheGeometricMeanWithStudentsInterval) {
  // Logarithms 0, 1, 2: mean 1, standard error 1 / sqrt(3); t(0.975; 2) = 4.302652730 (tables).
  const PairedRatio r = paired_ratio({1, std::exp(1.0), std::exp(2.0)}, {1, 1, 1});
  EXPECT_EQ(r.pairs, 3u);
  EXPECT_NEAR(std::log(r.mean), 1, 1e-12);
  EXPECT_NEAR(std::log(r.low), 1 - 4.302652730 / std::sqrt(3), 1e-8);
  EXPECT_NEAR(std::log(r.high), 1 + 4.302652730 / std::sqrt(3), 1e-8);
  // Four pairs: t(0.975; 3) = 3.182446305.
  const PairedRatio four = paired_ratio({1, std::exp(1.0), std::exp(2.0), std::exp(1.0)}, {1, 1, 1, 1});
  EXPECT_NEAR(std::log(four.high), 1 + 3.182446305 * std::sqrt(2.0 / 3 / 4), 1e-8);
}

TEST(PairedRatio, DiffersOnlyWhereTheWholeIntervalLiesBeyondATenth) {
  EXPECT_TRUE(paired_ratio({1.2, 1.2}, {1, 1}).differs());
  EXPECT_FALSE(paired_ratio({1.05, 1.05}, {1, 1}).differs());
  EXPECT_TRUE(paired_ratio({1, 1}, {1.2, 1.2}).differs());
  EXPECT_FALSE(paired_ratio({4}, {1}).differs());
  EXPECT_FALSE(paired_ratio({1, 30}, {1, 1}).differs());
}

}  // namespace
}  // namespace assay
