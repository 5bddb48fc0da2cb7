// A number as a kernel of known arithmetic computes it: its value, the sum of the absolute values of the
// terms it is made of (the companion P), and how far the kernel's may be from it (the excess E).
//
// Carrying a transcription over these numbers gives companions, and with the roundings of a declared
// arithmetic put in (`rounded`) an a-priori bound: for |a^ - a| <= Ea and |b^ - b| <= Eb
//   |a^ + b^ - (a + b)| <= Ea + Eb,     |a^ b^ - a b| <= Ea (Pb + Eb) + Pa Eb   as |b| <= Pb.
// Nothing is first order. The arithmetic on P and E is plain double on nonnegative terms: raise_model says by
// how much the results must be raised.
#pragma once
#include <cmath>

#include "src/base/numerics/eigen_traits.h"
#include "src/base/numerics/exponential.h"
#include "src/base/numerics/rounding.h"

namespace assay {

struct Modelled {
  double value = 0, P = 0, E = 0;

  Modelled() = default;
  Modelled(int v) : value(v), P(std::fabs(value)) {}  // NOLINT: exact
  Modelled(double v) : value(v), P(std::fabs(v)) {}   // NOLINT: exact
  Modelled(double v, double p, double e) : value(v), P(p), E(e) {}

  /// After roundings whose factors (1 + d) together satisfy |d| <= relative.
  Modelled rounded(double relative) const { return {value, P, E + relative * (P + E)}; }
  /// With a further absolute error.
  Modelled off(double absolute) const { return {value, P, E + absolute}; }

  friend Modelled operator+(const Modelled& a, const Modelled& b) {
    return {a.value + b.value, a.P + b.P, a.E + b.E};
  }
  friend Modelled operator-(const Modelled& a) { return {-a.value, a.P, a.E}; }
  friend Modelled operator-(const Modelled& a, const Modelled& b) { return a + (-b); }
  friend Modelled operator*(const Modelled& a, const Modelled& b) {
    return {a.value * b.value, a.P * b.P, a.E * (b.P + b.E) + a.P * b.E};
  }
  /// |a^ / b^ - a / b| <= (Ea + |a / b| Eb) / (|b| - Eb); infinite where the divisor may be zero.
  friend Modelled operator/(const Modelled& a, const Modelled& b) {
    const double q = a.value / b.value, size = std::fabs(b.value), least = size - b.E;
    const double error = a.E + std::fabs(q) * b.E;
    return {q, a.P / size + std::fabs(q) * (b.P / size),
            error == 0 ? 0 : (least > 0 ? error / least : __builtin_inf())};
  }
  friend bool operator==(const Modelled& a, const Modelled& b) {
    return a.value == b.value && a.P == b.P && a.E == b.E;
  }
  Modelled& operator+=(const Modelled& b) { return *this = *this + b; }
  Modelled& operator-=(const Modelled& b) { return *this = *this - b; }
  Modelled& operator*=(const Modelled& b) { return *this = *this * b; }

  /// e^x moves by at most e^x (e^E - 1).
  friend Modelled exp(const Modelled& x) {
    const double y = exponential(x.value);
    return {y, y, x.E == 0 ? 0 : y * std::expm1(x.E)};
  }
  /// |log x^ - log x| <= -log(1 - E / |x|).
  friend Modelled log(const Modelled& x) {
    const double y = std::log(x.value);
    const double relative = x.E / std::fabs(x.value);
    return {y, std::fabs(y), relative == 0 ? 0 : (relative < 1 ? -std::log1p(-relative) : __builtin_inf())};
  }
};

/// Factor that makes companions and excesses upper bounds after n operations on a path, 8 roundings each (the
/// exponential's four among them).
inline double raise_model(double n) {
  return 1 + 2 * gamma(8 * n + 64, kDoubleRoundoff);
}

}  // namespace assay

namespace Eigen {
template <>
struct NumTraits<assay::Modelled> : assay::PlainNumber<assay::Modelled> {};
}  // namespace Eigen
