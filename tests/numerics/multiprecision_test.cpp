// Ends of intervals against those of the exact results, of every pattern of signs.
#include "src/base/numerics/multiprecision.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace assay {
namespace multiprecision_test {

using Narrow = Interval<40>;
using Exact = Mpfr<400>;  // sums and products of two ends take no more

Exact exact(const Mpfr<40>& x) {
  Exact y;
  mpfr_set(y.data(), x.data(), MPFR_RNDN);
  return y;
}
Mpfr<40> rounded(const Exact& x, mpfr_rnd_t direction) {
  Mpfr<40> y;
  mpfr_set(y.data(), x.data(), direction);
  return y;
}

/// Both ends of 40 digits, at zero now and then.
Narrow draw(std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto end = [&] {
    return random() % 6 == 0 ? Narrow(0) : Narrow(std::ldexp(uniform(random), int(random() % 80) - 40)) / 3;
  };
  const Mpfr<40> a = end().left(), b = random() % 4 == 0 ? a : end().left();
  return a <= b ? Narrow(a, b) : Narrow(b, a);
}

/// The results of the ends' four pairs; of a continuous operation all others lie between them.
template <typename Operation>
void expect_tight(const Narrow& a, const Narrow& b, const Narrow& got, const Operation& of,
                  const char* what) {
  std::vector<Exact> results;
  for (const auto* x : {&a.left(), &a.right()})
    for (const auto* y : {&b.left(), &b.right()}) results.push_back(of(exact(*x), exact(*y)));
  const auto [least, greatest] = std::minmax_element(results.begin(), results.end());
  ASSERT_EQ(got.left(), rounded(*least, MPFR_RNDD)) << what << " of " << a.left() << ", " << a.right();
  ASSERT_EQ(got.right(), rounded(*greatest, MPFR_RNDU)) << what << " of " << a.left() << ", " << a.right();
}

TEST(Interval, EndsAreThoseOfTheExactResultsRoundedOutwards) {
  std::mt19937_64 random(1);
  std::array<int, 9> patterns{};
  int divided = 0;
  for (int i = 0; i < 20000; ++i) {
    const Narrow a = draw(random), b = draw(random);
    const auto sign = [](const Narrow& x) { return x.left() >= 0 ? 0 : x.right() <= 0 ? 1 : 2; };
    ++patterns[static_cast<size_t>(3 * sign(a) + sign(b))];
    expect_tight(
        a, b, a + b, [](const Exact& x, const Exact& y) { return x + y; }, "sum");
    expect_tight(
        a, b, a - b, [](const Exact& x, const Exact& y) { return x - y; }, "difference");
    expect_tight(
        a, b, a * b, [](const Exact& x, const Exact& y) { return x * y; }, "product");
    expect_tight(
        a, a, -a, [](const Exact& x, const Exact&) { return -x; }, "negation");
    if (!(b.left() > 0 || b.right() < 0)) continue;
    ++divided;
    expect_tight(
        a, b, a / b, [](const Exact& x, const Exact& y) { return x / y; }, "quotient");
  }
  for (const int count : patterns) EXPECT_GT(count, 100);
  EXPECT_GT(divided, 1000);
}

TEST(Interval, AMagnitudeReachesFromZeroWhereTheIntervalHoldsIt) {
  const Narrow below(-3, -2), around(-2, 5);
  EXPECT_EQ(abs(below), Narrow(2, 3));
  EXPECT_EQ(abs(-below), Narrow(2, 3));
  EXPECT_EQ(abs(around), Narrow(0, 5));
  EXPECT_EQ(abs(-around), Narrow(0, 5));
}

TEST(Interval, ExponentialAndLogarithmHoldEachOther) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> uniform(-50, 50);
  for (int i = 0; i < 1000; ++i) {
    const double x = uniform(random);
    const Narrow back = log(exp(Narrow(x)));
    EXPECT_LE(back.left(), x);
    EXPECT_GE(back.right(), x);
    EXPECT_LE(back.right() - back.left(), 1e-38);
  }
}

TEST(Interval, WhatHasNoValueHasAnInfiniteRadius) {
  const Narrow nothing = __builtin_nan(""), about_zero = Narrow(1) / 3 - Narrow(1) / 3;
  for (const Narrow& x : {Narrow(1) / about_zero, Narrow(1) / Narrow(0), log(Narrow(-1)), nothing + Narrow(1),
                          nothing * Narrow(0), nothing * Narrow(2), Narrow(2) * nothing, nothing / Narrow(2)})
    EXPECT_TRUE(std::isinf(enclose(x).rad)) << x.left() << " " << x.right();
}

/// Digits lie in the object: a copy has its own, wherever either goes.
TEST(Mpfr, ACopyKeepsItsDigitsWhenItsOriginMovesOrChanges) {
  std::vector<Exact> list;
  for (int i = 0; i < 100; ++i) list.push_back(Exact(i) / 7);
  std::vector<Exact> copy = list;
  std::swap(list[1], list[99]);
  for (Exact& x : list) x *= 2;
  list.erase(list.begin(), list.begin() + 50);
  copy[3] = *&copy[3];
  for (int i = 0; i < 100; ++i) EXPECT_EQ(copy[static_cast<size_t>(i)], Exact(i) / 7);
  EXPECT_EQ(list.back(), Exact(1) / 7 * 2);
}

}  // namespace multiprecision_test
}  // namespace assay
