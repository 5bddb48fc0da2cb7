// Double-double: an unevaluated sum hi + lo, |lo| <= ulp(hi) / 2. Error bounds from Joldes, Muller, Popescu,
// "Tight and rigorous error bounds for basic building blocks of double-word arithmetic", ACM TOMS 44(2),
// 2017; u = 2^-53. They hold without overflow (|products| < 2^996) and while no product falls below 2^-960;
// there the absolute error is below 2^-1060.
#pragma once
#include <cmath>

namespace assay {

struct DoubleDouble {
  double hi = 0, lo = 0;
  DoubleDouble() = default;
  DoubleDouble(double h) : hi(h) {}  // NOLINT: a double is a DoubleDouble
  DoubleDouble(double h, double l) : hi(h), lo(l) {}
};

/// s.hi + s.lo = a + b exactly.
inline DoubleDouble two_sum(double a, double b) {
  const double s = a + b, bb = s - a;
  return {s, (a - (s - bb)) + (b - bb)};
}

/// As two_sum; needs |a| >= |b| or a = 0.
inline DoubleDouble quick_two_sum(double a, double b) {
  const double s = a + b;
  return {s, b - (s - a)};
}

/// p.hi + p.lo = a b exactly, by Dekker's splitting: the same bits with and without fused multiply-add.
inline DoubleDouble two_product(double a, double b) {
  constexpr double splitter = 0x1p27 + 1;
  const double ta = splitter * a, tb = splitter * b;
  const double ah = ta - (ta - a), bh = tb - (tb - b), al = a - ah, bl = b - bh, p = a * b;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

/// Relative error <= 3 u^2 / (1 - 4 u) (algorithm 6).
inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble s = two_sum(a.hi, b.hi), t = two_sum(a.lo, b.lo);
  const DoubleDouble v = quick_two_sum(s.hi, s.lo + t.hi);
  return quick_two_sum(v.hi, t.lo + v.lo);
}

/// Relative error <= 7 u^2 (algorithm 10).
inline DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble c = two_product(a.hi, b.hi);
  return quick_two_sum(c.hi, c.lo + (a.hi * b.lo + a.lo * b.hi));
}

/// Relative error <= 17 u^2: algorithm 17 (15 u^2 + 56 u^3) with the product of algorithm 8, 3 u^2 for 1.5
/// u^2.
inline DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
  const double q = a.hi / b.hi;
  const DoubleDouble p = two_product(b.hi, q), r = quick_two_sum(p.hi, p.lo + b.lo * q);  // b q
  return quick_two_sum(q, ((a.hi - r.hi) + (a.lo - r.lo)) / b.hi);
}
inline constexpr double kDoubleDoubleQuotientError = 0x1p-101;

inline DoubleDouble operator-(DoubleDouble a) {
  return {-a.hi, -a.lo};
}
inline DoubleDouble operator-(DoubleDouble a, DoubleDouble b) {
  return a + (-b);
}
inline DoubleDouble& operator+=(DoubleDouble& a, DoubleDouble b) {
  return a = a + b;
}
inline DoubleDouble& operator-=(DoubleDouble& a, DoubleDouble b) {
  return a = a - b;
}
inline DoubleDouble& operator*=(DoubleDouble& a, DoubleDouble b) {
  return a = a * b;
}
inline bool operator==(DoubleDouble a, DoubleDouble b) {
  return a.hi == b.hi && a.lo == b.lo;
}
inline bool operator<(DoubleDouble a, DoubleDouble b) {
  return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo);
}

/// |exp(x) - e^x| <= kDoubleDoubleExponentialError e^x for x in [-600, 600]; below: 0 (e^x < 2^-865 there).
inline constexpr double kDoubleDoubleExponentialError = 0x1p-96;
inline constexpr double kDoubleDoubleExponentialMin = -600;
DoubleDouble exp(DoubleDouble x);
/// What it takes e^(j / 1024) from, |j| <= 356: that of j = 0.
const DoubleDouble* powers_of_e();

}  // namespace assay
