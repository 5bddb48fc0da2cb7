// How the columns of a state lie over lanes in recurrent_lanes.cuh.
#pragma once
#include <cstdint>

namespace assay::gla {

/// Columns that the serving function holds, and how they lie.
struct Capacity {
  int64_t columns, per_lane, lanes;

  explicit Capacity(int64_t channels)
      : columns(channels <= 16    ? 16
                : channels <= 64  ? 64
                : channels <= 128 ? 128
                                  : 256),
        per_lane(columns < 64 ? columns / 8 : 8),
        lanes(columns / per_lane) {}
  int64_t blocks(int64_t rows) const { return (rows + 128 / lanes - 1) / (128 / lanes); }
  /// Roundings of a sum over the columns: fused additions in a lane, then one addition per halving.
  double roundings() const {
    double halvings = 0;
    for (int64_t n = lanes; n > 1; n /= 2) ++halvings;
    return static_cast<double>(per_lane) + halvings;
  }
};

}  // namespace assay::gla
