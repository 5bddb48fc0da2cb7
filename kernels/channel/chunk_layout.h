// Shared memory of the chunked kernels with decays per key channel. Host and device compile this file
// (C++17). `key`, `gate`, `query`: bytes of an element.
#pragma once
#include "../device/tile_layout.h"

// Widths of the state scan's blocks that modules hold, in value channels, added up. For fp32 a wide block's
// stages exceed 99 KiB; fp16 is served by the wide one alone. Macros, as names of kernels follow from them.
#define SCAN_WIDTHS_Bf16 (32 + 64)
#define SCAN_WIDTHS_Fp16 64
#define SCAN_WIDTHS_Fp32 32
#define SCAN_WIDTHS_OF(format) SCAN_WIDTHS_##format
#define SCAN_WIDTHS(format) SCAN_WIDTHS_OF(format)

namespace assay::channel {

using device::tile_bytes;

inline constexpr int chunk_tokens = 64;    ///< counted from each sequence's start
inline constexpr int block_channels = 64;  ///< key channels of a block: 16 per warp

/// A stage of the state scan (chunk_state.cuh): tiles of k, g and v. `blocks`: those that a multiprocessor is
/// to hold, three or four.
struct StateStageLayout {
  int gate_offset, value_offset, bytes;
  int count;  ///< stages of a block

  HOST_DEVICE constexpr StateStageLayout(int key, int gate, int value, int columns, int blocks = 3)
      : gate_offset(tile_bytes(key, block_channels)),
        value_offset(gate_offset + tile_bytes(gate, block_channels)),
        bytes(value_offset + tile_bytes(value, columns)),
        count(3 * bytes <= (blocks == 4 ? device::quarter_of_shared_bytes : device::third_of_shared_bytes)
                  ? 3
                  : 2) {}
  HOST_DEVICE constexpr int shared_bytes() const { return count * bytes; }
};

/// What the warps of a block hand to each other for their scores (Exchange in chunk_scores.cuh), from the
/// start of shared memory: each warp's queries for all key channels, totals and keys of three tiles.
struct ExchangeLayout {
  static constexpr int query_bytes = 1024;  ///< of 16 key channels of a warp
  static constexpr int total_bytes = 3 * block_channels * 4;
  int warp_bytes, totals_offset, keys_offset, key_bytes;

  HOST_DEVICE constexpr ExchangeLayout(int operand_block, int key_groups)
      : warp_bytes(key_groups * query_bytes),
        totals_offset(4 * warp_bytes),
        keys_offset(totals_offset + total_bytes),
        key_bytes(12 * operand_block) {}
  HOST_DEVICE constexpr int end() const { return keys_offset + key_bytes; }
};

/// The output kernel (chunk_output.cuh): the exchange, then one or two stages, each 64 x 64 of the state and
/// 64 x 64 of v. Stages start loading before the scores only for bf16; for wider formats they take the keys'
/// place, so that 256 key channels fit. `steps`: stages that are loaded in all.
struct OutputLayout {
  int stage_offset, stages, bytes;

  HOST_DEVICE static constexpr bool is_early(device::FormatSizes format) {
    return format.operand_block == device::bf16_sizes.operand_block;
  }
  HOST_DEVICE static constexpr int stage_bytes(device::FormatSizes format) {
    return 16 * format.operand_block + tile_bytes(format.element, 64);
  }
  HOST_DEVICE constexpr OutputLayout(device::FormatSizes format, const ExchangeLayout& exchange, int steps)
      : stage_offset(is_early(format) ? exchange.end() : exchange.keys_offset),
        stages(is_early(format) && steps > 1 &&
                       stage_offset + 2 * stage_bytes(format) <= device::most_shared_bytes
                   ? 2
                   : 1),
        bytes(stage_offset + stages * stage_bytes(format)) {
    if (bytes < exchange.end()) bytes = exchange.end();
  }
};

/// The kernel of the keys' gradients (chunk_keys.cuh): tiles of q, k and g, which the gradients replace in
/// the end; do, v, S and D while they are contracted, M and its diagonal afterwards in their place. Where all
/// that exceeds 99 KiB q, k and g wait for the place too (not `early`). `slots`: a tile of fp32 that gsa's
/// blocks have besides, `bytes_with_slots` with it. Of bf16 two warps share 16 key channels, one half of the
/// chunk's tokens each, and hand each other operands of their two tiles and sums, behind M.
struct KeysLayout {
  int values_offset, states_offset, adjoints_offset;  ///< do comes first
  int diagonal_offset, exchange_offset, sums_offset;  ///< M comes first
  int queries_offset, keys_offset, gates_offset, slots_offset;
  int bytes, bytes_with_slots;
  bool early;

  static constexpr int sums = 7;
  HOST_DEVICE static constexpr int halves(device::FormatSizes format) {
    return format.operand_block == device::bf16_sizes.operand_block ? 2 : 1;
  }

  HOST_DEVICE constexpr KeysLayout(device::FormatSizes format, int gate, int query)
      : values_offset(tile_bytes(format.element, 64)),
        states_offset(2 * values_offset),
        adjoints_offset(states_offset + tile_bytes(format.kept, 64)),
        diagonal_offset(tile_bytes(format.kept, 64)),
        exchange_offset((diagonal_offset + chunk_tokens * 4 + 15) / 16 * 16),
        sums_offset(0),
        queries_offset(0),
        keys_offset(tile_bytes(query, 64)),
        gates_offset(keys_offset + tile_bytes(format.element, 64)),
        slots_offset(states_offset),
        bytes(0),
        bytes_with_slots(0),
        early(false) {
    const int stage = adjoints_offset + tile_bytes(format.kept, 64),
              inputs = gates_offset + tile_bytes(gate, 64),
              products = exchange_offset + (halves(format) - 1) * 16 * format.operand_block;
    early = inputs + stage <= device::most_shared_bytes;
    queries_offset = early ? stage : products;
    keys_offset += queries_offset, gates_offset += queries_offset;
    sums_offset = queries_offset + inputs;
    const int end = sums_offset + (halves(format) - 1) * sums * block_channels * 4;
    bytes = end > stage ? end : stage;
    const int slots = tile_bytes(4, 64);
    if (!early || slots_offset + slots > stage) slots_offset = end;  // else in the place of S and D
    bytes_with_slots = slots_offset + slots > bytes ? slots_offset + slots : bytes;
  }
};

}  // namespace assay::channel
