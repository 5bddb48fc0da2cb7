// Double-double operations against MPFR at 400 bits.
#include "src/base/numerics/double_double.h"

#include <gtest/gtest.h>

#include <random>

#include "src/base/numerics/multiprecision.h"
#include "src/base/numerics/rounding.h"

namespace assay {
namespace {

using Exact = Mpfr<120>;

Exact exact(DoubleDouble x) {
  return Exact(x.hi) + Exact(x.lo);
}

DoubleDouble draw(std::mt19937_64& random, int exponents) {
  std::uniform_real_distribution<double> uniform(1, 2);
  const int e = static_cast<int>(random() % static_cast<uint64_t>(2 * exponents + 1)) - exponents;
  const double hi = std::ldexp(uniform(random), e) * (random() % 2 ? 1 : -1);
  const double lo =
      random() % 8 ? std::ldexp(uniform(random) - 1.5, e - 53 - static_cast<int>(random() % 3)) : 0;
  return quick_two_sum(hi, lo);
}

void expect_within(DoubleDouble got, const Exact& expected, double relative, const char* what) {
  const Exact error = abs(exact(got) - expected);
  ASSERT_LE(error, abs(expected) * Exact(relative))
      << what << " error / bound " << Exact(error / (abs(expected) * Exact(relative)));
}

TEST(DoubleDouble, sums_products_and_quotients_stay_within_the_stated_roundoff) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const DoubleDouble a = draw(random, 60);
    DoubleDouble b = draw(random, 60);
    if (i % 3 == 0) b = DoubleDouble(-a.hi, a.lo * 0.75);  // cancellation
    expect_within(a + b, exact(a) + exact(b), kDoubleDoubleRoundoff, "sum");
    expect_within(a - b, exact(a) - exact(b), kDoubleDoubleRoundoff, "difference");
    expect_within(a * b, exact(a) * exact(b), kDoubleDoubleRoundoff, "product");
    expect_within(a / b, exact(a) / exact(b), kDoubleDoubleQuotientError, "quotient");
  }
}

TEST(DoubleDouble, error_free_transformations_are_free_of_error) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100000; ++i) {
    const double a = draw(random, 300).hi, b = draw(random, 300).hi;
    ASSERT_EQ(exact(two_sum(a, b)), Exact(a) + Exact(b));
    ASSERT_EQ(exact(two_product(a, b)), Exact(a) * Exact(b));
  }
}

TEST(DoubleDouble, exponential_stays_within_its_stated_error_down_to_its_cut) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform;
  double worst = 0;
  for (int i = 0; i < 30000; ++i) {
    double hi = i % 3 == 0   ? -600 * uniform(random)
                : i % 3 == 1 ? std::ldexp(uniform(random) - 0.5, -static_cast<int>(random() % 80))
                             : 80 * (uniform(random) - 0.5);
    const DoubleDouble x = quick_two_sum(hi, hi * 0x1p-54 * (uniform(random) - 0.5));
    const Exact expected = exp(exact(x));
    expect_within(exp(x), expected, kDoubleDoubleExponentialError, "exponential");
    worst = std::max(worst, static_cast<double>(Exact(abs(exact(exp(x)) - expected) / expected)));
  }
  EXPECT_GT(worst, kDoubleDoubleExponentialError * 0x1p-12);  // the stated error is not vacuous
  EXPECT_EQ(exp(DoubleDouble(-601)).hi, 0);
  EXPECT_TRUE(exp(DoubleDouble(0)) == DoubleDouble(1));
  EXPECT_TRUE(std::isnan(exp(DoubleDouble(NAN)).hi));
}

}  // namespace
}  // namespace assay
