// How tokens and channels lie over threads. Host and device compile this file (C++17).
#pragma once

namespace assay::hgrn {

inline constexpr int stretch_tokens = 16;  ///< that fused_recurrent.cu loads at once, and keeps a state of
inline constexpr int chunk_tokens = 32;    ///< of a thread of chunk.cu
/// Threads of a block, each with a channel: of a sequence, or of a chunk.
inline constexpr int threads_per_sequence = 64, threads_per_chunk = 128;

}  // namespace assay::hgrn
