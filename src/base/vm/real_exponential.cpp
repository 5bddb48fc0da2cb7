#include "src/base/vm/real_exponential.h"

#include <cmath>

#include "src/base/numerics/double_double.h"

namespace assay::vm {
namespace {

constexpr double ln2_high = 0x1.62e42fefa39efp-1, ln2_low = 0x1.abc9e3b39803fp-56;

DoubleDouble exponential2(double x) {
  return exp(DoubleDouble(ln2_high, ln2_low) * DoubleDouble(x));
}

}  // namespace

double exponential2_minus(double x, double d) {
  const DoubleDouble y = exponential2(x);
  return (y.hi - d) + y.lo;
}

double exponential2_slope(double x, double e) {
  const double y = std::exp2(x);
  return e == 0 ? y * ln2_high : y * std::expm1(e * ln2_high) / e;
}

// log2(x) = d + log2(x 2^-d), and x 2^-d is near 1.
double logarithm2_minus(double x, double d) {
  if (!(x > 0)) return std::nan("");
  const DoubleDouble ratio = DoubleDouble(x) * exponential2(-d);
  return std::log1p((ratio.hi - 1) + ratio.lo) / ln2_high;
}

double logarithm2_slope(double x, double e) {
  return e == 0 ? 1 / (x * ln2_high) : std::log1p(e / x) / (ln2_high * e);
}

}  // namespace assay::vm
