// How states of delta rules lie over blocks, and how often they are kept. Host and device compile this file
// (C++17).
#pragma once

namespace assay::delta {

inline constexpr int block_columns = 32;  ///< value channels of a block of columns.cuh
inline constexpr int kept_tokens = 32;    ///< between the states that rows.cuh starts from

}  // namespace assay::delta
