#include "src/base/numerics/exponential.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "src/base/numerics/multiprecision.h"

namespace assay {
namespace exponential_test {

using Exact = Mpfr<40>;

TEST(Exponential, stays_within_its_stated_error_over_its_whole_range) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform;
  double worst = 0;
  for (int i = 0; i < 150000; ++i) {
    double x = 0;
    if (i % 4 == 0) x = -708 * uniform(random);
    if (i % 4 == 1) x = -std::ldexp(uniform(random), -static_cast<int>(random() % 60));
    if (i % 4 == 2) x = 709 * uniform(random);
    // Next to the ends of the reduced range, where the polynomial is worst.
    if (i % 4 == 3)
      x = (static_cast<double>(random() % 2000) - 1000 + 0.5 + 1e-9 * (uniform(random) - 0.5)) *
          0x1.62e42fefa39efp-1;
    if (x < kExponentialMin || x > 709) continue;
    const Exact expected = exp(Exact(x));
    const double error = static_cast<double>(Exact(abs(Exact(exponential(x)) - expected) / expected));
    worst = std::max(worst, error);
    ASSERT_LE(error, kExponentialError) << x;
  }
  EXPECT_GT(worst, kExponentialError / 8);
}

TEST(Exponential, is_exact_at_zero_and_cuts_to_zero_far_below) {
  EXPECT_EQ(exponential(0), 1);
  EXPECT_EQ(exponential(-0.0), 1);
  EXPECT_EQ(exponential(-1e4), 0);
  EXPECT_EQ(exponential(-HUGE_VAL), 0);
  EXPECT_EQ(exponential(std::nextafter(kExponentialMin, -HUGE_VAL)), 0);
  EXPECT_GT(exponential(kExponentialMin), 0);
  EXPECT_TRUE(std::isinf(exponential(710)));
  EXPECT_TRUE(std::isnan(exponential(NAN)));
}

TEST(Exponential, never_exceeds_one_for_a_decay) {
  for (int e = -60; e < 10; ++e) EXPECT_LE(exponential(-std::ldexp(1.0, e)), 1) << e;
}

}  // namespace exponential_test
}  // namespace assay
