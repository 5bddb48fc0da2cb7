// The matrix products of merge_heads. Host and device compile this file (C++17).
#pragma once
#include "../device/tile_layout.h"

namespace assay::merge_heads {

inline constexpr int block_rows = 64;        ///< a block makes as many rows as columns
inline constexpr int places_per_total = 64;  ///< that the accumulators take before they are added to totals

}  // namespace assay::merge_heads
