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

}  // namespace assay::vm
