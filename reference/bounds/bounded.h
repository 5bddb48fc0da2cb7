// A number as a kernel of known arithmetic makes it: its value, the sum P of the absolute values of its terms
// (the companion), and how far the kernel's may be from it (the excess E). For |a^ - a| <= Ea and
// |b^ - b| <= Eb
//   |a^ + b^ - (a + b)| <= Ea + Eb,     |a^ b^ - a b| <= Ea (Pb + Eb) + Pa Eb   as |b| <= Pb.
// Nothing is first order. P and E are plain double on nonnegative terms: Storage::element raises them.
#pragma once
#include <cmath>

namespace assay {

struct Bounded {
  double value = 0, P = 0, E = 0;

  /// After roundings whose factors (1 + d) together satisfy |d| <= relative.
  Bounded rounded(double relative) const { return {value, P, E + relative * (P + E)}; }
  /// At least what the kernel's magnitude may be.
  double most() const { return P + E; }

  friend Bounded operator+(const Bounded& a, const Bounded& b) {
    return {a.value + b.value, a.P + b.P, a.E + b.E};
  }
  friend Bounded operator-(const Bounded& a, const Bounded& b) {
    return {a.value - b.value, a.P + b.P, a.E + b.E};
  }
  Bounded& operator+=(const Bounded& b) { return *this = *this + b; }
};

inline Bounded product(const Bounded& a, const Bounded& b) {
  return {a.value * b.value, a.P * b.P, a.E * (b.P + b.E) + a.P * b.E};
}
/// factor times x, where the kernel's factor is up to `error` off.
inline Bounded times(double factor, double error, const Bounded& x) {
  return {factor * x.value, std::fabs(factor) * x.P, std::fabs(factor) * x.E + error * (x.P + x.E)};
}

}  // namespace assay
