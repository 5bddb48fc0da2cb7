// Ball arithmetic: every number is an interval [mid - rad, mid + rad] that is proved to hold the exact value.
#pragma once
#include <cmath>

#include "src/base/numerics/double_double.h"
#include "src/base/numerics/exponential.h"
#include "src/base/numerics/rounding.h"

namespace assay {

/// What a ball needs to know of its midpoint's arithmetic.
template <typename T>
struct MidpointArithmetic;

template <>
struct MidpointArithmetic<double> {
  static constexpr double roundoff = kDoubleRoundoff, exponential_error = kExponentialError;
  static constexpr double quotient_error = kDoubleRoundoff;
  static constexpr double exponential_min = kExponentialMin;
  static double magnitude(double x) { return std::fabs(x); }
  static double nearest(double x) { return x; }
  static double narrowed(DoubleDouble x) { return x.hi; }
  static double exp(double x) { return exponential(x); }
};

template <>
struct MidpointArithmetic<DoubleDouble> {
  static constexpr double roundoff = kDoubleDoubleRoundoff, exponential_error = kDoubleDoubleExponentialError;
  static constexpr double quotient_error = kDoubleDoubleQuotientError;
  static constexpr double exponential_min = kDoubleDoubleExponentialMin;
  static double magnitude(DoubleDouble x) { return std::fabs(x.hi) * (1 + 0x1p-51); }  // |lo| <= u |hi|
  static double nearest(DoubleDouble x) { return x.hi; }
  static DoubleDouble narrowed(DoubleDouble x) { return x; }
  static DoubleDouble exp(DoubleDouble x) { return assay::exp(x); }
};

/// Radii are doubles, computed with at most 12 roundings of nonnegative terms and then raised by 2^-48.
template <typename T>
struct Ball {
  using Arithmetic = MidpointArithmetic<T>;
  T mid{0};
  double rad = 0;

  Ball() = default;
  Ball(int value) : mid(value) {}     // NOLINT: exact
  Ball(double value) : mid(value) {}  // NOLINT: exact
  Ball(T m, double r) : mid(m), rad(r) {}

  double magnitude() const { return Arithmetic::magnitude(mid); }
  static double raised(double radius) { return radius == 0 ? 0 : radius * (1 + 0x1p-48) + 0x1p-1074; }

  /// |fl(a + b) - (a + b)| <= u |a + b| <= 2 u |fl(a + b)|; a sum cannot underflow, and with a zero it is
  /// exact.
  friend Ball operator+(const Ball& a, const Ball& b) {
    if (b.magnitude() == 0 && b.rad == 0) return a;
    if (a.magnitude() == 0 && a.rad == 0) return b;
    Ball c(a.mid + b.mid, 0);
    c.rad = raised(a.rad + b.rad + 2 * Arithmetic::roundoff * c.magnitude());
    return c;
  }

  /// |ab - mid| <= |a| rb + |b| ra + ra rb + rounding; a product below 2^-900 may lose up to 2^-1000 to
  /// underflow.
  friend Ball operator*(const Ball& a, const Ball& b) {
    const double am = a.magnitude(), bm = b.magnitude();
    if ((am == 0 && a.rad == 0) || (bm == 0 && b.rad == 0)) return Ball();
    Ball c(a.mid * b.mid, 0);
    const double cm = c.magnitude();
    c.rad = raised(am * b.rad + bm * a.rad + a.rad * b.rad + 2 * Arithmetic::roundoff * cm +
                   (cm < 0x1p-900 ? 0x1p-1000 : 0));
    return c;
  }

  /// With q = a.mid / b.mid the exact quotients lie within (ra + |q| rb) / (|b| - rb) of q; a divisor that
  /// may be zero gives an infinite radius. 2 u |q| as above; q below 2^-900 may lose up to 2^-1000.
  friend Ball operator/(const Ball& a, const Ball& b) {
    if (a.magnitude() == 0 && a.rad == 0 && b.magnitude() > b.rad) return Ball();
    Ball c(a.mid / b.mid, 0);
    const double least = b.magnitude() * (1 - 0x1p-50) - b.rad, cm = c.magnitude();
    const double spread = (a.rad + cm * (1 + 0x1p-50) * b.rad) / least;
    c.rad = least > 0 ? raised(spread + 2 * Arithmetic::quotient_error * cm + (cm < 0x1p-900 ? 0x1p-1000 : 0))
                      : __builtin_inf();
    return c;
  }

  friend Ball operator-(const Ball& a) { return Ball(-a.mid, a.rad); }
  friend Ball operator-(const Ball& a, const Ball& b) { return a + (-b); }
  /// The same ball, not: the same number.
  friend bool operator==(const Ball& a, const Ball& b) { return a.mid == b.mid && a.rad == b.rad; }
  Ball& operator+=(const Ball& b) { return *this = *this + b; }
  Ball& operator-=(const Ball& b) { return *this = *this - b; }
  Ball& operator*=(const Ball& b) { return *this = *this * b; }

  /// |e^(x + d) - fl(e^x)| <= fl(e^x) ((1 + 2 error) e^|d| - 1) for |d| <= rad; e^d - 1 <= d + d^2 up to d
  /// = 1. e^0 = 1 exactly. Where the midpoint's exponential is cut to zero the value is below 2^-860.
  friend Ball exp(const Ball& x) {
    if (x.magnitude() == 0 && x.rad == 0) return Ball(1);
    Ball y(Arithmetic::exp(x.mid), 0);
    const double growth = x.rad <= 1 ? x.rad + x.rad * x.rad : std::expm1(x.rad) * (1 + 0x1p-40);
    const double relative = 2 * Arithmetic::exponential_error;
    y.rad = raised(y.magnitude() * (relative + growth + relative * growth));
    if (y.magnitude() == 0) y.rad = 0x1p-860 * (1 + growth);
    return y;
  }

  /// Newton's step from any y near the logarithm: log x = y + log(x e^-y) = y + log1p(d) with d = x e^-y - 1,
  /// and |log1p(d) - d| <= d^2 for |d| <= 1/2. y and e^-y are taken in double-double.
  friend Ball log(const Ball& x) {
    const Ball<DoubleDouble> wide(DoubleDouble(x.mid), x.rad);
    const double y = std::log(Arithmetic::nearest(x.mid));
    if (!(x.magnitude() > x.rad) || !std::isfinite(y)) return Ball(T(0), __builtin_inf());
    const Ball<DoubleDouble> d = wide * exp(Ball<DoubleDouble>(-y)) - Ball<DoubleDouble>(1);
    const Ball<DoubleDouble> sum = Ball<DoubleDouble>(y) + d;
    const double size = d.magnitude() + d.rad;
    if (!(size <= 0.5)) return Ball(T(0), __builtin_inf());
    Ball z(Arithmetic::narrowed(sum.mid), 0);
    z.rad = raised(sum.rad + size * size + 2 * Arithmetic::roundoff * z.magnitude());
    return z;
  }
};

}  // namespace assay
