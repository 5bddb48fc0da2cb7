// Samples of a softmax and of its gradient against those functions of each sample's own numbers.
#include "reference/sampled_softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace assay {
namespace sampled_softmax_test {

constexpr int64_t kTokens = 4, kSlots = 6;
constexpr size_t kSize = kTokens * kSlots;
constexpr float kUnit = 0x1p-9f;

struct Drawn {
  SampledChunk chunk{Slice{}, kSlots, kUnit};
  std::mt19937 random{7};
  SampledWeights numbers(float size, float noise) {
    std::normal_distribution<float> normal;
    SampledWeights y(kSize);
    for (size_t i = 0; i < kSize; ++i) {
      y.value[i] = size * normal(random);
      for (int l = 0; l < kNoiseSamples; ++l)
        y.near[i][l] = noise * normal(random), y.far[i][l] = noise * normal(random);
    }
    return y;
  }
};

double of_sample(const SampledWeights& x, size_t i, int sample) {
  return static_cast<double>(x.value[i]) + static_cast<double>(x.near[i][sample]) +
         static_cast<double>(x.far[i][sample]);
}

/// softmax of a sample's y; sample -1: of y itself.
std::vector<double> softmax_of(const SampledWeights& y, int sample) {
  std::vector<double> p(kSize);
  for (size_t from = 0; from < kSize; from += kSlots) {
    double sum = 0;
    for (size_t i = from; i < from + kSlots; ++i)
      sum += p[i] = std::exp(sample < 0 ? static_cast<double>(y.value[i]) : of_sample(y, i, sample));
    for (size_t i = from; i < from + kSlots; ++i) p[i] /= sum;
  }
  return p;
}

TEST(SampledSoftmax, IsThatOfEachSample) {
  Drawn d;
  const SampledWeights y = d.numbers(2, 0.05f), p = sampled_softmax(d.chunk, kSlots, {}, y);
  const std::vector<double> exact = softmax_of(y, -1);
  for (size_t i = 0; i < kSize; ++i) {
    EXPECT_NEAR(p.value[i], exact[i], 1e-6) << i;
    EXPECT_EQ(p.moved[i], 0) << i;
  }
  for (int l = 0; l < kNoiseSamples; ++l) {
    const std::vector<double> of_l = softmax_of(y, l);
    for (size_t i = 0; i < kSize; ++i) EXPECT_NEAR(of_sample(p, i, l), of_l[i], 1e-6) << i << " " << l;
  }
}

TEST(SampledSoftmax, GradientIsThatOfEachSample) {
  Drawn d;
  const SampledWeights p = sampled_softmax(d.chunk, kSlots, {}, d.numbers(2, 0.05f)), dp = d.numbers(3, 0.1f),
                       dy = sampled_softmax_gradient(d.chunk, kSlots, {}, p, dp);
  for (int l = 0; l < kNoiseSamples; ++l)
    for (size_t from = 0; from < kSize; from += kSlots) {
      double mean = 0;
      for (size_t i = from; i < from + kSlots; ++i) mean += of_sample(p, i, l) * of_sample(dp, i, l);
      for (size_t i = from; i < from + kSlots; ++i)
        EXPECT_NEAR(of_sample(dy, i, l), of_sample(p, i, l) * (of_sample(dp, i, l) - mean), 1e-5) << i;
    }
}

/// In units of a weight's last place, mean over all samples: a uniform draw from half a unit either way.
TEST(SampledSoftmax, StoringRoundsAWeightToItsFormat) {
  Drawn d;
  const SampledWeights y = d.numbers(0.5f, 0), p = sampled_softmax(d.chunk, kSlots, {.weight = kUnit}, y);
  double squares = 0;
  for (size_t i = 0; i < kSize; ++i)
    for (int l = 0; l < kNoiseSamples; ++l) {
      const double units = static_cast<double>(p.near[i][l] / (2 * kUnit * binade(p.value[i])));
      EXPECT_LE(std::fabs(units), 0.5);
      squares += units * units / (kSize * kNoiseSamples);
    }
  EXPECT_NEAR(squares, 1.0 / 12, 0.02);
}

/// Of y = 30 against 0, where nothing but e^-30 moves, and by as many nats as y.
TEST(SampledSoftmax, IsNotJudgedWhereWhatIsLeftOfTheWeightsIsTooNoisy) {
  for (const float noise : {0.05f, 1.0f}) {
    Drawn d;
    SampledWeights y = d.numbers(0.1f, noise);
    for (size_t t = 0; t < kTokens; ++t) y.value[t * kSlots] = 30;
    const SampledWeights p = sampled_softmax(d.chunk, kSlots, {}, y);
    for (size_t i = 0; i < kSize; ++i) EXPECT_EQ(std::isinf(p.moved[i]), noise == 1) << i;
  }
}

/// eta of the largest slot alone: it moves by p (1 - p) eta, the others by their share of that.
TEST(SampledSoftmax, WhatLogitsMayBeOffByIsSharedByTheWeights) {
  Drawn d;
  SampledWeights y = d.numbers(1, 0);
  constexpr float kOff = 1e-3f;
  y.moved[2] = kOff * kOff;
  const SampledWeights p = sampled_softmax(d.chunk, kSlots, {}, y);
  const float w = p.value[2];
  EXPECT_NEAR(std::sqrt(p.moved[2]), w * (1 - w) * kOff, 1e-8);
  EXPECT_NEAR(std::sqrt(p.moved[3]), p.value[3] * w * kOff, 1e-8);
}

}  // namespace sampled_softmax_test
}  // namespace assay
