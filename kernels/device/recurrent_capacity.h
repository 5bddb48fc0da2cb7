// How the columns of a state lie over lanes, for the number of channels of a case.
#pragma once
#include <cstdint>

#include "kernels/device/scan_layout.h"

namespace assay::device {

/// Of the function that serves so many channels.
struct Capacity : ColumnsLayout {
  explicit Capacity(int64_t channels) : ColumnsLayout(capacity_for(channels)) {}

  int64_t blocks(int64_t count) const { return blocks_of(count, rows); }
  /// Roundings of a sum over the columns: fused additions in a lane, then one addition per halving.
  double roundings() const {
    double halvings = 0;
    for (int n = lanes; n > 1; n /= 2) ++halvings;
    return per_lane + halvings;
  }
};

}  // namespace assay::device
