// What the chunks of rwkv7 leave in memory between their launches. Host and device compile this file (C++17).
#pragma once
#include "../delta/chunk_layout.h"

namespace assay::rwkv7 {

/// G_i sums log decays up to token i, E_i up to the one before. Pairs are
///   AB_ij = (a_i . b_j) e^{E_i - G_j}, AK alike, j < i
///   RB_ij = (r_i . b_j) e^{G_i - G_j}, RK alike, j <= i
/// and X = (1 - AB)^-1 of each tile's own pairs. What goes back is what goes forward, transposed: r for k, a
/// for b, last token first.
///                                          forward            backward
///   reads     [tile][key group]            a_i e^{E_i}        b_i e^{L - G_i}
///   queries   [tile][key group]            r_i e^{G_i}        k_i e^{L - G_i}
///   writes    [key group][tile]            b_i e^{L - G_i}    a_i e^{E_i}, rows are key channels
///   value_writes  [key group][tile]        k_i e^{L - G_i}    scale r_i e^{G_i}
///   removals of tiles (i, j)               AB                 AB^T
///   feeds                                  AK                 scale RB^T
///   weights                                RB                 AK^T
///   directs                                RK                 scale RK^T
///   solves    of each tile                 X                  X^T
struct PreparedLayout : delta::ChunkOperands<4, 4> {
  using ChunkOperands::ChunkOperands;
  /// Of a scan, which has taken a chunk's values when it starts copying the next one's.
  static constexpr int value_tiles = 1;
  HOST_DEVICE constexpr int reads(int tile, int group) const { return tokens(0, tile, group); }
  HOST_DEVICE constexpr int queries(int tile, int group) const { return tokens(1, tile, group); }
  HOST_DEVICE constexpr int writes(int group, int tile) const { return channels(2, group, tile); }
  HOST_DEVICE constexpr int value_writes(int group, int tile) const { return channels(3, group, tile); }
  HOST_DEVICE constexpr int removal(int tile, int earlier) const { return pairs(0, tile, earlier); }
  HOST_DEVICE constexpr int feed(int tile, int earlier) const { return pairs(1, tile, earlier); }
  HOST_DEVICE constexpr int weight(int tile, int earlier) const { return pairs(2, tile, earlier); }
  HOST_DEVICE constexpr int direct(int tile, int earlier) const { return pairs(3, tile, earlier); }
};

/// The kernel of the gradients (chunk_gradients.cuh): a warp for every 16 tokens and key channels of a block.
/// First the sums over pairs of tokens and their diagonals, which stay; then do, v, what tokens read and
/// pull, S and D while they are contracted, `values` value channels at a time, and afterwards in their place
/// what warps have for each other, as operands and as sums. r, k, a, b and w, which the gradients replace in
/// the end, have room of their own (`early`), or come into that place too.
struct GradientLayout {
  int keys, values;  ///< channels
  int diagonals_offset, cotangents_offset, values_offset, reads_offset, pulls_offset, states_offset,
      adjoints_offset;
  int queries_offset, keys_offset, readers_offset, writers_offset, gates_offset;
  int exchange_offset, sums_offset;
  int block, bytes;  ///< block: of an operand
  bool early;

  HOST_DEVICE constexpr GradientLayout(device::FormatSizes format, int gate)
      : keys(format.kept == 2 ? 32 : 16),
        values(format.kept == 2 ? 64 : 32),
        diagonals_offset(2 * device::tile_bytes(format.kept, 64)),
        cotangents_offset(diagonals_offset + 2 * 4 * delta::chunk_tokens),
        values_offset(cotangents_offset + device::tile_bytes(format.element, values)),
        reads_offset(values_offset + device::tile_bytes(format.element, values)),
        pulls_offset(reads_offset + device::tile_bytes(format.kept, values)),
        states_offset(pulls_offset + device::tile_bytes(format.kept, values)),
        adjoints_offset(states_offset + device::tile_bytes(format.kept, keys)),
        queries_offset(0),
        keys_offset(device::tile_bytes(format.element, keys)),
        readers_offset(2 * keys_offset),
        writers_offset(3 * keys_offset),
        gates_offset(4 * keys_offset),
        exchange_offset(cotangents_offset),
        sums_offset(0),
        block(format.operand_block),
        bytes(0),
        early(false) {
    const int contracted = adjoints_offset + device::tile_bytes(format.kept, keys),
              inputs = gates_offset + device::tile_bytes(gate, keys), exchange = keys / 16 * 16 * block,
              sums = 4 * 3 * 4 * keys;
    early = contracted + inputs <= device::most_shared_bytes;
    queries_offset = early ? contracted : cotangents_offset;
    exchange_offset = early ? cotangents_offset : queries_offset + inputs;
    sums_offset = exchange_offset + exchange;
    keys_offset += queries_offset, readers_offset += queries_offset, writers_offset += queries_offset;
    gates_offset += queries_offset;
    const int end = sums_offset + sums, before = early ? contracted + inputs : contracted;
    bytes = end > before ? end : before;
  }
  HOST_DEVICE constexpr int threads() const { return 8 * keys; }
};
static_assert(GradientLayout(device::bf16_sizes, 4).bytes <= device::most_shared_bytes);
static_assert(GradientLayout(device::fp16_sizes, 4).bytes <= device::most_shared_bytes);
static_assert(GradientLayout(device::fp32_sizes, 4).bytes <= device::most_shared_bytes);

}  // namespace assay::rwkv7
