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

}  // namespace assay::vm
