// How channels lie over threads in scans that go token by token. Host and device compile this file (C++17).
#pragma once
#include "tile_layout.h"

// Functions hold one of these numbers of channels in registers.
#define FOR_EACH_CAPACITY_TO_128(kernel) kernel(16) kernel(64) kernel(128)
#define FOR_EACH_CAPACITY(kernel) FOR_EACH_CAPACITY_TO_128(kernel) kernel(256)

namespace assay::device {

inline constexpr int scan_threads = block_threads;
inline constexpr int attended_threads = 2 * scan_threads;  ///< with as many that load tokens for these
inline constexpr int scan_columns = 32;                    ///< value channels of a block in recurrent.cuh
inline constexpr int segment_tokens = 8;                   ///< that recurrent_lanes.cuh computes at once
inline constexpr int kept_tokens = 64;  ///< between states that are kept, from each sequence's start

/// Of the function that serves so many channels: the smallest that is enough.
HOST_DEVICE constexpr int capacity_for(long long channels) {
#define ASSAY_IF_ENOUGH(capacity) \
  if (channels <= (capacity)) return capacity;
  FOR_EACH_CAPACITY_TO_128(ASSAY_IF_ENOUGH)
#undef ASSAY_IF_ENOUGH
  return 256;
}

/// Rows of a state, their columns dealt to lanes (recurrent_lanes.cuh).
struct ColumnsLayout {
  int columns, per_lane, lanes, rows;  ///< lanes: of a row; rows: of a block with one row per lane
  int held, scan_rows;                 ///< rows of a lane and of a block where a lane has several

  HOST_DEVICE constexpr explicit ColumnsLayout(int capacity)
      : columns(capacity),
        per_lane(capacity < 64 ? capacity / 8 : 8),
        lanes(capacity / per_lane),
        rows(scan_threads / lanes),
        held(per_lane < 8 ? 1 : 4),
        scan_rows(held * rows) {}
};

}  // namespace assay::device
