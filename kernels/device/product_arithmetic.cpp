#include "kernels/device/product_arithmetic.h"

#include <cmath>

namespace assay::gated {

/// One step of n products truncates n + 1 terms below 2^-F of the largest and the result below 2^-23 = 2 u. A
/// term is hurt by its own and later steps only, so that in a chain over several operands (q S, then scores
/// v) each path pays for its own places and those after it. Per 16 places the larger of both architectures:
///   bf16   sm_80: 2 steps of n = 8, F = 24, 2 (9 + 2) u = 22 u;        sm_90: n = 16, F = 25, 10.5 u
///   tf32   sm_80: 4 steps of n = 4, F = 24, 4 (5 + 2) u = 28 u;        sm_90: 2 of n = 8, F = 25, 13 u
/// Split fp32 operands start every 16 places from zero and add the result by one rounded addition: 28 u of
/// these places alone, 2 u more for the two small products (2^-11 of them, twice 28 u of that), and u per
/// addition. Of these the truncations (split_truncation): of n + 1 terms one at least has the largest
/// exponent and keeps all its bits, at most 24, and nothing is in the accumulator at first: sm_80 3 + 3 * 4
/// terms and 4 results, 15 + 8 = 23 u; sm_90 (7 + 8) / 2 + 4 = 11.5 u.
double contraction(Dtype dtype, double places) {
  const double blocks = std::ceil(places / 16);
  if (dtype == Dtype::bf16) return 1.01 * 22 * u * blocks;
  if (dtype == Dtype::fp16) return 1.01 * 28 * u * blocks;
  return 1.01 * (30 + blocks) * u;
}

double compounded(std::initializer_list<double> errors) {
  double factor = 1;
  for (const double e : errors) factor *= 1 + e;
  return factor - 1 + 0x1p-48;
}

/// fp32, x in [2^e, 2^(e+1)): high is a multiple of 2^(e-10), so |x - high| <= 2^(e-11); low is exact at that
/// value and has a spacing of at most 2^(e-22) below it, so |x - high - low| <= 2^-23 |x| for each operand;
/// |low| <= 2^-11 |x|, and low * low is left out. 2^-44 for products of these.
double operand_error(Dtype dtype, int rounded) {
  if (dtype == Dtype::fp32) return 2 * 0x1p-23 + 0x1p-22 + 0x1p-44;
  double factor = 1;
  for (int i = 0; i < rounded; ++i) factor *= 1 + unit_roundoff(dtype);
  return factor - 1;
}

/// bf16: both operands as sums of two, 2^-16 each, low * low left out, |low| <= 2^-8; 2^-30 for products of
/// these. The three products run on in one accumulator.
double solved_error(Dtype dtype) {
  if (dtype == Dtype::bf16) return compounded({3 * 0x1p-16 + 0x1p-30, contraction(dtype, 48)});
  return compounded({operand_error(Dtype::fp32, 2), contraction(Dtype::fp32, 16)});
}

}  // namespace assay::gated
