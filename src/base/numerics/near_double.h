// A double next to a number of any type: what decides a branch or a scaling, never a result.
#pragma once
#include "src/base/numerics/ball.h"
#include "src/base/numerics/dual.h"

namespace assay {

/// Types that convert to double (multiprecision numbers and intervals among them), or have a `value`.
template <typename Real>
struct NearDouble {
  static double of(const Real& x) {
    if constexpr (requires { x.value; })
      return x.value;
    else
      return static_cast<double>(x);
  }
};
template <>
struct NearDouble<DoubleDouble> {
  static double of(DoubleDouble x) { return x.hi; }
};
template <typename T>
struct NearDouble<Ball<T>> {
  static double of(const Ball<T>& x) { return NearDouble<T>::of(x.mid); }
};
template <typename Real>
struct NearDouble<Dual<Real>> {
  static double of(const Dual<Real>& x) { return NearDouble<Real>::of(x.value); }
};

template <typename Real>
double near_double(const Real& x) {
  return NearDouble<Real>::of(x);
}

}  // namespace assay
