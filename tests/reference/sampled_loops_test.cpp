// Every loop against its sum written out, and all instruction sets against each other.
#include "reference/sampled_loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace assay {
namespace sampled_loops_test {

/// No multiples of any tile.
constexpr int64_t kRows = 7, kInner = 5, kColumns = 37;

std::vector<float> numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> y;
  for (int64_t i = 0; i < count; ++i) y.push_back(i % 5 == 3 ? 0 : normal(random));
  return y;
}
std::vector<Lanes> samples(int64_t count, unsigned seed) {
  const std::vector<float> x = numbers(count * kNoiseSamples, seed + 100);
  std::vector<Lanes> y(static_cast<size_t>(count));
  for (size_t i = 0; i < y.size(); ++i)
    for (int s = 0; s < kNoiseSamples; ++s)
      y[i][s] = i % 7 == 2 ? 0 : x[i * kNoiseSamples + static_cast<size_t>(s)];
  return y;
}

/// One sample of it.
float sample(float x, int) {
  return x;
}
float sample(const Lanes& x, int s) {
  return x[s];
}
template <typename Number>
void expect_equal(const std::vector<Number>& x, const std::vector<Number>& y, std::string_view set) {
  ASSERT_EQ(x.size(), y.size());
  EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size() * sizeof x[0]), 0) << set;
}

/// By the loops, and by the sum as its declaration has it.
template <typename Factor, typename From, typename To>
void expect_products(void (*SampledLoops::*loop)(const SampledProduct<Factor, From, To>&),
                     const std::vector<Factor>& x, const std::vector<From>& from, const std::vector<To>& y0) {
  for (const bool transposed : {false, true}) {
    const int64_t x_row = transposed ? 1 : kInner, x_inner = transposed ? kRows : 1;
    std::vector<To> expected = y0;
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t i = 0; i < kInner; ++i)
        for (int64_t c = 0; c < kColumns; ++c)
          expected[static_cast<size_t>(r * kColumns + c)] +=
              x[static_cast<size_t>(r * x_row + i * x_inner)] * from[static_cast<size_t>(i * kColumns + c)];
    for (const SampledLoops& loops : runnable_sampled_loops()) {
      std::vector<To> y = y0;
      (loops.*loop)({kRows, kInner, kColumns, x.data(), x_row, x_inner, from.data(), y.data()});
      expect_equal(y, expected, loops.instruction_set);
    }
  }
}

TEST(SampledLoops, ProductsAreTheSumsInTheirOrder) {
  expect_products(&SampledLoops::samples_times_numbers, samples(kRows * kInner, 1),
                  numbers(kInner * kColumns, 2), samples(kRows * kColumns, 3));
  expect_products(&SampledLoops::numbers_times_samples, numbers(kRows * kInner, 4),
                  samples(kInner * kColumns, 5), samples(kRows * kColumns, 6));
  expect_products(&SampledLoops::numbers_times_numbers, numbers(kRows * kInner, 7),
                  numbers(kInner * kColumns, 8), numbers(kRows * kColumns, 9));
  const auto doubles = [](const std::vector<float>& x) { return std::vector<double>(x.begin(), x.end()); };
  expect_products(&SampledLoops::doubles_times_doubles, doubles(numbers(kRows * kInner, 10)),
                  doubles(numbers(kInner * kColumns, 11)), doubles(numbers(kRows * kColumns, 12)));
}

TEST(SampledLoops, AFactorOfZeroTakesNothingOfWhatIsNotFinite) {
  for (const SampledLoops& loops : runnable_sampled_loops()) {
    std::vector<float> x = {0, 2}, from(2 * kColumns, 1), y(kColumns);
    std::fill_n(from.begin(), kColumns, INFINITY);
    loops.numbers_times_numbers({1, 2, kColumns, x.data(), 2, 1, from.data(), y.data()});
    std::vector<Lanes> lanes(2), lanes_y(kColumns), wide(2 * kColumns);
    lanes[1] = Lanes{} + 2;
    loops.samples_times_numbers({1, 2, kColumns, lanes.data(), 2, 1, from.data(), lanes_y.data()});
    for (int64_t c = 0; c < kColumns; ++c) {
      const auto i = static_cast<size_t>(c);
      EXPECT_EQ(y[i], 2) << loops.instruction_set;
      EXPECT_EQ(lanes_y[i][5], 2) << loops.instruction_set;
      wide[i] = Lanes{} + INFINITY, wide[i + kColumns] = Lanes{} + 1, lanes_y[i] = Lanes{};
    }
    loops.numbers_times_samples({1, 2, kColumns, x.data(), 2, 1, wide.data(), lanes_y.data()});
    for (const Lanes& of : lanes_y) EXPECT_EQ(of[0], 2) << loops.instruction_set;
    // One sample that is 0 says nothing about the others.
    lanes[0][3] = 1;
    loops.samples_times_numbers({1, 2, kColumns, lanes.data(), 2, 1, from.data(), lanes_y.data()});
    EXPECT_EQ(lanes_y[0][3], INFINITY) << loops.instruction_set;
  }
}

