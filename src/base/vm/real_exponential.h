// 2^x and log2 beyond double precision, as differences from the machine's result.
#pragma once

namespace assay::vm {

/// 2^x - d, to 2^-90 of 2^x before its own rounding to double; 0 for 2^x below x = -865, infinity above 865.
double exponential2_minus(double x, double d);
/// Of its steps, for vectors of them: ln 2, and e^(j / 1024) for |j| <= 356, two doubles each, of j = 0.
inline constexpr double kLn2High = 0x1.62e42fefa39efp-1, kLn2Low = 0x1.abc9e3b39803fp-56;
const double* exponential_powers();
/// (2^(x + e) - 2^x) / e; the derivative at e = 0.
double exponential2_slope(double x, double e);
/// log2(x) - d, relative error of the difference below 2^-45 where it is below 2^-20; NaN for x <= 0.
double logarithm2_minus(double x, double d);
double logarithm2_slope(double x, double e);

}  // namespace assay::vm
