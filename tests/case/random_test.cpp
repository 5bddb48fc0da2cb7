#include "src/case/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

TEST(Random, LogarithmAndExponentialAgreeWithTheLibraryTo50Bits) {
  for (int i = 1; i < 20000; ++i) {
    const double x = std::exp((i - 10000) * 0.07);
    if (x == 0 || std::isinf(x)) continue;
    EXPECT_NEAR(portable_log(x), std::log(x), 0x1p-50 * std::max(1.0, std::fabs(std::log(x)))) << x;
    const double y = (i - 10000) * 0.07;
    EXPECT_NEAR(portable_exp(y), std::exp(y), 0x1p-50 * std::exp(y) + 0x1p-1074) << y;
  }
}

TEST(Random, QuantileInvertsTheNormalDistribution) {
  for (int i = 1; i < 4000; ++i) {
    const double p = i / 4000.0, x = normal_quantile(p);
    // dp = density * dx; the quantile promises 2e-9 relative.
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
    EXPECT_NEAR(std::erfc(-x / std::sqrt(2.0)) / 2, p, density * std::fabs(x) * 2e-9 + 1e-15) << p;
  }
  EXPECT_NEAR(normal_quantile(0x1p-53), -8.2095361516, 1e-7);
}

TEST(Random, BitsAreThoseRecordedOnOtherHosts) {
  const RandomStream random(42, "q");
  EXPECT_EQ(random.bits({0, 0, 0, 0}), 10181660856104339440u);
  EXPECT_EQ(random.bits({1, 17, 3, 63}, 2), 7641064836397400798u);
  EXPECT_EQ(random.normal({1, 17, 3, 63}), 0x1.0de4c93204edfp+0);
}

TEST(Random, CoordinatesLanesSeedsAndNamesAllMatter) {
  const RandomStream q(42, "q"), k(42, "k"), other(43, "q");
  const Coordinates at{1, 2, 3, 4};
  EXPECT_NE(q.bits(at), k.bits(at));
  EXPECT_NE(q.bits(at), other.bits(at));
  for (const Coordinates& near :
       {Coordinates{2, 2, 3, 4}, {1, 3, 3, 4}, {1, 2, 4, 4}, {1, 2, 3, 5}, {2, 1, 3, 4}}) {
    EXPECT_NE(q.bits(at), q.bits(near));
  }
  EXPECT_NE(q.bits(at, 0), q.bits(at, 1));
}

TEST(Random, NormalsHaveTheMomentsOfTheNormalDistribution) {
  const RandomStream random(1, "q");
  const int n = 100000;
  double sum = 0, squares = 0, fourth = 0;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal({0, i, 0, 0});
    sum += x, squares += x * x, fourth += x * x * x * x;
  }
  // Five standard errors: sqrt(1/n), sqrt(2/n), sqrt(96/n).
  EXPECT_NEAR(sum / n, 0, 5 * std::sqrt(1.0 / n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96.0 / n));
}

TEST(Random, BelowStaysBelowAndReachesEveryValue) {
  const RandomStream random(7, "k");
  std::vector<int> seen(10);
  for (int i = 0; i < 1000; ++i) ++seen.at(static_cast<size_t>(random.below(10, {0, i, 0, 0})));
  for (int count : seen) EXPECT_GT(count, 50);
  EXPECT_EQ(random.below(1, {}), 0);
}

}  // namespace
}  // namespace assay
