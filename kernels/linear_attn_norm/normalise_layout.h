// How chunks, rows and elements lie over blocks. Host and device compile this file (C++17).
#pragma once
#include "../device/tile_layout.h"

namespace assay::linear_attn_norm {

inline constexpr int chunk_tokens = device::tile_rows;  ///< of the chunked linear attention beside it
inline constexpr int threads = 256;
inline constexpr int rows_per_block = threads / 32;  ///< of tokens and heads, each a warp's
inline constexpr int elements_per_thread = 4, elements_per_block = elements_per_thread * threads;

}  // namespace assay::linear_attn_norm
