#include "reports/sweep_answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/result/sample_sweep.h"

namespace assay {
namespace sweep_answers_test {

using test::set_all;
using test::sweep_of;

constexpr const char* kGates = "Which gates are safe?";
constexpr const char* kLengths = "Up to which length is the error acceptable?";
constexpr const char* kApart = "Where do error and bound part?";

const std::vector<SweepDimension> kLength = {{"length", {"64", "128", "256", "512"}}};
const std::vector<SweepDimension> kDecay = {{"decay", {"mild", "strong", "extreme"}}};
const std::vector<SweepDimension> kLengthAndDecay = {{"length", {"64", "128", "256", "512"}},
                                                     {"decay", {"mild", "strong"}}};

/// The sentences under a question, one per line; "" where it is not answered.
std::string answer(const Sweep& sweep, const std::string& question) {
  std::string text;
  for (const Answer& a : answers(sweep))
    if (a.question == question)
      for (const std::string& sentence : a.sentences) text += (text.empty() ? "" : "\n") + sentence;
  return text;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

double length_of(const SweepCell& cell) {
  return std::stod(setting(cell, "length"));
}

/// Gates down to -1, -10, -100 by decay.
void gates(SweepCell& cell) {
  const std::string decay = setting(cell, "decay");
  cell.gate_min = decay == "mild" ? -1 : decay == "strong" ? -10 : -100;
  cell.gate_max = -0.25;
}

// ---- precision ----

TEST(Precision, OfEveryOutputStandsBesideTheOtherFormats) {
  const Sweep sweep = sweep_of({"gla.chunk"}, {{"dtype", {"bf16", "fp32"}}}, 2, [](SweepCell& cell) {
    const bool coarse = setting(cell, "dtype") == "bf16";
    set_all(cell, &SweepSample::rms_exact, 2);
    set_all(cell, &SweepSample::rms_error, coarse ? 0.005 : 2e-7);
    set_all(cell, &SweepSample::max_error, coarse ? 0.08 : 4e-6);
  });
  const Answer precision = answers(sweep).front();
  EXPECT_EQ(precision.question, "How precise is each format?");
  EXPECT_EQ(precision.table.head, (std::vector<std::string>{"output", "bf16", "fp32"}));
  ASSERT_EQ(precision.table.rows.size(), 1u);
  EXPECT_EQ(precision.table.rows[0],
            (std::vector<std::string>{"gla.chunk o", "0.0025, at most 0.04", "1e-07, at most 2e-06"}));
}

TEST(Precision, ARunWithoutFiniteValuesHasNone) {
  const Sweep sweep = sweep_of({"gla.chunk"}, kDecay, 2, [](SweepCell& cell) {
    if (setting(cell, "decay") == "extreme") cell.nonfinite = 1;
  });
  EXPECT_EQ(answers(sweep).front().table.rows.at(0).at(1), "no finite result");
}

// ---- safe gates ----

TEST(SafeGates, AreAllThatWereDrawnWhereEverythingPassed) {
  EXPECT_EQ(answer(sweep_of({"gla.chunk"}, kDecay, 3, gates), kGates),
            "gla.chunk: log decays from -100 to -0.25, as they were drawn, are safe: every output of 9 runs "
            "in bf16 is finite "
            "and within its proved bound.");
}

TEST(SafeGates, EndAboveThoseOfTheFirstFailureWhoseReplayIsNamed) {
  const Sweep sweep = sweep_of({"gla.chunk"}, kDecay, 1, [](SweepCell& cell) {
    gates(cell);
    if (cell.gate_min > -100) return;
    cell.verdict = CellVerdict::finding;
    cell.note = "nonfinite o";
  });
  EXPECT_EQ(answer(sweep, kGates),
            "gla.chunk: log decays down to -10 are safe; with gates down to -100 it fails at "
            "decay=extreme (nonfinite o): replay with assay replay " +
                sweep.cells.back().token + ".");
}

TEST(SafeGates, DoNotHoldThoseBeyondAFailureAtMilderOnes) {
  const std::string text = answer(sweep_of({"gla.chunk"}, kDecay, 1,
                                           [](SweepCell& cell) {
                                             gates(cell);
                                             if (cell.gate_min == -10) cell.verdict = CellVerdict::finding;
                                           }),
                                  kGates);
  EXPECT_TRUE(holds(text, "down to -1 are safe; with gates down to -10 it fails")) << text;
}

TEST(SafeGates, ThatOneOutputFailsWithAreNotSafeForAnother) {
  Sweep sweep = sweep_of({"gla.chunk"}, {{"decay", {"mild"}}}, 1, gates);
  SweepCell state = sweep.cells.front();
  state.output = "final_state";
  state.verdict = CellVerdict::finding;
  sweep.cells.push_back(state);
  EXPECT_TRUE(holds(answer(sweep, kGates), "no range of gates is safe: it fails")) << answer(sweep, kGates);
}

TEST(SafeGates, EndWhereElementsAreUndecidedAndAFindingBeyondIsStillNamed) {
  const std::string text = answer(sweep_of({"gla.chunk"}, kDecay, 1,
                                           [](SweepCell& cell) {
                                             gates(cell);
                                             if (cell.gate_min == -10) cell.verdict = CellVerdict::undecided;
                                             if (cell.gate_min == -100) cell.verdict = CellVerdict::finding;
                                           }),
                                  kGates);
  EXPECT_TRUE(
      holds(text, "down to -1 are safe; with gates down to -10 elements are undecided at decay=strong"))
      << text;
  EXPECT_TRUE(holds(text, "; it fails at decay=extreme")) << text;
}

TEST(SafeGates, AreNotClaimedOfInputsOutsideTheDomainOrOfRefusedPoints) {
  const Sweep sweep = sweep_of({"gla.chunk"}, kDecay, 1, [](SweepCell& cell) {
    gates(cell);
    if (cell.gate_min == -10) cell.verdict = CellVerdict::domain;
    if (cell.gate_min == -100) cell.verdict = CellVerdict::refused;
  });
  const std::string text = answer(sweep, kGates);
  EXPECT_TRUE(holds(text, "from -1 to -0.25, as they were drawn, are safe: every output of 1 runs")) << text;
  EXPECT_TRUE(holds(text, "1 points were refused")) << text;
}

TEST(SafeGates, OfEveryDecayWhatItDrewAndWhatCameOfItStandsInATable) {
  const Sweep sweep = sweep_of({"gla.chunk"}, kDecay, 1, [](SweepCell& cell) {
    gates(cell);
    if (cell.gate_min == -100) cell.verdict = CellVerdict::finding;
  });
  for (const Answer& a : answers(sweep)) {
    if (a.question != kGates) continue;
    EXPECT_EQ(a.table.head, (std::vector<std::string>{"decay", "gla.chunk"}));
    EXPECT_EQ(a.table.rows,
              (std::vector<std::vector<std::string>>{{"mild", "-1 to -0.25: safe"},
                                                     {"strong", "-10 to -0.25: safe"},
                                                     {"extreme", "-100 to -0.25: 1 of 1 finding"}}));
  }
  for (const Answer& a : answers(sweep_of({"gla.chunk"}, kLength, 1, gates)))
    EXPECT_TRUE(a.question != kGates || a.table.rows.empty());
}

TEST(SafeGates, AreNotSpokenOfWhereThereAreNone) {
  const std::string text =
      answer(sweep_of({"delta.chunk"}, kLength, 1, [](SweepCell& cell) { cell.gated = false; }), kGates);
  EXPECT_TRUE(holds(text, "delta.chunk takes no gates: every output of 4 runs")) << text;
}

// ---- lengths ----

/// Errors that grow as T, 2^-10 at T = 64.
void growing(SweepCell& cell) {
  set_all(cell, &SweepSample::max_error, length_of(cell) / 65536);
}

TEST(Lengths, AreAcceptableUpToTheLastOneWithinTheTolerance) {
  Sweep sweep = sweep_of({"gla.chunk"}, kLengthAndDecay, 2, [](SweepCell& cell) {
    growing(cell);
    if (setting(cell, "decay") == "strong" && length_of(cell) == 512) cell.samples[1].max_error = 0.5;
  });
  sweep.tolerance = 0x1p-7;  // T = 512
  EXPECT_EQ(answer(sweep, kLengths),
            "bf16: no error of any run is above 0.007812 of the output's root mean square for gla.chunk o at "
            "every length, up to T = 512, but under decay strong up to T = 256 (0.5 at T = 512).");
  sweep.tolerance = 0.5;
  EXPECT_TRUE(holds(answer(sweep, kLengths), "gla.chunk o at every length, up to T = 512"));
  sweep.tolerance = 0x1p-11;
  EXPECT_TRUE(holds(answer(sweep, kLengths), "gla.chunk o at none of the lengths (0.0009766 at T = 64"));
}

TEST(Lengths, AreMeasuredAgainstTheSizeOfTheOutput) {
  Sweep sweep = sweep_of({"gla.chunk"}, kLength, 1, [](SweepCell& cell) {
    growing(cell);
    set_all(cell, &SweepSample::rms_exact, length_of(cell));
  });
  sweep.tolerance = 0x1p-16;
  EXPECT_TRUE(holds(answer(sweep, kLengths), "at every length")) << answer(sweep, kLengths);
  for (SweepCell& cell : sweep.cells) set_all(cell, &SweepSample::rms_exact, 0);
  EXPECT_TRUE(holds(answer(sweep, kLengths), "at none of the lengths")) << answer(sweep, kLengths);
}

TEST(Lengths, EndAtOneWithoutAFiniteResultHoweverGoodLongerOnesAre) {
  for (const bool trapped : {false, true}) {
    const Sweep sweep = sweep_of({"gla.chunk"}, kLength, 2, [&](SweepCell& cell) {
      if (length_of(cell) != 256) return;
      cell.verdict = CellVerdict::finding;
      if (trapped)
        cell.samples.clear();
      else
        cell.nonfinite = 1;
    });
    EXPECT_TRUE(holds(answer(sweep, kLengths), "gla.chunk o up to T = 128 (no finite result at T = 256"))
        << answer(sweep, kLengths);
  }
}

TEST(Lengths, AViolationWithinTheToleranceIsAcceptable) {
  const Sweep sweep = sweep_of({"gla.chunk"}, kLength, 2, [](SweepCell& cell) {
    cell.verdict = CellVerdict::finding, cell.violation = 1;
  });
  EXPECT_TRUE(holds(answer(sweep, kLengths), "at every length")) << answer(sweep, kLengths);
}

TEST(Lengths, EndWhereTheReferenceLeavesElementsOpen) {
  const Sweep sweep = sweep_of({"gla.chunk"}, kLength, 1, [](SweepCell& cell) {
    if (length_of(cell) == 256) cell.verdict = CellVerdict::undecided, cell.undecided = 1;
  });
  EXPECT_TRUE(holds(answer(sweep, kLengths), "up to T = 128 (undecided at T = 256"))
      << answer(sweep, kLengths);
}

TEST(Lengths, AreNotAskedAboutWhereThereIsOne) {
  EXPECT_EQ(answer(sweep_of({"gla.chunk"}, kDecay, 3, gates), kLengths), "");
  EXPECT_EQ(answer(sweep_of({"gla.chunk"}, {{"length", {"64"}}}, 3, gates), kLengths), "");
}

TEST(Lengths, TheToleranceIsTheSweepsOwnOrFollowsFromTheFormat) {
  Sweep sweep;
  EXPECT_EQ(tolerance_of(sweep, Dtype::bf16), 0x1p-5);
  EXPECT_EQ(tolerance_of(sweep, Dtype::fp16), 0x1p-8);
  EXPECT_EQ(tolerance_of(sweep, Dtype::fp32), 0x1p-18);
  sweep.tolerance = 0.25;
  EXPECT_EQ(tolerance_of(sweep, Dtype::bf16), 0.25);
}

// ---- error and bound ----

/// Errors as T^error and bounds as T^bound.
Sweep grown(double error, double bound) {
  return sweep_of({"gla.chunk"}, kLength, 2, [=](SweepCell& cell) {
    set_all(cell, &SweepSample::max_error, 1e-6 * std::pow(length_of(cell), error));
    set_all(cell, &SweepSample::max_bound, 1e-3 * std::pow(length_of(cell), bound));
    set_all(cell, &SweepSample::max_ratio, 1e-3 * std::pow(length_of(cell), error - bound));
  });
}

TEST(ErrorAndBound, PartWithTheLengthWhereRoundingsCancel) {
  const std::string text = answer(grown(0.5, 1), kApart);
  EXPECT_TRUE(holds(text,
                    "gla.chunk: farthest from it at the longest length is o in bf16, decay logsigmoid at T = "
                    "512, where the "
                    "largest error is 4.419e-05 of its bound. There the largest error grows as T^0.50, the "
                    "largest bound as "
                    "T^1.00: roundings of either sign cancel in part"))
      << text;
}

TEST(ErrorAndBound, ThatGrowAlikePartForAnotherReason) {
  EXPECT_TRUE(holds(answer(grown(1, 1), kApart), "both grow alike"));
  EXPECT_TRUE(holds(answer(grown(0, 0), kApart), "neither grows, the decays forget"));
  EXPECT_TRUE(holds(answer(grown(1, 0.5), kApart), "the error comes nearer to the bound"));
}

TEST(ErrorAndBound, AreTakenWhereTheyAreFarthestAtTheLongestLengthAndNearestAtAny) {
  const Sweep sweep = sweep_of(
      {"gla.chunk"}, {{"length", {"64", "512"}}, {"decay", {"mild", "strong"}}, {"heads", {"1", "4"}}}, 1,
      [](SweepCell& cell) {
        // Heads 4 are nearer to the bound; a short run is nearest of all.
        const double ratio = setting(cell, "decay") == "mild" ? 0.01 : 0.2;
        set_all(cell, &SweepSample::max_ratio, ratio * (setting(cell, "heads") == "4" ? 2 : 1));
        if (length_of(cell) == 64) set_all(cell, &SweepSample::max_ratio, 0.9);
      });
  const std::string text = answer(sweep, kApart);
  EXPECT_TRUE(holds(text,
                    "at the longest length is o in bf16, decay mild at T = 512, where the largest error is "
                    "0.02 of its bound"))
      << text;
  EXPECT_TRUE(holds(text,
                    "nearest to its bound is o in bf16, decay mild at T = 64, where the largest error is 0.9 "
                    "of its bound"))
      << text;
}

TEST(ErrorAndBound, AreNotSpokenOfWithoutSeveralLengths) {
  EXPECT_EQ(answer(sweep_of({"gla.chunk"}, kDecay, 3, gates), kApart), "");
}

// ---- the numbers behind ----

TEST(Growth, IsTheExponentOfAPowerLaw) {
  EXPECT_NEAR(growth({1, 2, 4, 8}, {3, 6, 12, 24}), 1, 1e-12);
  EXPECT_NEAR(growth({1, 4, 16}, {8, 4, 2}), -0.5, 1e-12);
  // Least squares of (0, 0), (1, 1), (2, 0) and (3, 1): slope 2 / 10.
  EXPECT_NEAR(growth({1, 2, 4, 8}, {1, 2, 1, 2}), 0.2, 1e-12);
}

TEST(Growth, IsNoNumberWithoutTwoPlaces) {
  EXPECT_TRUE(std::isnan(growth({4, 4, 4}, {1, 2, 3})));
  EXPECT_TRUE(std::isnan(growth({1, 2}, {0, 5})));
  EXPECT_TRUE(std::isnan(growth({}, {})));
  EXPECT_NEAR(growth({1, 2, 4, 8}, {1, HUGE_VAL, 16, 0}), 2, 1e-12);  // what has no logarithm is left out
}

}  // namespace sweep_answers_test
}  // namespace assay
