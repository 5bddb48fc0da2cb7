// Unit roundoffs and the factor gamma_n of rounding analysis.
#pragma once
#include <limits>

namespace assay {

/// u of double: 2^-53.
inline constexpr double kDoubleRoundoff = 0x1p-53;
/// Every operation of double_double.h has a relative error of at most this (the largest is 7 u^2, of the
/// product).
inline constexpr double kDoubleDoubleRoundoff = 0x1p-103;

/// gamma_n = n u / (1 - n u), rounded up: (1 + d_1)...(1 + d_n) with |d_i| <= u lies in [1 - gamma_n, 1 +
/// gamma_n], also where some factors are divided instead (Higham, Accuracy and Stability, 2nd ed.,
/// lemma 3.1). Infinite for n u >= 1/2.
inline double gamma(double n, double u) {
  const double nu = n * u;
  if (!(nu < 0.5)) return std::numeric_limits<double>::infinity();
  return nu / (1 - nu) * (1 + 0x1p-50);  // three roundings: below 2^-51 together
}

/// A computed sum or product of nonnegative doubles after at most n roundings, made an upper bound of the
/// exact one.
inline double round_up(double computed, double n) {
  return computed * (1 + 2 * gamma(n + 2, kDoubleRoundoff));
}

}  // namespace assay
