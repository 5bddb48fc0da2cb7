// The statistic of errors that a state carries from block to block, on errors whose source is known.
#include "src/verification/compare/carried_errors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace assay {
namespace {

constexpr size_t kBlocks = 40, kTokens = 64, kStates = 16, kColumns = 16;

/// Reads of normal values, and what white errors of variance 1 say under the model.
struct White {
  CarriedErrors expected;
  std::vector<std::vector<double>> errors, rest;
  std::mt19937_64 random;
  double left;

  explicit White(uint64_t seed, double left = 0.5) : random(seed), left(left) {
    for (size_t b = 0; b < kBlocks; ++b) {
      StateReads reads;
      for (size_t i = 0; i < kTokens * kStates; ++i) reads.x.push_back(static_cast<float>(normal()));
      reads.left.assign(kStates, static_cast<float>(left));
      expected.blocks.push_back(std::move(reads));
      errors.push_back(white()), rest.emplace_back(kTokens * kColumns, 0.0);
    }
    std::vector<std::vector<double>> other = errors;
    for (auto& e : other) e = white();
    for (size_t b = 1; b < kBlocks; ++b) {
      double sum = 0;
      for (const double link : links(b, other))
        sum += link, expected.largest = std::fmax(expected.largest, link * link);
      expected.fresh += sum * sum;
    }
  }
  double normal() { return std::normal_distribution<double>()(random); }
  std::vector<double> white() {
    std::vector<double> e(kTokens * kColumns);
    for (double& x : e) x = normal();
    return e;
  }
  /// What a block and the one before it say alike, by column.
  std::vector<double> links(size_t b, const std::vector<std::vector<double>>& of) const {
    const std::vector<double> before = projected(expected.blocks[b - 1], of[b - 1], kColumns),
                              here = projected(expected.blocks[b], of[b], kColumns);
    std::vector<double> y(kColumns);
    for (size_t i = 0; i < here.size(); ++i) y[i % kColumns] += left * before[i] * here[i];
    return y;
  }
  /// A state's error of that size, rounded anew in every block and kept with `left` of it.
  void carry(double size) {
    std::vector<double> state(kStates * kColumns);
    for (size_t b = 0; b < kBlocks; ++b) {
      for (double& s : state) s = left * s + size * normal();
      for (size_t t = 0; t < kTokens; ++t)
        for (size_t c = 0; c < kStates; ++c)
          for (size_t v = 0; v < kColumns; ++v)
            errors[b][t * kColumns + v] +=
                static_cast<double>(expected.blocks[b].x[t * kStates + c]) * state[c * kColumns + v];
    }
  }
  CarriedStatistic statistic() const { return carried_statistic(expected, errors, rest, kColumns, 25); }
};

TEST(CarriedErrors, WhiteErrorsAreNotCarried) {
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const CarriedStatistic s = White(seed).statistic();
    EXPECT_LT(std::fabs(s.deviations), 5) << seed;
    EXPECT_LT(s.deviations, s.allowed);
    EXPECT_LT(s.evidence, 10);
  }
}

TEST(CarriedErrors, AStateThatIsRoundedOnceABlockIsSeen) {
  White w(3);
  w.carry(0.1);
  const CarriedStatistic s = w.statistic();
  EXPECT_GT(s.deviations, s.allowed);
  EXPECT_GT(s.evidence, 25);
}

TEST(CarriedErrors, ACopyThatIsRoundedInEveryBlockIsNot) {
  White w(4, 0);  // nothing of it is left
  w.carry(0.1);
  EXPECT_EQ(w.statistic().allowed, 0);
  White kept(4);
  kept.left = 0, kept.carry(0.1), kept.left = 0.5;
  EXPECT_LT(kept.statistic().deviations, kept.statistic().allowed);
}

/// A decay of e^-88 between blocks: floats do not hold what products of samples say of so little.
TEST(CarriedErrors, WhereNoMoreOfAStateIsLeftThanSamplesResolveNothingIsSaid) {
  White w(6, 0x1p-127);
  const CarriedStatistic s = w.statistic();
  EXPECT_EQ(s.deviations, 0);
  EXPECT_EQ(s.allowed, 0);
  EXPECT_EQ(s.evidence, 0);
  EXPECT_GT(White(6, 0x1p-60).statistic().allowed, 0);
}

TEST(CarriedErrors, WhatElseIsAllowedIsAllowed) {
  White w(5);
  w.carry(0.1);
  for (auto& rest : w.rest) rest.assign(rest.size(), 0.5);
  const CarriedStatistic s = w.statistic();
  EXPECT_LT(s.deviations, s.allowed);
}

}  // namespace
}  // namespace assay
