// What gated slot attention writes without gates, and the bounds of a kernel that makes it in fp32.
#include "reference/bounds/gsa_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace assay {
namespace bounds_gsa_slots_test {

constexpr double u = 0x1p-24;

/// As gsa's kernels declare it (kernels/gsa/slot_launches.cpp).
Arithmetic of_fp32() {
  Arithmetic a;
  a.own_sum = 4 * u * u, a.own_weights = 11.1 * u, a.own_weights_per_nat = 3.41 * u;
  a.underflow = 0x1p-126;
  return a;
}

SliceMatrix column(const std::vector<double>& values) {
  return {static_cast<int64_t>(values.size()), 1, values, true};
}
SliceMatrix absent(size_t rows) {
  return {static_cast<int64_t>(rows), 1, std::vector<double>(rows), false};
}

/// `size` times numbers around `middle`, as fp32.
std::vector<double> drawn(size_t T, double size, double middle, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> s(T);
  for (double& x : s) x = static_cast<float>(size * (middle + normal(random)));
  return s;
}

struct Made {
  std::vector<double> w, g;
};

/// z = log sum e^s by the definition, over long double.
Made by_definition(const std::vector<double>& s) {
  Made y{{1}, {0}};
  for (size_t t = 1; t < s.size(); ++t) {
    const auto log_sum = [&](size_t n) {
      const long double top = *std::max_element(s.begin(), s.begin() + n);
      long double sum = 0;
      for (size_t i = 0; i < n; ++i) sum += std::exp(static_cast<long double>(s[i]) - top);
      return std::pair{top, std::log(sum)};
    };
    const auto [top, z] = log_sum(t + 1);
    const auto [top_before, before] = log_sum(t);
    y.w.push_back(static_cast<double>(std::exp(s[t] - top - z)));
    y.g.push_back(static_cast<double>(std::fmax(top_before - top + (before - z), -1e4L)));
  }
  return y;
}

/// What the kernel does, its exponential and logarithm correctly rounded; `in_two`: z keeps what rounding it
/// loses.
Made in_fp32(const std::vector<double>& s, bool in_two) {
  Made y{{1}, {0}};
  float high = static_cast<float>(s[0]), low = 0;
  for (size_t t = 1; t < s.size(); ++t) {
    const float s_t = static_cast<float>(s[t]), x = (s_t - high) - low, size = -std::fabs(x);
    const float least = static_cast<float>(std::exp(static_cast<double>(size))),
                tail = static_cast<float>(std::log1p(static_cast<double>(least)));
    const float share = 1.0f / (1.0f + least);
    y.w.push_back(x > 0 ? share : least * share);
    y.g.push_back(std::fmax(-((x > 0 ? x : 0.0f) + tail), -1e4f));
    const float a = x > 0 ? s_t : high, b = x > 0 ? tail : low + tail;
    high = a + b;
    const float of_b = high - a;
    low = in_two ? (a - (high - of_b)) + (b - of_b) : 0.0f;
  }
  return y;
}

/// Largest error / bound of both.
double ratio(const GsaSlots& slots, const Made& made) {
  double largest = 0;
  for (size_t t = 0; t < made.w.size(); ++t) {
    const double w = std::fabs(made.w[t] - slots.w[t]), g = std::fabs(made.g[t] - slots.g[t]);
    if (w > 0) largest = std::fmax(largest, w / slots.w_error[t]);
    if (g > 0) largest = std::fmax(largest, g / slots.g_error[t]);
  }
  return largest;
}

struct Row {
  double size, middle;
};
constexpr Row kRows[] = {{1e-3, 0}, {1, 0}, {1, 100}, {30, 0}, {1e3, 2}, {1e6, 0}};

TEST(GsaSlots, are_what_the_definition_says) {
  Arithmetic nothing;
  nothing.underflow = 0x1p-1000;
  for (const Row& row : kRows) {
    const std::vector<double> s = drawn(300, row.size, row.middle, 1);
    const GsaSlots slots(column(s), absent(s.size()), nothing);
    EXPECT_LE(ratio(slots, by_definition(s)), 1) << row.size << ' ' << row.middle;
    EXPECT_EQ(slots.w[0], 1);
    EXPECT_EQ(slots.g_error[0] + slots.w_error[0], 0);
  }
}

TEST(GsaSlots, bound_what_a_kernel_in_fp32_makes_and_are_not_vacuous) {
  for (const Row& row : kRows)
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const std::vector<double> s = drawn(4000, row.size, row.middle, seed);
      const double largest = ratio(GsaSlots(column(s), absent(s.size()), of_fp32()), in_fp32(s, true));
      EXPECT_LE(largest, 1) << row.size << ' ' << row.middle << " seed " << seed;
      if (row.size <= 30) {
        EXPECT_GE(largest, 0.02) << row.size << ' ' << row.middle << " seed " << seed;
      }
    }
}

/// Where every token adds to z, what rounding loses of it adds up.
TEST(GsaSlots, of_a_sum_in_one_fp32_number_are_outside) {
  const std::vector<double> s = drawn(4000, 1e-2, 3e4, 1);
  const GsaSlots slots(column(s), absent(s.size()), of_fp32());
  EXPECT_LE(ratio(slots, in_fp32(s, true)), 1);
  EXPECT_GT(ratio(slots, in_fp32(s, false)), 1);
}

TEST(GsaSlots, that_are_given_are_exact) {
  const std::vector<double> s = drawn(5, 1, 0, 1), g = {0, -1, -2, -3, -1e4};
  const GsaSlots slots(column(s), column(g), of_fp32());
  EXPECT_FALSE(slots.own);
  EXPECT_EQ(slots.w, s);
  EXPECT_EQ(slots.g, g);
  for (size_t t = 0; t < s.size(); ++t) EXPECT_EQ(slots.w_error[t] + slots.g_error[t], 0);
}

}  // namespace bounds_gsa_slots_test
}  // namespace assay
