// Chunked kernels in one launch, whose blocks keep a state's value channels in registers. Host and device
// compile this file (C++17).
#pragma once
#include "tile_layout.h"

// Functions hold one of these numbers of key channels.
#define FOR_EACH_FUSED_CAPACITY(kernel) kernel(64) kernel(128) kernel(256)

namespace assay::device {

inline constexpr int fused_columns = 32;  ///< value channels of a block

/// Of the function that serves so many key channels: the smallest that is enough.
constexpr int fused_capacity(long long channels) {
#define ASSAY_IF_ENOUGH(capacity) \
  if (channels <= (capacity)) return capacity;
  FOR_EACH_FUSED_CAPACITY(ASSAY_IF_ENOUGH)
#undef ASSAY_IF_ENOUGH
  return 256;
}

}  // namespace assay::device
