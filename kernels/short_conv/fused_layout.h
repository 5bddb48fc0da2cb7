// How tokens and channels lie over threads. Host and device compile this file (C++17).
#pragma once

namespace assay::short_conv {

inline constexpr int chunk_tokens = 64;  ///< of a thread
inline constexpr int threads = 128;      ///< of a block, each with a channel

}  // namespace assay::short_conv
