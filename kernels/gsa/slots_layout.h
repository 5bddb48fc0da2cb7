// How slots lie over threads. Host and device compile this file (C++17).
#pragma once
#include "../channel/chunk_layout.h"
#include "../device/scan_layout.h"

namespace assay::gsa {

inline constexpr int threads = 128;
inline constexpr int rows = threads / 32;  ///< of a block, each a warp's: one token and head
inline constexpr int most_slots = 128;
inline constexpr int slots_per_lane = most_slots / 32;
/// Of a thread that adds the gradients of both passes: so many are loaded at once.
inline constexpr int sums_per_thread = 8;

/// Tokens between the states that are kept, of both modes.
inline constexpr int chunk_tokens = channel::chunk_tokens;
static_assert(chunk_tokens == device::kept_tokens);

}  // namespace assay::gsa
