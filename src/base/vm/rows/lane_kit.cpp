// The engine's own loops over lanes: blending under a mask, ranges of exponential arguments.
#include "src/base/vm/rows/lane_rows.h"

namespace assay::vm::ASSAY_LANES {

void blend_words(void* d, const void* from, uint32_t mask) {
  auto* to = static_cast<U32::element*>(d);
  const auto* source = static_cast<const U32::element*>(from);
#pragma GCC ivdep
  for (uint32_t i = 0; i < 32; ++i) to[i] = (mask >> i) & 1 ? source[i] : to[i];
}

void blend_wide(void* d, const void* from, uint32_t mask) {
  auto* to = static_cast<U64::element*>(d);
  const auto* source = static_cast<const U64::element*>(from);
#pragma GCC ivdep
  for (uint32_t i = 0; i < 32; ++i) to[i] = (mask >> i) & 1 ? source[i] : to[i];
}

uint32_t argument_range(const void* x, uint32_t mask, int32_t* smallest, int32_t* largest) {
  const auto* values = static_cast<const S32::element*>(x);
  int32_t low = *smallest, high = *largest;
  uint32_t nans = 0;
  for (int i = 0; i < 32; ++i) {
    const int32_t bits = values[i];
    const int32_t magnitude = bits & 0x7fffffff;
    const bool active = (mask >> i) & 1, nan = magnitude > 0x7f800000;
    const int32_t order = bits < 0 ? -magnitude : magnitude;
    const bool counts = active && !nan;
    const int32_t for_low = counts && order != -0x7f800000 ? order : INT32_MAX;
    const int32_t for_high = counts ? order : INT32_MIN;
    low = for_low < low ? for_low : low;
    high = for_high > high ? for_high : high;
    nans |= static_cast<uint32_t>(active && nan) << i;
  }
  *smallest = low;
  *largest = high;
  return nans;
}

void widen_floats(double* d, const void* x) {
  const auto* values = static_cast<const F32::element*>(x);
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) d[i] = static_cast<double>(values[i]);
}

void combine_errors(const RealStep& step, int arity, const double* const* bounds, double* error,
                    double* bound) {
#pragma GCC ivdep
  for (int i = 0; i < 32; ++i) error[i] = step.local[i], bound[i] = __builtin_fabs(step.local[i]);
  for (int k = 0; k < arity; ++k) {
    const double *slope = step.slope[k], *e = step.error[k], *b = bounds[k];
#pragma GCC ivdep
    for (int i = 0; i < 32; ++i) {
      // b = 0 where e = 0 by the operand's own rounding, and then the slope may be anything.
      error[i] += e[i] != 0 ? slope[i] * e[i] : 0;
      bound[i] += b[i] != 0 ? __builtin_fabs(slope[i]) * b[i] : 0;
    }
  }
}

// local: products of 11 bits or 24 bits are exact doubles; their sum is kept as high + low (two_sum).
void combine_sums(int k, const MatrixRow& r) {
  double high[8], low[8], error[8], bound[8];
  for (int n = 0; n < 8; ++n) high[n] = r.c[n], low[n] = 0, error[n] = r.c_error[n], bound[n] = r.c_bound[n];
  for (int i = 0; i < k; ++i) {
    const double a = r.a[i], a_error = r.a_error[i], a_bound = r.a_bound[i], size = __builtin_fabs(a);
    const double *b = r.b + 8 * i, *b_error = r.b_error + 8 * i, *b_bound = r.b_bound + 8 * i;
#pragma GCC ivdep
    for (int n = 0; n < 8; ++n) {
      const double p = a * b[n], s = high[n] + p, t = s - high[n];
      low[n] += (high[n] - (s - t)) + (p - t);
      high[n] = s;
      const double exact_b = b[n] + b_error[n];
      error[n] += exact_b * a_error + a * b_error[n];
      bound[n] += __builtin_fabs(exact_b) * a_bound + size * b_bound[n];
    }
  }
  for (int n = 0; n < 8; ++n) {
    r.local[n] = (high[n] - r.d[n]) + low[n];
    r.error[n] = error[n] + r.local[n];
    r.bound[n] = bound[n] + __builtin_fabs(r.local[n]);
  }
}

LaneKit kit() {
  return {blend_words, blend_wide, argument_range, widen_floats, combine_errors, combine_sums};
}

}  // namespace assay::vm::ASSAY_LANES
