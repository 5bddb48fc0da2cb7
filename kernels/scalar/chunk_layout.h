// Shared memory and grids of the kernels with one decay per head and token that work on tiles. Host and
// device compile this file (C++17).
#pragma once
#include "../device/fused_layout.h"

namespace assay::scalar {

using device::blocks_of;
using device::FormatSizes;
using device::tile_bytes;

inline constexpr int chunk_tokens = device::tile_rows;  ///< counted from each sequence's start
inline constexpr int step_channels = 64;                ///< of a tile: what a block takes at a time
inline constexpr int scan_columns = 32;                 ///< value channels of a block with a part of a state
static_assert(chunk_tokens == 64 && step_channels == 64, "four warps of 16 rows, each of four groups of 16");

/// Parts of a state that blocks own: step_channels key channels x scan_columns value channels.
HOST_DEVICE constexpr long long scan_parts(long long keys, long long values) {
  return blocks_of(keys, step_channels) * blocks_of(values, scan_columns);
}

/// A stage of the state scan (state_scan.cuh): tiles of k and v. The number of stages is a power of two.
struct ScanStageLayout {
  int value_offset, bytes;
  int count;  ///< stages of a block

  HOST_DEVICE constexpr explicit ScanStageLayout(FormatSizes format, int columns = scan_columns)
      : value_offset(tile_bytes(format.element, step_channels)),
        bytes(value_offset + tile_bytes(format.element, columns)),
        count(4 * bytes <= device::third_of_shared_bytes ? 4 : 2) {}
  HOST_DEVICE constexpr int shared_bytes() const { return count * bytes; }
};

/// The output kernel (chunk_product.cuh): q, k, v and 64 x 64 of the state as operands.
struct ProductLayout {
  int keys_offset, values_offset, state_offset, bytes;

  HOST_DEVICE constexpr explicit ProductLayout(FormatSizes format)
      : keys_offset(tile_bytes(format.element, step_channels)),
        values_offset(2 * keys_offset),
        state_offset(3 * keys_offset),
        bytes(state_offset + 16 * format.operand_block) {}
};

/// The kernel of the gradients (chunk_gradients.cuh): q, k, v and do, then 64 x 64 of S and D, together where
/// 99 KiB hold them, else one in the other's place.
struct GradientLayout {
  int keys_offset, values_offset, cotangents_offset, states_offset, adjoints_offset, bytes;
  bool both;

  HOST_DEVICE constexpr explicit GradientLayout(FormatSizes format)
      : keys_offset(tile_bytes(format.element, step_channels)),
        values_offset(2 * keys_offset),
        cotangents_offset(3 * keys_offset),
        states_offset(4 * keys_offset),
        adjoints_offset(states_offset),
        bytes(0),
        both(false) {
    const int state = tile_bytes(format.kept, step_channels);
    both = states_offset + 2 * state <= device::most_shared_bytes;
    if (both) adjoints_offset += state;
    bytes = adjoints_offset + state;
  }
};

/// fused_chunk.cuh: stages of q and k, as many of v, then the state of 64 key channels as operands.
struct FusedLayout {
  int stages, keys_offset, stage_bytes, values_offset, value_bytes, state_offset, bytes;

  HOST_DEVICE constexpr explicit FusedLayout(FormatSizes format)
      : stages(format.element == 4 ? 1 : 2),
        keys_offset(tile_bytes(format.element, step_channels)),
        stage_bytes(2 * keys_offset),
        values_offset(stages * stage_bytes),
        value_bytes(tile_bytes(format.element, device::fused_columns)),
        state_offset(values_offset + stages * value_bytes),
        bytes(state_offset + device::fused_columns / 16 * 4 * format.operand_block) {}
};

/// parallel_rows.cuh: x, y, z and their partner; 64 x 64 of a state, which is fp32, in the place of y and z.
struct ParallelLayout {
  int y_offset, z_offset, partner_offset, state_offset, bytes;

  HOST_DEVICE constexpr explicit ParallelLayout(FormatSizes format)
      : y_offset(tile_bytes(format.element, step_channels)),
        z_offset(2 * y_offset),
        partner_offset(3 * y_offset),
        state_offset(y_offset),
        bytes(4 * y_offset) {}
};

}  // namespace assay::scalar
