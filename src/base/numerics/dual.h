// Dual numbers: a value and its derivative along one direction.
#pragma once
#include <cmath>
#include <concepts>

namespace assay {

template <typename Real>
struct Dual {
  Real value{0}, tangent{0};

  Dual() = default;
  Dual(int v) : value(v) {}   // NOLINT: a constant
  Dual(Real v) : value(v) {}  // NOLINT: a constant
  Dual(double v)              // NOLINT: a constant; without this a double would become an int first
      requires(!std::same_as<Real, double>)
      : value(v) {}
  Dual(Real v, Real t) : value(v), tangent(t) {}

  friend Dual operator+(const Dual& a, const Dual& b) { return {a.value + b.value, a.tangent + b.tangent}; }
  friend Dual operator-(const Dual& a, const Dual& b) { return {a.value - b.value, a.tangent - b.tangent}; }
  friend Dual operator-(const Dual& a) { return {-a.value, -a.tangent}; }
  friend Dual operator*(const Dual& a, const Dual& b) {
    return {a.value * b.value, a.value * b.tangent + a.tangent * b.value};
  }
  friend Dual operator/(const Dual& a, const Dual& b) {
    const Real y = a.value / b.value;
    return {y, (a.tangent - y * b.tangent) / b.value};
  }
  friend bool operator==(const Dual& a, const Dual& b) {
    return a.value == b.value && a.tangent == b.tangent;
  }
  Dual& operator+=(const Dual& b) { return *this = *this + b; }
  Dual& operator-=(const Dual& b) { return *this = *this - b; }
  Dual& operator*=(const Dual& b) { return *this = *this * b; }
  friend Dual exp(const Dual& x) {
    using std::exp;  // the other types' exp are found by argument lookup
    const Real y = exp(x.value);
    return {y, y * x.tangent};
  }
  friend Dual log(const Dual& x) {
    using std::log;
    return {log(x.value), x.tangent / x.value};
  }
};

}  // namespace assay