/// Loops that take a state of such numbers against its sum written out.
template <typename Number, typename Loop>
void expect_contraction(const Loop& loop, const std::vector<Number>& state, const std::vector<Number>& y0,
                        std::string_view set) {
  const std::vector<float> weights = numbers(kInner * kRows, 1), values = numbers(kInner * kColumns, 2);
  std::vector<Number> expected = y0, y = y0;
  for (int64_t t = 0; t < kInner; ++t)
    for (int64_t c = 0; c < kRows; ++c) {
      Number sum = {};
      for (int64_t v = 0; v < kColumns; ++v)
        sum += state[static_cast<size_t>(c * kColumns + v)] * values[static_cast<size_t>(t * kColumns + v)];
      const auto i = static_cast<size_t>(t * kRows + c);
      if (weights[i] != 0) expected[i] += weights[i] * sum;
    }
  loop(SampledContraction<Number>{kInner, kRows, kColumns, weights.data(), state.data(), values.data(),
                                  y.data()});
  expect_equal(y, expected, set);
}

TEST(SampledLoops, ContractionsAreTheSumsOverColumns) {
  for (const SampledLoops& loops : runnable_sampled_loops())
    expect_contraction(loops.contract_samples, samples(kRows * kColumns, 3), samples(kInner * kRows, 4),
                       loops.instruction_set);
  expect_contraction(contract_numbers, numbers(kRows * kColumns, 5), numbers(kInner * kRows, 6), "any");
}

TEST(SampledLoops, DecaysMultiplyEveryToken) {
  for (const SampledLoops& loops : runnable_sampled_loops()) {
    const std::vector<float> a = numbers(kColumns, 1), x = numbers(3 * kColumns, 2);
    std::vector<float> y = x;
    loops.decay({2, kColumns, a.data(), y.data()});
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(y[i], i < 2 * kColumns ? x[i] * a[i % kColumns] : x[i]) << loops.instruction_set;
  }
}

/// The scores of one query with kScored keys, and what they are made of.
constexpr int64_t kScored = 3;
struct Scored {
  std::vector<float> q = numbers(kColumns, 1), k = numbers(kScored * kColumns, 2),
                     w = numbers(kScored * kColumns, 5), along = numbers(kScored, 6);
  std::vector<Lanes> of_query = samples(kColumns, 3), of_key = samples(kScored * kColumns, 4);
  std::vector<float> value = std::vector<float>(kScored), squares = value, common = value,
                     by_query = numbers(kColumns, 7), by_key = numbers(kScored * kColumns, 8);
  std::vector<Lanes> noise = std::vector<Lanes>(kScored);

  Scored() {
    for (float& x : w) x = 1 / (1 + x * x);
  }
  void run(const SampledLoops& loops, bool noisy, bool directed) {
    SampledScores y{
        .K = kColumns, .count = kScored, .q = q.data(), .k = k.data(), .w = w.data(), .scale = 0.5f};
    y.u = 0x1p-9f;
    if (noisy) y.query_noise = of_query.data(), y.key_noise = of_key.data();
    y.value = value.data(), y.squares = squares.data(), y.common = common.data(), y.noise = noise.data();
    if (directed) y.along = along.data(), y.by_query = by_query.data(), y.by_key = by_key.data();
    loops.scores(y);
  }
};

