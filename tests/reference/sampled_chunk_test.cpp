// The pieces that samples of roundings are carried with, against sums written out.
#include "reference/sampled_chunk.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace assay {
namespace {

constexpr int64_t kTokens = 5, kRows = 3, kColumns = 2;

struct Drawn {
  SampledChunk chunk{Slice{}, kRows, 0x1p-9};
  std::vector<double> a;
  std::vector<float> x, values;
  std::mt19937 random{1};

  explicit Drawn(bool exclusive = false) {
    std::uniform_real_distribution<double> unit(0.5, 1);
    for (int64_t i = 0; i < kTokens * kRows; ++i) a.push_back(unit(random));
    x = numbers(kTokens * kRows), values = numbers(kTokens * kColumns);
    chunk.begin(0, kTokens, a, exclusive);
  }
  std::vector<float> numbers(int64_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> y;
    for (int64_t i = 0; i < count; ++i) y.push_back(normal(random));
    return y;
  }
  /// Of row c over the tokens first .. last.
  double decay(int64_t c, int64_t first, int64_t last) const {
    double y = 1;
    for (int64_t t = first; t <= last; ++t) y *= a[static_cast<size_t>(t * kRows + c)];
    return y;
  }
};

TEST(SampledChunk, DecaysAreFromTheStartToAReadAndFromAWriteToTheEnd) {
  for (const bool exclusive : {false, true}) {
    const Drawn d(exclusive);
    for (int64_t t = 0; t < kTokens; ++t)
      for (int64_t c = 0; c < kRows; ++c) {
        EXPECT_NEAR(d.chunk.into()[d.chunk.at(t, c)], d.decay(c, 0, exclusive ? t - 1 : t), 1e-6);
        EXPECT_NEAR(d.chunk.after()[d.chunk.at(t, c)], d.decay(c, t + 1, kTokens - 1), 1e-6);
      }
  }
}

TEST(SampledChunk, EveryPairOfTokensMeetsOnceWithTheDecayBetweenThem) {
  for (const bool exclusive : {false, true}) {
    const Drawn d(exclusive);
    int pairs = 0, own = 0;
    d.chunk.for_each_pair(
        [&](int64_t t, int64_t j, const float* w) {
          ++pairs;
          for (int64_t c = 0; c < kRows; ++c)
            EXPECT_NEAR(w[c], d.decay(c, j + 1, exclusive ? t - 1 : t), 1e-6) << t << " " << j;
        },
        [&](int64_t) { ++own; });
    EXPECT_EQ(pairs, exclusive ? 10 : 15);
    EXPECT_EQ(own, exclusive ? 5 : 0);
  }
}

TEST(SampledChunk, WhatIsWrittenIsReadWithItsNoise) {
  Drawn d;
  SampledState S(kRows, kColumns);
  std::vector<Lanes> near(d.x.size()), far(d.x.size());
  std::vector<float> moved(d.x.size());
  near[4][3] = 0.25f, moved[4] = 0.0625f;
  d.chunk.write(S, {d.x, NoiseSource::key, 0, near.data(), far.data(), moved.data()}, d.chunk.after(),
                d.values, 2);
  for (int64_t c = 0; c < kRows; ++c)
    for (int64_t v = 0; v < kColumns; ++v) {
      double sum = 0;
      for (int64_t t = 0; t < kTokens; ++t)
        sum += 2 * d.x[d.chunk.at(t, c)] * d.decay(c, t + 1, kTokens - 1) *
               d.values[static_cast<size_t>(t * kColumns + v)];
      EXPECT_NEAR(S.value[static_cast<size_t>(c * kColumns + v)], sum, 1e-5);
    }
  // Token 1, row 1 is off by a quarter in the sample 3.
  const double off = 0.25 * 2 * d.decay(1, 2, kTokens - 1) * d.values[2];
  EXPECT_NEAR(S.noise[2][3], off, 1e-6);
  EXPECT_EQ(S.noise[2][2], 0);
  EXPECT_NEAR(S.moved[2], off * off, 1e-6);

  SampledRows y(kTokens, kColumns);
  d.chunk.read(S, d.chunk.copied(S, NoiseSource::state_copy, 0), {d.x, NoiseSource::read}, d.chunk.into(), 1,
               true, y);
  const double read = d.x[1] * d.decay(1, 0, 0);
  EXPECT_NEAR(y.far[0][3], off * read, 1e-6);
  EXPECT_NEAR(y.moved[0], off * off * read * read, 1e-6);
}

TEST(SampledChunk, ACopyIsOffByHalfASpacingAtMost) {
  Drawn d;
  SampledState S(kRows, kColumns);
  S.value = d.numbers(kRows * kColumns);
  const std::vector<Lanes> copy = d.chunk.copied(S, NoiseSource::state_copy, 0x1p-9f);
  double squares = 0;
  for (size_t i = 0; i < copy.size(); ++i)
    for (int s = 0; s < kNoiseSamples; ++s) {
      const double half = 0x1p-9 * binade(S.value[i]);
      EXPECT_LE(std::fabs(copy[i][s]), half);
      squares += copy[i][s] * copy[i][s] / (half * half);
    }
  EXPECT_NEAR(squares / static_cast<double>(copy.size() * kNoiseSamples), 1.0 / 3, 0.1);
  EXPECT_EQ(d.chunk.copied(S, NoiseSource::state_copy, 0x1p-9f)[2][7], copy[2][7]);
  EXPECT_NE(d.chunk.copied(S, NoiseSource::adjoint_copy, 0x1p-9f)[2][7], copy[2][7]);
}

TEST(SampledChunk, OperandsThatNothingScalesAreNotRounded) {
  Drawn d;
  d.chunk.begin(0, kTokens, std::vector<double>(kTokens * kRows, 1), false);
  for (const Lanes& noise : d.chunk.in_scores(NoiseSource::key_in_score, 1))
    for (int s = 0; s < kNoiseSamples; ++s) EXPECT_EQ(noise[s], 0);
}

TEST(SampledChunk, AStateIsTransposedWithAllItCarries) {
  SampledState S(2, 3);
  S.value = {1, 2, 3, 4, 5, 6};
  S.noise[1][5] = 7;
  const SampledState y = transposed(S);
  EXPECT_EQ(y.value, (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(y.columns, 2);
  EXPECT_EQ(y.noise[2][5], 7);
}

}  // namespace
}  // namespace assay
