// The lanes of a mask, one by one.
#pragma once
#include <bit>
#include <cstdint>

namespace assay::vm {

/// visit(lane) for every set bit, lowest first.
template <class Visit>
void each_lane(uint32_t mask, Visit visit) {
  for (; mask; mask &= mask - 1) visit(std::countr_zero(mask));
}
/// The same of a short visit: where all are set, a loop that the compiler sees through.
template <class Visit>
void every_lane(uint32_t mask, Visit visit) {
  if (mask != ~0u) return each_lane(mask, visit);
  for (int lane = 0; lane < 32; ++lane) visit(lane);
}

}  // namespace assay::vm