TEST(SampledLoops, ScoresHaveTheirTermsAndTheNoiseOfTheirOperands) {
  // Sums of kColumns terms in another order: within kColumns units of the sum of their sizes.
  const double u = kColumns * 0x1p-24;
  for (const SampledLoops& loops : runnable_sampled_loops())
    for (const bool noisy : {false, true}) {
      Scored y;
      y.run(loops, noisy, true);
      const Scored before;
      std::vector<double> by_query(before.by_query.begin(), before.by_query.end());
      for (size_t j = 0; j < kScored; ++j) {
        double value = 0, squares = 0, common = 0, noise = 0, size = 0, common_size = 0, noise_size = 0;
        for (size_t c = 0; c < kColumns; ++c) {
          const size_t i = j * kColumns + c;
          const double term = double{y.q[c]} * y.w[i] * y.k[i] * 0.5, alike_part = 2 * alike(y.w[i], 0x1p-9f),
                       off = double{y.of_query[c][7]} + y.of_key[i][7];
          value += term, squares += term * term, size += std::fabs(term);
          common += term * alike_part, common_size += std::fabs(term * alike_part);
          noise += term * off, noise_size += std::fabs(term * off);
          by_query[c] += term * y.along[j];
          EXPECT_NEAR(y.by_key[i], before.by_key[i] + term * y.along[j], 0x1p-20) << loops.instruction_set;
        }
        EXPECT_NEAR(y.value[j], value, u * size) << loops.instruction_set;
        EXPECT_NEAR(y.squares[j], squares, 2 * u * squares);
        EXPECT_NEAR(y.common[j], noisy ? common : 0, noisy ? u * common_size : 0);
        EXPECT_NEAR(y.noise[j][7], noisy ? noise : 0, noisy ? u * noise_size : 0);
      }
      for (size_t c = 0; c < kColumns; ++c) EXPECT_NEAR(y.by_query[c], by_query[c], 0x1p-20);
    }
}

TEST(SampledLoops, ScoresAreTheSameBitsInAllInstructionSets) {
  for (const bool noisy : {false, true})
    for (const bool directed : {false, true}) {
      Scored first;
      first.run(runnable_sampled_loops().front(), noisy, directed);
      for (const SampledLoops& loops : runnable_sampled_loops()) {
        Scored y;
        y.run(loops, noisy, directed);
        for (const auto member :
             {&Scored::value, &Scored::squares, &Scored::common, &Scored::by_query, &Scored::by_key})
          expect_equal(y.*member, first.*member, loops.instruction_set);
        expect_equal(y.noise, first.noise, loops.instruction_set);
      }
    }
}

TEST(SampledLoops, WhatIsNoNormalNumberIsZeroWithinALoopAlone) {
  for (const SampledLoops& loops : runnable_sampled_loops()) {
    const std::vector<float> a(kColumns, 0x1p-70f);
    std::vector<float> y(kColumns, 0x1p-70f);
    loops.decay({1, kColumns, a.data(), y.data()});
#if defined(__x86_64__)
    for (const float x : y) EXPECT_EQ(x, 0) << loops.instruction_set;
#endif
    volatile float outside = 0x1p-70f;
    EXPECT_GT(outside * outside, 0) << loops.instruction_set;
  }
}

/// The rows that a pair adds to.
struct PairRows {
  std::vector<Lanes> near = std::vector<Lanes>(4 * kColumns);
  std::vector<float> common = std::vector<float>(4 * kColumns), squares = common;

  SampledPair::Row row(int64_t i) {
    return {near.data() + i * kColumns, common.data() + i * kColumns, squares.data() + i * kColumns};
  }
};

