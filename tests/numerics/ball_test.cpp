// Balls hold the exact value; a twin with its rounding term taken away does not.
#include "src/base/numerics/ball.h"

#include <gtest/gtest.h>

#include <random>

#include "src/base/numerics/dual.h"
#include "src/base/numerics/multiprecision.h"

namespace assay {
namespace ball_test {

using Exact = Mpfr<200>;

Exact exact(double x) {
  return Exact(x);
}
Exact exact(DoubleDouble x) {
  return Exact(x.hi) + Exact(x.lo);
}

template <typename T>
bool holds(const Ball<T>& ball, const Exact& value) {
  return abs(exact(ball.mid) - value) <= Exact(ball.rad);
}

/// A ball and a point inside it, at its edge as often as not.
template <typename T>
std::pair<Ball<T>, Exact> draw(std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  const double mid = std::ldexp(uniform(random), static_cast<int>(random() % 40) - 20);
  const double rad =
      random() % 3 ? std::fabs(mid) * std::ldexp(std::fabs(uniform(random)), -static_cast<int>(random() % 60))
                   : 0;
  const double where = random() % 2 ? (random() % 2 ? 1 : -1) : uniform(random);
  return {Ball<T>(T(mid), rad), Exact(mid) + Exact(rad) * Exact(where)};
}

template <typename T>
void check_operations() {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const auto [a, x] = draw<T>(random);
    const auto [b, y] = draw<T>(random);
    ASSERT_TRUE(holds(a + b, x + y));
    ASSERT_TRUE(holds(a - b, x - y));
    ASSERT_TRUE(holds(a * b, x * y));
    if (b.magnitude() > 2 * b.rad) {
      ASSERT_TRUE(holds(a / b, x / y));
    }
    if (i % 10 == 0 && a.magnitude() > 2 * a.rad) {
      const bool positive = exact(a.mid) > 0;
      ASSERT_TRUE(holds(log(positive ? a : -a), log(positive ? x : -x)));
    }
    if (a.magnitude() < 100 && i % 10 == 0) {
      ASSERT_TRUE(holds(exp(a), exp(x)));
      const Ball<T> negative(exact(a.mid) < 0 ? a.mid : -a.mid, a.rad);
      ASSERT_TRUE(holds(exp(negative), exp(exact(negative.mid) + (x - exact(a.mid)))));
    }
    // Long chains stay inside too.
    Ball<T> chain = a;
    Exact value = x;
    for (int step = 0; step < 6; ++step) chain = chain * b + a, value = value * y + x;
    ASSERT_TRUE(holds(chain, value));
  }
}

TEST(Ball, over_double_holds_the_exact_value) {
  check_operations<double>();
}
TEST(Ball, over_double_double_holds_the_exact_value) {
  check_operations<DoubleDouble>();
}

TEST(Ball, without_its_radius_does_not_hold_the_exact_value) {
  std::mt19937_64 random(2);
  int lost = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto [a, x] = draw<double>(random);
    const auto [b, y] = draw<double>(random);
    lost += !holds(Ball<double>(a.mid * b.mid, 0), exact(a.mid) * exact(b.mid));
  }
  EXPECT_GT(lost, 500);
}

TEST(Ball, of_exact_numbers_has_radius_zero_where_no_operation_is_made) {
  const Ball<double> zero, three(3);
  EXPECT_EQ((zero + three).rad, 0);
  EXPECT_EQ((zero * three).rad, 0);
  EXPECT_EQ(exp(zero).rad, 0);
}

TEST(Ball, of_a_quotient_whose_divisor_may_be_zero_and_of_a_logarithm_there_is_infinite) {
  EXPECT_TRUE(std::isinf((Ball<double>(1) / Ball<double>(0.5, 0.5)).rad));
  EXPECT_TRUE(std::isinf(log(Ball<double>(0.5, 0.5)).rad));
  EXPECT_LE((Ball<double>(1) / Ball<double>(3)).rad, 0x1p-53);
  EXPECT_LE(log(Ball<DoubleDouble>(3)).rad, 0x1p-90);
}

TEST(Ball, covers_products_and_exponentials_that_underflow) {
  const Ball<double> tiny(0x1p-600);
  EXPECT_TRUE(holds(tiny * tiny, Exact(0x1p-600) * Exact(0x1p-600)));
  EXPECT_TRUE(holds(exp(Ball<double>(-1e4)), exp(Exact(-10000))));
  EXPECT_TRUE(holds(exp(Ball<DoubleDouble>(-1e4)), exp(Exact(-10000))));
}

TEST(Dual, carries_the_derivative_of_sums_products_quotients_exponentials_and_logarithms) {
  using D = Dual<Exact>;
  const Exact h = 1e-40, x = 0.7, y = -1.3;
  const auto f = [](const auto& a, const auto& b) { return exp(a * b) * a - b / a * log(a * a); };
  const D value = f(D(x, 2), D(y, -1));
  const Exact difference = (f(x + 2 * h, y - h) - f(x - 2 * h, y + h)) / (2 * h);
  EXPECT_LE(abs(value.tangent - difference), Exact(1e-70));
  EXPECT_EQ(value.value, f(x, y));
}

TEST(Interval, encloses_as_a_double_ball_what_it_holds) {
  const Interval<40> third = Interval<40>(1) / 3;
  const Ball<double> ball = enclose<40>(third);
  EXPECT_TRUE(holds(ball, Exact(1) / 3));
  EXPECT_LE(ball.rad, 0x1p-54);
  EXPECT_GT(ball.rad, 0);
  EXPECT_EQ(enclose<40>(Interval<40>(0.75)).rad, 0);
}

}  // namespace ball_test
}  // namespace assay
