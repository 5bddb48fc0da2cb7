// Steps of shadows on rows and tiles, in every instruction set of the host, against loops over elements.
#include "src/base/vm/shadow_kit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "src/base/vm/amplified.h"
#include "src/base/vm/instruction_row.h"

namespace assay::vm {
namespace {

using Row32 = std::array<double, 32>;

class Drawn {
 public:
  /// Some zero, of either sign.
  double number() {
    if (random_() % 6 == 0) return random_() % 2 ? 0.0 : -0.0;
    return std::ldexp(std::uniform_real_distribution(-1.0, 1.0)(random_),
                      static_cast<int>(random_() % 60) - 30);
  }
  template <class Range>
  void fill(Range& numbers) {
    for (double& x : numbers) x = number();
  }
  bool chance(uint32_t one_in) { return random_() % one_in == 0; }

 private:
  std::mt19937 random_{31};
};

/// A tile's operands, and what of a set's step is compared.
struct Tile {
  std::array<double, 16 * 32> a{}, a_error{}, a_bound{};
  std::array<double, 32 * 8> b{}, b_error{}, b_bound{};
  std::array<double, 16 * 8> c{}, c_error{}, c_bound{}, d{};
  std::array<double, 16 * 8> local{}, error{}, bound{}, terms{};

  TileErrors errors(int rows, int k, bool a_rounded, bool b_rounded) {
    return {.rows = rows,
            .k = k,
            .a_rounded = a_rounded,
            .b_rounded = b_rounded,
            .a = a.data(),
            .a_error = a_error.data(),
            .a_bound = a_bound.data(),
            .b = b.data(),
            .b_error = b_error.data(),
            .b_bound = b_bound.data(),
            .c = c.data(),
            .c_error = c_error.data(),
            .c_bound = c_bound.data(),
            .d = d.data(),
            .local = local.data(),
            .error = error.data(),
            .bound = bound.data(),
            .terms = terms.data()};
  }
};

TEST(ShadowKit, TilesErrAsTheirElementsDo) {
  Drawn drawn;
  for (int round = 0; round < 200; ++round) {
    Tile t;
    const bool a_rounded = round % 4 != 1, b_rounded = round % 4 < 2;
    const int rows = round % 3 ? 16 : 8, k = round % 5 ? 16 : 8;
    drawn.fill(t.a), drawn.fill(t.b), drawn.fill(t.c), drawn.fill(t.d), drawn.fill(t.c_error);
    if (a_rounded) drawn.fill(t.a_error), drawn.fill(t.a_bound);
    if (b_rounded) drawn.fill(t.b_error), drawn.fill(t.b_bound);
    for (double& x : t.a_bound) x = std::fabs(x);
    for (double& x : t.b_bound) x = std::fabs(x);
    for (const std::string& set : lane_sets()) {
      shadow_kit(set).combine_tile(t.errors(rows, k, a_rounded, b_rounded));
      for (size_t row = 0; row < static_cast<size_t>(rows); ++row)
        for (size_t n = 0; n < 8; ++n) {
          const size_t at = 8 * row + n;
          double high = t.c[at], low = 0, error = t.c_error[at], bound = t.c_bound[at];
          for (size_t i = 0; i < static_cast<size_t>(k); ++i) {
            const size_t in_a = 32 * row + i, in_b = 8 * i + n;
            const double p = t.a[in_a] * t.b[in_b], s = high + p, rest = s - high;
            low += (high - (s - rest)) + (p - rest), high = s;
            const double exact = t.b[in_b] + t.b_error[in_b];
            error += exact * t.a_error[in_a] + t.a[in_a] * t.b_error[in_b];
            bound += std::fabs(exact) * t.a_bound[in_a] + std::fabs(t.a[in_a]) * t.b_bound[in_b];
          }
          const double local = (high - t.d[at]) + low;
          double terms = std::fabs(local) + std::fabs(t.c_error[at]);
          for (size_t i = 0; i < static_cast<size_t>(k); ++i)
            terms += std::fabs((t.b[8 * i + n] + t.b_error[8 * i + n]) * t.a_error[32 * row + i]) +
                     std::fabs(t.a[32 * row + i] * t.b_error[8 * i + n]);
          ASSERT_EQ(t.local[at], local) << set << ", round " << round;
          ASSERT_EQ(t.error[at], error + local) << set << ", round " << round;
          ASSERT_EQ(t.bound[at], bound + std::fabs(local)) << set << ", round " << round;
          ASSERT_EQ(t.terms[at], terms) << set << ", round " << round;
        }
    }
  }
}

TEST(ShadowKit, PartsOfTilesFollowTheProductRule) {
  Drawn drawn;
  for (int round = 0; round < 200; ++round) {
    std::array<double, 16 * 32> a{}, a_part{};
    std::array<double, 32 * 8> b{}, b_part{};
    std::array<double, 16 * 8> c_part{}, part{};
    const bool in_a = round % 3 != 1, in_b = round % 3 != 2;
    drawn.fill(a), drawn.fill(b), drawn.fill(c_part);
    if (in_a) drawn.fill(a_part);
    if (in_b) drawn.fill(b_part);
    for (const std::string& set : lane_sets()) {
      shadow_kit(set).combine_tile_part({.rows = 16,
                                         .k = 16,
                                         .in_a = in_a,
                                         .in_b = in_b,
                                         .a = a.data(),
                                         .a_part = a_part.data(),
                                         .b = b.data(),
                                         .b_part = b_part.data(),
                                         .c_part = c_part.data(),
                                         .part = part.data()});
      for (size_t row = 0; row < 16; ++row)
        for (size_t n = 0; n < 8; ++n) {
          double sum = c_part[8 * row + n];
          for (size_t i = 0; i < 16; ++i)
            sum += b[8 * i + n] * a_part[32 * row + i] + a[32 * row + i] * b_part[8 * i + n];
          ASSERT_EQ(part[8 * row + n], sum) << set << ", round " << round;
        }
    }
  }
}

/// Where a part is 0 its slope is anything.
TEST(ShadowKit, PartsFollowSlopesAndLanesWithoutABoundAreNamed) {
  Drawn drawn;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  int bad_rounds = 0, zero_rounds = 0;
  for (int round = 0; round < 500; ++round) {
    std::array<Row32, 3> slope{}, part{};
    const int count = round % 4;
    for (int k = 0; k < count; ++k) {
      drawn.fill(slope[static_cast<size_t>(k)]);
      if (!drawn.chance(3)) drawn.fill(part[static_cast<size_t>(k)]);
      for (double& x : slope[static_cast<size_t>(k)])
        if (round % 2 && drawn.chance(20)) x = drawn.chance(2) ? kInfinity : std::nan("");
    }
    const double *slopes[] = {slope[0].data(), slope[1].data(), slope[2].data()},
                 *parts[] = {part[0].data(), part[1].data(), part[2].data()};
    Row32 expected{};
    uint32_t unbounded = 0;
    bool any = false;
    for (size_t i = 0; i < 32; ++i) {
      for (size_t k = 0; k < static_cast<size_t>(count); ++k) {
        const double term = part[k][i] != 0 ? slope[k][i] * part[k][i] : 0;
        if (std::isfinite(term))
          expected[i] += term;
        else
          unbounded |= 1u << i;
      }
      any |= expected[i] != 0;
    }
    bad_rounds += unbounded != 0, zero_rounds += !any;
    for (const std::string& set : lane_sets()) {
      Row32 sum;
      const PartSum made = shadow_kit(set).carry_part(sum.data(), count, slopes, parts);
      ASSERT_EQ(sum, expected) << set << ", round " << round;
      ASSERT_EQ(made.unbounded, unbounded) << set << ", round " << round;
      ASSERT_EQ(made.any, any) << set << ", round " << round;
    }
  }
  EXPECT_GT(bad_rounds, 50);
  EXPECT_GT(zero_rounds, 50);
}

TEST(ShadowKit, ProbesTakeWhatEntersThemByTheirFactors) {
  Drawn drawn;
  for (int round = 0; round < 200; ++round) {
    Row32 a, b, local, slope, error, start;
    drawn.fill(a), drawn.fill(b), drawn.fill(local), drawn.fill(slope), drawn.fill(error), drawn.fill(start);
    const double share = round % 2 ? 0.125 : 0, roundoff = 0x1p-50;
    const uint64_t place = static_cast<uint64_t>(round) << 40;
    const double *slopes[] = {slope.data()}, *errors[] = {error.data()};
    for (const std::string& set : lane_sets())
      for (int probe = 0; probe < 8; ++probe) {
        Row32 terms, sum = start;
        ProbeSizes sizes;
        const ShadowKit kit = shadow_kit(set);
        kit.sizes_of_terms(terms.data(), local.data(), 1, slopes, errors);
        kit.sizes_of_probes(sizes, share, a.data(), b.data(), roundoff, terms.data());
        kit.add_probe(sum.data(), sizes, place, probe);
        for (size_t i = 0; i < 32; ++i) {
          const double size = std::fabs(local[i]) + std::fabs(slope[i] * error[i]),
                       left_out = std::fabs(share * a[i] * b[i]), own = left_out + roundoff * size;
          const double added = probe == 0 ? left_out : own * probe_factor(place ^ i, probe);
          ASSERT_EQ(sum[i], start[i] + (own > 0 ? added : 0)) << set << ", round " << round;
        }
      }
  }
}

TEST(ShadowKit, ResultsAreAsFarOffAsTheirWorstOperandTimesTheirGrowth) {
  Drawn drawn;
  for (int round = 0; round < 200; ++round) {
    std::array<Row32, 3> value, of_value;
    Row32 result, error;
    drawn.fill(result), drawn.fill(error);
    for (size_t k = 0; k < 3; ++k) drawn.fill(value[k]), drawn.fill(of_value[k]);
    const int count = 1 + round % 3;
    const double *values[] = {value[0].data(), value[1].data(), value[2].data()},
                 *errors[] = {of_value[0].data(), of_value[1].data(), of_value[2].data()};
    const uint32_t mask = round % 4 ? ~0u : 0x0f0f0ff1;
    for (const std::string& set : lane_sets()) {
      ErrorGrowth g;
      shadow_kit(set).measure_growth(g, mask, result.data(), error.data(), count, values, errors);
      double largest = 0;
      for (size_t i = 0; i < 32; ++i) {
        double worst = 0;
        uint64_t which = 0;
        for (size_t k = 0; k < static_cast<size_t>(count); ++k) {
          const double off = std::fabs(of_value[k][i]) / std::fabs(value[k][i] + of_value[k][i]);
          if (of_value[k][i] != 0 && off > worst) worst = off, which = k;
        }
        ASSERT_EQ(g.operand[i], worst) << set << ", round " << round;
        ASSERT_EQ(g.which[i], which) << set << ", round " << round;
        const double relative = std::fabs(error[i]) / std::fabs(result[i] + error[i]);
        if (std::isnan(relative)) continue;
        ASSERT_EQ(g.error[i], relative) << set << ", round " << round;
        const bool counts = relative > 0 && std::isfinite(relative) && worst > 0 &&
                            std::isfinite(relative / worst) && (mask >> i & 1);
        ASSERT_EQ(g.counts[i] != 0, counts) << set << ", round " << round;
        if (!counts) continue;
        ASSERT_EQ(g.growth[i], relative / worst) << set << ", round " << round;
        ASSERT_EQ(g.error_binade[i], Binades::binade_of(relative)) << set << ", round " << round;
        ASSERT_EQ(g.growth_binade[i], Binades::binade_of(relative / worst)) << set << ", round " << round;
        largest = std::max(largest, relative);
      }
      ASSERT_EQ(g.largest, largest) << set << ", round " << round;
    }
  }
}

/// One step of one lane: `before` came back, `after` left.
double next(double& growth, double& start, double before, double after) {
  if (growth <= 1 || before <= start) growth = 1, start = before;
  const double made = std::min(growth, before / start);
  growth = std::clamp(growth * (after / before), 1.0, 0x1p+1000);
  return made;
}

TEST(ShadowKit, WhatReturnsGrowsAsInALoopOverLanes) {
  constexpr double kLeast = 0x1p-24;
  for (const std::string& set : lane_sets()) {
    Drawn drawn;
    ReturningRow row;
    row.begin();
    Row32 growth, start;
    growth.fill(1), start.fill(0);
    for (int round = 0; round < 200; ++round) {
      Row32 result, error, local;
      ErrorGrowth g;
      for (size_t i = 0; i < 32; ++i) {
        result[i] = 1 + std::fabs(drawn.number()), error[i] = drawn.number(), local[i] = drawn.number();
        g.operand[i] = std::fabs(drawn.number()), g.which[i] = drawn.chance(5) ? 0 : 1;
        g.counts[i] = drawn.chance(6) ? 0 : ~uint64_t{0};
      }
      std::array<uint64_t, 32> binade;
      shadow_kit(set).follow_returns(row, g, 2, kLeast, result.data(), error.data(), local.data(),
                                     binade.data());
      for (size_t i = 0; i < 32; ++i) {
        if (!g.counts[i]) continue;
        double made = 1;
        if (g.which[i] == 0)
          growth[i] = 1, start[i] = 0;
        else
          made = next(growth[i], start[i], std::max(g.operand[i], kLeast),
                      std::fabs(error[i] - local[i]) / std::fabs(result[i] + error[i]));
        ASSERT_EQ(binade[i], Binades::binade_of(made)) << set << ", round " << round << ", lane " << i;
      }
      for (size_t i = 0; i < 32; ++i) {
        ASSERT_EQ(row.growth[i], growth[i]) << set << ", round " << round << ", lane " << i;
        ASSERT_EQ(row.start[i], start[i]) << set << ", round " << round << ", lane " << i;
      }
    }
  }
}

TEST(ShadowKit, BinadesAreCountedInTheLanesThatCount) {
  std::mt19937 random{7};
  for (const std::string& set : lane_sets())
    for (uint32_t spread = 1; spread <= 64; ++spread) {
      std::array<uint64_t, 32> binade, lanes;
      Binades seen, expected;
      for (size_t i = 0; i < 32; ++i) {
        binade[i] = 64 - spread + random() % spread, lanes[i] = random() % 3 ? ~uint64_t{0} : 0;
        expected.counts[binade[i]] += lanes[i] != 0;
      }
      shadow_kit(set).count_binades(seen.counts.data(), binade.data(), lanes.data());
      ASSERT_EQ(seen.counts, expected.counts) << set << ", spread " << spread;
    }
}

TEST(ShadowKit, WhatReturnsIsCountedAsFarAsTheInstructionMadeIt) {
  // By lane: all errors double; another instruction of the loop shrinks them again; others grow them.
  ReturningRow row;
  row.begin();
  std::array<uint64_t, 32> binade;
  for (int i = 0; i < 10; ++i) {
    ErrorGrowth g{};
    Row32 error{};
    g.counts[0] = g.counts[1] = g.counts[2] = ~uint64_t{0};
    g.operand[0] = g.operand[2] = std::ldexp(0x1p-54, i), g.operand[1] = 0x1p-54;
    error[0] = std::ldexp(0x1p-53, i), error[1] = 0x1p-50, error[2] = g.operand[2];
    Row32 result, local{};
    for (size_t lane = 0; lane < 32; ++lane) result[lane] = 1 - error[lane];  // exactly 1 with the error
    shadow_kit().follow_returns(row, g, 1, 0x1p-100, result.data(), error.data(), local.data(),
                                binade.data());
    EXPECT_EQ(binade[1], Binades::binade_of(1));
    EXPECT_EQ(binade[2], Binades::binade_of(1));
  }
  EXPECT_EQ(binade[0], Binades::binade_of(0x1p9));
}

}  // namespace
}  // namespace assay::vm
