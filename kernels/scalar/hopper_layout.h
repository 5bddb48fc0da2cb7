// Shared memory and threads of chunk_hopper.cuh. Host and device compile this file (C++17).
#pragma once
#include "../device/tile_layout.h"

namespace assay::scalar {

/// Warpgroups that make results, of every other chunk each: one alone would wait most of the time for its own
/// products.
inline constexpr int hopper_result_groups = 2;
/// One warpgroup for the state, then those, then one of which a warp copies and two sum gates.
inline constexpr int hopper_threads = 128 * (2 + hopper_result_groups);
/// What a block of sm_90 may have: 227 KiB.
inline constexpr int hopper_most_shared_bytes = 232448;
/// Channels of the keys that a kernel with so many tiles of 64 serves.
inline constexpr int hopper_most_keys = 128;

/// Of a block with `columns` value channels and `key_tiles` times 64 key channels, all bf16: a ring of chunks
/// (rows that read, keys, values and the sums of gates), then one of two copies of the state. Every tile
/// starts at a multiple of 1024 bytes, the largest swizzle pattern.
struct HopperLayout {
  static constexpr int pattern = 1024, tile = 64 * 64 * 2, sums = 4 * pattern;
  /// A multiple of the result groups: each of them then finds its chunks in places of its own, every phase of
  /// which it sees.
  static constexpr int stages = 4;
  static_assert(stages % hopper_result_groups == 0 && 2 % hopper_result_groups == 0);
  int keys_offset, values_offset, sums_offset, stage_bytes, states_offset, state_bytes, bytes;

  HOST_DEVICE constexpr HopperLayout(int key_tiles, int columns)
      : keys_offset(key_tiles * tile),
        values_offset(2 * key_tiles * tile),
        sums_offset(values_offset + 64 * columns * 2),
        stage_bytes(sums_offset + sums),
        states_offset(stages * stage_bytes),
        state_bytes(key_tiles * 64 * columns * 2),
        bytes(states_offset + 2 * state_bytes + pattern) {}  // the last: to align the start
};
static_assert(HopperLayout(2, 64).bytes <= hopper_most_shared_bytes);

/// A copy of 64 x 64 of a state in bf16, in memory.
struct KeptState {
  static constexpr int bytes = 64 * 64 * 2, pieces = bytes / 16;  ///< pieces of 16 bytes
};

}  // namespace assay::scalar
