// The lanes of a mask, one by one.
#pragma once
#include <bit>
#include <cstdint>

namespace assay::vm {

/// visit(lane) for every set bit, lowest first; where all are set, in a loop that the compiler sees through.
template <class Visit>
void each_lane(uint32_t mask, Visit visit) {
  if (mask == ~0u)
    for (int lane = 0; lane < 32; ++lane) visit(lane);
  else
    for (; mask; mask &= mask - 1) visit(std::countr_zero(mask));
}

/// How many are set; std::popcount is a call where the processor's own count may be missing.
constexpr uint32_t lanes_in(uint32_t mask) {
  mask -= mask >> 1 & 0x55555555u;
  mask = (mask & 0x33333333u) + (mask >> 2 & 0x33333333u);
  return ((mask + (mask >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}

}  // namespace assay::vm
