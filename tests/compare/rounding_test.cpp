// The statistic on values whose errors are known.
#include "src/verification/compare/rounding.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/case/random.h"

namespace assay {
namespace {

const std::vector<Axis> kAxes = {{"B", 1}, {"T", 1024}, {"H", 1}, {"V", 16}};

ReferenceOutput normal_values(uint64_t seed) {
  ReferenceOutput o;
  o.name = "o", o.axes = kAxes, o.roundoff = unit_roundoff(Dtype::bf16);
  const RandomStream random(seed, "rounding_test");
  for (int64_t i = 0; i < 1024 * 16; ++i) o.mid.push_back(random.normal({0, i, 0, 0}));
  const size_t n = o.mid.size();
  o.rad.assign(n, 0), o.bound.assign(n, 1), o.companion.assign(n, 1), o.underflow.assign(n, 0);
  return o;
}

/// Nothing but the storing of results rounds; `rest`: what else is allowed of each element, relative to it.
OutputModel storing_only(const ReferenceOutput& o, double rest = 0) {
  OutputModel model(OutputBlocks(o.name, o.axes, {}));
  for (size_t b = 0; b < model.blocks.blocks().size(); ++b) {
    const OutputBlock& block = model.blocks.blocks()[b];
    ExpectedErrors& to = model.expected[b];
    for (int64_t i = model.blocks.row(block, 0), end = i + block.rows * model.blocks.columns(); i < end;
         ++i) {
      const double x = std::fabs(summed_value(o.mid[static_cast<size_t>(i)])), r = rest * x;
      ++to.elements;
      to.exact_squares += x * x, to.rest_squares += r * r, to.rest_along += x * r, to.rest += r;
    }
  }
  for (const double x : o.mid) model.rest.push_back(rest * std::fabs(x));
  return model;
}

template <typename Change>
Tensor stored(const ReferenceOutput& o, const Change& change) {
  Tensor got(o.name, Dtype::bf16, o.axes);
  for (size_t i = 0; i < o.mid.size(); ++i) got.set(static_cast<int64_t>(i), change(o.mid[i], i));
  return got;
}

RoundingOutput judged(const Tensor& got, const ReferenceOutput& o, double rest = 0) {
  return judge_rounding(got, o, storing_only(o, rest), 100).output;
}

TEST(Rounding, ValuesRoundedOnceAreExplained) {
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const ReferenceOutput o = normal_values(seed);
    const RoundingOutput r = judged(stored(o, [](double x, size_t) { return x; }), o);
    EXPECT_EQ(r.unlikely, 0);
    EXPECT_EQ(r.parts, 16 + 4 + 1 + 1 + 1);
    EXPECT_NEAR(r.all.ratio, 1, 0.03);
  }
}

TEST(Rounding, AShrunkAShiftedAndANoisyOutputAreNot) {
  const ReferenceOutput o = normal_values(3);
  const RoundingOutput shrunk = judged(stored(o, [](double x, size_t) { return 0.999 * x; }), o);
  EXPECT_GT(shrunk.unlikely, 0);
  EXPECT_NEAR(shrunk.all.slope, 0.999, 2e-5);
  EXPECT_GT(1 - shrunk.all.slope, shrunk.all.allowed_slope);
  const RoundingOutput shifted = judged(stored(o, [](double x, size_t) { return x + 5e-4; }), o);
  EXPECT_GT(shifted.all.bias, shifted.all.allowed_bias);
  const RandomStream random(7, "noise");
  const RoundingOutput noisy =
      judged(stored(o,
                    [&](double x, size_t i) {
                      return x * (1 + 0x1p-9 * random.normal({0, static_cast<int64_t>(i), 0, 0}));
                    }),
             o);
  EXPECT_GT(noisy.all.ratio, noisy.all.allowed_ratio);
  EXPECT_LT(std::fabs(noisy.all.slope - 1), noisy.all.allowed_slope);
}

TEST(Rounding, AFaultOfTheLastQuarterIsSeenThereAndNamed) {
  const ReferenceOutput o = normal_values(4);
  const RoundingOutput r =
      judged(stored(o, [](double x, size_t i) { return i < 768 * 16 ? x : 0.99 * x; }), o);
  EXPECT_EQ(r.worst.where, "o of tokens 768 to 1023, head 0, sequence 0");
}

TEST(Rounding, WhatIsAllowedBesideTheRoundingsMayShareOneSign) {
  const ReferenceOutput o = normal_values(5);
  const Tensor got = stored(o, [](double x, size_t) { return 0.999 * x; });
  EXPECT_EQ(judged(got, o, 0.0011).unlikely, 0);
  EXPECT_GT(judged(got, o, 0.0005).unlikely, 0);
}

TEST(Rounding, TheStatisticsOfBlocksLieUnderTheModelsTail) {
  // P(evidence > t) <= e^-t; of 320 blocks and 20 sequences, with the binomial's own spread.
  int beyond[3][6] = {}, all = 0;
  for (uint64_t seed = 100; seed < 120; ++seed) {
    const ReferenceOutput o = normal_values(seed);
    const OutputModel model = storing_only(o);
    for (const PartStatistics& p :
         part_statistics(stored(o, [](double x, size_t) { return x; }), o, model, 100)) {
      ++all;
      for (size_t s = 0; s < 3; ++s)
        for (int t = 1; t < 6; ++t) beyond[s][t] += p.evidence[s] > t;
    }
  }
  for (const auto& of_statistic : beyond)
    for (int t = 1; t < 6; ++t) {
      const double expected = all * std::exp(-t);
      EXPECT_LE(of_statistic[t], expected + 4 * std::sqrt(expected) + 1) << t;
    }
}

TEST(Rounding, EvidenceSaysHowUnlikelyAPartIs) {
  const ReferenceOutput o = normal_values(11);
  const PartStatistics p =
      part_statistics(stored(o, [](double x, size_t) { return 0.999 * x; }), o, storing_only(o), 100).back();
  EXPECT_GT(p.evidence[1], std::log(100 / kFalseAlarms));
  EXPECT_GT(p.part.excess, 1);
}

TEST(Rounding, ValuesThatAreAlikeAreRoundedAlike) {
  // Half of them within a hundredth of a spacing of a number that is a third of one from its neighbour.
  ReferenceOutput o = normal_values(8);
  for (size_t i = 0; i < o.mid.size(); i += 2) o.mid[i] = 1 + 0x1p-7 / 3 + 1e-6 * o.mid[i];
  const RoundingOutput r = judged(stored(o, [](double x, size_t) { return x; }), o);
  EXPECT_EQ(r.unlikely, 0);
  EXPECT_LT(r.all.slope, 0.999);
}

TEST(Rounding, ValuesNearTheFormatsOwnAreRoundedBackToThem) {
  ReferenceOutput o = normal_values(9);
  for (double& x : o.mid) x = round_to(Dtype::bf16, x) * (1 + 3e-4);
  const RoundingOutput r = judged(stored(o, [](double x, size_t) { return x; }), o);
  EXPECT_EQ(r.unlikely, 0);
  EXPECT_NEAR(r.all.slope, 1 - 3e-4, 2e-5);
  EXPECT_GT(judged(stored(o, [](double x, size_t) { return 0.99 * x; }), o).unlikely, 0);
}

TEST(Rounding, ValuesWhoseSquaresUnderflowHaveNoSlope) {
  ReferenceOutput o = normal_values(12);
  for (double& x : o.mid) x *= 0x1p-530;
  const RoundingOutput r = judged(stored(o, [](double, size_t) { return 0; }), o);
  EXPECT_EQ(r.unlikely, 0);
  EXPECT_EQ(r.all.slope, 1);
}

TEST(Rounding, WhatOverflowsIsJudgedByItsClass) {
  ReferenceOutput o = normal_values(10);
  o.mid[5] = 1e5;
  Tensor got(o.name, Dtype::fp16, o.axes);
  for (size_t i = 0; i < o.mid.size(); ++i) got.set(static_cast<int64_t>(i), o.mid[i]);
  EXPECT_NE(judged(got, o).skipped, "");
}

TEST(Rounding, ExactValuesOnACoarseGridAreNotJudged) {
  ReferenceOutput o = normal_values(6);
  EXPECT_FALSE(on_coarse_grid(o, Dtype::bf16));
  for (double& x : o.mid) x = std::nearbyint(64 * x);
  EXPECT_TRUE(on_coarse_grid(o, Dtype::bf16));
  EXPECT_EQ(judged(stored(o, [](double x, size_t) { return x; }), o).skipped,
            "its exact values lie on a coarse grid");
}

}  // namespace
}  // namespace assay
