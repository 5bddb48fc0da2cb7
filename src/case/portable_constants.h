// What random.cpp and row_draws.cpp both compute with.
#pragma once
#include <array>

namespace assay {

inline constexpr double kLn2High = 0x1.62e42fee00000p-1;  // 32 bits: k * high is exact for |k| < 2^20
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

/// Quantile of the standard normal in its central region, p in [kQuantileTail, 1 - kQuantileTail]: rational
/// in (p - 1/2)^2, the highest power first (P. J. Acklam, 2003).
inline constexpr double kQuantileTail = 0.02425;
inline constexpr std::array<double, 6> kCentralAbove{-3.969683028665376e+01, 2.209460984245205e+02,
                                                     -2.759285104469687e+02, 1.383577518672690e+02,
                                                     -3.066479806614716e+01, 2.506628277459239e+00};
inline constexpr std::array<double, 6> kCentralBelow{-5.447609879822406e+01, 1.615858368580409e+02,
                                                     -1.556989798598866e+02, 6.680131188771972e+01,
                                                     -1.328068155288572e+01, 1.0};

}  // namespace assay
