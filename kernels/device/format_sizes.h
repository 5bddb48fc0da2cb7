// The sizes of layouts, of a format that is known at run time.
#pragma once
#include "kernels/device/tile_layout.h"
#include "src/base/numerics/format.h"

namespace assay::device {

inline FormatSizes format_sizes(Dtype dtype) {
  return dtype == Dtype::bf16 ? bf16_sizes : dtype == Dtype::fp16 ? fp16_sizes : fp32_sizes;
}

}  // namespace assay::device
