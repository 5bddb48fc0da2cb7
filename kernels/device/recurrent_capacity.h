// How the columns of a state lie over lanes, for the number of channels of a case.
#pragma once
#include <cstdint>

#include "kernels/device/scan_layout.h"

namespace assay::device {

/// Of the function that serves so many channels.
struct Capacity : ColumnsLayout {
  explicit Capacity(int64_t channels) : ColumnsLayout(capacity_for(channels)) {}

  int64_t blocks(int64_t count) const { return blocks_of(count, rows); }
  int64_t scan_blocks(int64_t count) const { return blocks_of(count, scan_rows); }
  /// Roundings of a sum over the columns: fused additions in a lane, then one addition per halving.
  double roundings() const { return per_lane + halvings(lanes); }
  /// Of a sum over so many rows: those of a warp and of four warps by halves, then block after block.
  double row_roundings(int64_t count) const {
    return halvings(32 / lanes) + 2 + static_cast<double>(blocks(count));
  }

 private:
  static double halvings(int n) {
    double count = 0;
    for (; n > 1; n /= 2) ++count;
    return count;
  }
};

}  // namespace assay::device