TEST(SampledLoops, APairAddsToBothGradientsAndToTheDecaysBetween) {
  const std::vector<float> q = numbers(kColumns, 1), k = numbers(kColumns, 2), w(kColumns, 0.75f);
  const std::vector<Lanes> of_query = samples(kColumns, 3), of_key = samples(kColumns, 4), of = samples(3, 6);
  for (const bool crossed : {false, true}) {
    std::vector<PairRows> results;
    for (const SampledLoops& loops : runnable_sampled_loops()) {
      PairRows y;
      SampledPair p{.K = kColumns,
                    .q = q.data(),
                    .k = k.data(),
                    .w = w.data(),
                    .M = 1.5f,
                    .squares = 0.5f,
                    .u = 0x1p-9f};
      p.of_dq = of[0], p.of_dk = of[1], p.of_dg = of[0] + of[1];
      p.query_noise = of_query.data(), p.key_noise = of_key.data();
      p.dq = y.row(0), p.dk = y.row(1);
      if (crossed) p.dg_from = y.row(2), p.dg_to = y.row(3);
      loops.pair(p);
      for (size_t c = 0; c < kColumns; ++c) {
        const float dq = (of[0][2] + 1.5f * of_key[c][2]) * (k[c] * 0.75f),
                    dk = (of[1][2] + 1.5f * of_query[c][2]) * (q[c] * 0.75f),
                    dg = (of[0][2] + of[1][2] + 1.5f * (of_key[c][2] + of_query[c][2])) *
                         (q[c] * 0.75f * k[c]);
        EXPECT_EQ(y.near[c][2], dq);
        EXPECT_EQ(y.near[kColumns + c][2], dk);
        EXPECT_EQ(y.near[2 * kColumns + c][2], crossed ? dg : 0);
        EXPECT_EQ(y.near[3 * kColumns + c][2], crossed ? -dg : 0);
        EXPECT_EQ(y.squares[c], 0.5f * (k[c] * 0.75f) * (k[c] * 0.75f));
        EXPECT_EQ(y.common[2 * kColumns + c], -y.common[3 * kColumns + c]);
      }
      results.push_back(std::move(y));
    }
    for (const PairRows& y : results) {
      expect_equal(y.near, results[0].near, "near");
      expect_equal(y.common, results[0].common, "common"),
          expect_equal(y.squares, results[0].squares, "squares");
    }
  }
}

TEST(SampledLoops, DrawsAreUniformAndOfTheirPlace) {
  const std::vector<float> amplitudes(4096, 0.25f);
  std::vector<Lanes> first(amplitudes.size());
  for (const SampledLoops& loops : runnable_sampled_loops()) {
    std::vector<Lanes> y(amplitudes.size());
    loops.draw(12345, amplitudes.data(), 4096, y.data());
    double sum = 0, squares = 0;
    for (const Lanes& of : y)
      for (int s = 0; s < kNoiseSamples; ++s) {
        ASSERT_LE(std::fabs(of[s]), 0.25f);
        sum += double{of[s]}, squares += double{of[s]} * double{of[s]};
      }
    const double n = 4096 * kNoiseSamples;
    EXPECT_LT(std::fabs(sum / n), 6 * 0.25 / std::sqrt(3 * n));
    EXPECT_NEAR(squares / n, 0.0625 / 3, 6 * 0.0625 * std::sqrt(4 / 45.0 / n));
    Lanes alone;
    loops.draw(12345 + 77 * kNextPlace, amplitudes.data(), 1, &alone);
    EXPECT_EQ(std::memcmp(&alone, &y[77], sizeof alone), 0) << loops.instruction_set;
    EXPECT_NE(std::memcmp(&alone, &y[78], sizeof alone), 0) << loops.instruction_set;
    if (loops.instruction_set == "baseline") first = y;
    expect_equal(y, first, loops.instruction_set);
  }
}

TEST(SampledLoops, MomentsAndPairsAreSumsOfProducts) {
  const std::vector<Lanes> e = samples(kColumns, 1), other = samples(kColumns, 2);
  const std::vector<float> x = numbers(kColumns, 3);
  for (const SampledLoops& loops : runnable_sampled_loops()) {
    SampledMoments sums;
    loops.add_moments(e.data(), x.data(), 2, kColumns, sums);
    Lanes pairs[kNoiseSamples] = {};
    loops.add_pairs(e.data(), other.data(), 3, 12, pairs);
    for (int a = 0; a < kNoiseSamples; ++a) {
      float along = 0, summed = 0;
      for (size_t i = 0; i < kColumns; ++i) along += e[i][a] * 2 * x[i], summed += e[i][a] * 2;
      EXPECT_EQ(sums.along[a], along);
      EXPECT_EQ(sums.summed[a], summed);
      for (int b = 0; b < kNoiseSamples; ++b) {
        float gram = 0, pair = 0;
        for (size_t i = 0; i < kColumns; ++i) gram += e[i][b] * 2 * (e[i][a] * 2);
        for (size_t i = 0; i < 12; ++i) pair += e[3 * i][a] * other[3 * i][b];
        EXPECT_EQ(sums.gram[a][b], gram) << loops.instruction_set;
        EXPECT_EQ(pairs[a][b], pair);
      }
    }
  }
}

}  // namespace sampled_loops_test
}  // namespace assay
