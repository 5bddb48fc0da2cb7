// The logistic function and its integral, for any number type, without overflow and without cancellation.
#pragma once
#include <cmath>
#include <type_traits>

#include "src/base/numerics/dual.h"
#include "src/base/numerics/near_double.h"

namespace assay {

/// log(1 + z) for z >= 0.
template <typename Real>
Real log_one_plus(const Real& z) {
  using std::log;
  if constexpr (std::is_floating_point_v<Real>)
    return std::log1p(z);
  else
    return log(Real(Real(1) + z));
}

/// Small z by the series sum_n (-1)^{n+1} z^n / n: 1 + z would round z away. For |z| <= 2^-8 what follows the
/// 14th term is below |z| 2^-112.
template <typename T>
Ball<T> log_one_plus(const Ball<T>& z) {
  const double size = z.magnitude() + z.rad;
  if (!(size <= 0x1p-8)) return log(Ball<T>(1) + z);
  Ball<T> sum(0);
  for (int n = 14; n >= 1; --n) sum = (n % 2 ? Ball<T>(1) : Ball<T>(-1)) / Ball<T>(n) + z * sum;
  sum = z * sum;
  sum.rad = Ball<T>::raised(sum.rad + 0x1p-112 * size);
  return sum;
}

template <typename Real>
Dual<Real> log_one_plus(const Dual<Real>& z) {
  return {log_one_plus(z.value), z.tangent / (Real(1) + z.value)};
}

/// 1 / (1 + e^{-x}).
template <typename Real>
Real sigmoid(const Real& x) {
  using std::exp;
  if (near_double(x) >= 0) return Real(1) / Real(Real(1) + exp(Real(-x)));
  const Real e = exp(x);
  return e / Real(Real(1) + e);
}

/// log(1 + e^x) = max(x, 0) + log(1 + e^{-|x|}).
template <typename Real>
Real softplus(const Real& x) {
  using std::exp;
  if (near_double(x) <= 0) return log_one_plus(Real(exp(x)));
  return x + log_one_plus(Real(exp(Real(-x))));
}

}  // namespace assay
