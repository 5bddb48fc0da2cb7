// The engine's own loops over lanes: blending under a mask, ranges of exponential arguments.
#include "src/vm/rows/lane_rows.h"

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

LaneKit kit() {
  return {blend_words, blend_wide, argument_range};
}

}  // namespace assay::vm::ASSAY_LANES
