#include "src/base/vm/real_exponential.h"

#include <cmath>

#include "src/base/numerics/double_double.h"

namespace assay::vm {
namespace {

DoubleDouble exponential2(double x) {
  return exp(DoubleDouble(kLn2High, kLn2Low) * DoubleDouble(x));
}

}  // namespace

const double* exponential_powers() {
  static_assert(sizeof(DoubleDouble) == 2 * sizeof(double));
  return &powers_of_e()->hi;
}

double exponential2_minus(double x, double d) {
  const DoubleDouble y = exponential2(x);
  return (y.hi - d) + y.lo;
}

double exponential2_slope(double x, double e) {
  const double y = std::exp2(x);
  return e == 0 ? y * kLn2High : y * std::expm1(e * kLn2High) / e;
}

// log2(x) = d + log2(x 2^-d), and x 2^-d is near 1.
double logarithm2_minus(double x, double d) {
  if (!(x > 0)) return std::nan("");
  const DoubleDouble ratio = DoubleDouble(x) * exponential2(-d);
  return std::log1p((ratio.hi - 1) + ratio.lo) / kLn2High;
}

double logarithm2_slope(double x, double e) {
  return e == 0 ? 1 / (x * kLn2High) : std::log1p(e / x) / (kLn2High * e);
}

}  // namespace assay::vm
