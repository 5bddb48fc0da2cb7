// How rows lie over warps. Host and device compile this file (C++17).
#pragma once

namespace assay::l2norm {

inline constexpr int rows_per_block = 4;  ///< a warp each

}  // namespace assay::l2norm
