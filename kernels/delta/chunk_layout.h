// What the chunked delta rules leave in memory between their two launches. Host and device compile this file
// (C++17).
#pragma once
#include "../device/tile_layout.h"

// Functions hold the state of one of these numbers of key channels.
#define FOR_EACH_RULE_CAPACITY(kernel) kernel(64) kernel(128) kernel(256)

namespace assay::delta {

inline constexpr int chunk_tokens = 64;          ///< counted from each sequence's start
inline constexpr int scan_values = 64;           ///< value channels of a block of the scan: 16 per warp
inline constexpr int turns_bytes = 4 * 16 * 48;  ///< beside all that, for transposing (transpose.cuh)
inline constexpr int tile_pairs = 10;            ///< tiles of 16 x 16 on and below the diagonal

/// Of the function that serves so many key channels.
constexpr int rule_capacity(long long channels) {
  return channels <= 64 ? 64 : channels <= 128 ? 128 : 256;
}

/// One chunk and head, as 16 x 16 operands (device/operand.cuh) of 4 tiles of 16 tokens and key groups of 16
/// channels: `sides` of all tiles and groups, `kinds` of pairs of tiles, and an operand of each tile, as
/// large as fp32 operands are whatever the format. Then e^L of all key channels as fp32.
template <int sides, int kinds>
struct ChunkOperands {
  int block, key_groups;

  HOST_DEVICE constexpr ChunkOperands(int operand_block, int key_groups)
      : block(operand_block), key_groups(key_groups) {}
  /// Rows are tokens, [tile][key group].
  HOST_DEVICE constexpr int tokens(int side, int tile, int group) const {
    return ((4 * side + tile) * key_groups + group) * block;
  }
  /// Rows are key channels, [key group][tile].
  HOST_DEVICE constexpr int channels(int side, int group, int tile) const {
    return tokens(side, 0, 0) + (group * 4 + tile) * block;
  }
  HOST_DEVICE constexpr int pairs(int kind, int tile, int earlier) const {
    return tokens(sides, 0, 0) + (kind * tile_pairs + tile * (tile + 1) / 2 + earlier) * block;
  }
  HOST_DEVICE constexpr int solve(int tile) const {
    return pairs(kinds, 0, 0) + tile * device::fp32_sizes.operand_block;
  }
  HOST_DEVICE constexpr int decays() const { return solve(4); }
  HOST_DEVICE constexpr int bytes() const { return decays() + 64 * key_groups; }
};

/// P_ij = (k_i . k_j) e^{G_i - G_j}, j < i; A_ij = (q_i . k_j) e^{G_i - G_j}, j <= i;
/// X = (1 + diag(beta) P)^-1 diag(beta) of each tile's own pairs.
///                                          forward            backward
///   reads     [tile][key group]            -k_i e^{G_i}       k_i e^{L - G_i}
///   queries   [tile][key group]            q_i e^{G_i}
///   writes    [key group][tile]            k_i e^{L - G_i}    -k_i e^{G_i}, rows are key channels
///   value_writes [key group][tile]                            scale q_i e^{G_i}, in the place of `queries`
///   removals, weights of tiles (i, j)      -P, A              -P^T, scale A^T
///   solves    of each tile                 X                  X^T
/// Solves are operands of their own (solve_operand.cuh).
struct PreparedLayout : ChunkOperands<3, 2> {
  using ChunkOperands::ChunkOperands;
  static constexpr int value_tiles = 2;  ///< of a scan
  HOST_DEVICE constexpr int reads(int tile, int group) const { return tokens(0, tile, group); }
  HOST_DEVICE constexpr int queries(int tile, int group) const { return tokens(1, tile, group); }
  HOST_DEVICE constexpr int value_writes(int group, int tile) const { return channels(1, group, tile); }
  HOST_DEVICE constexpr int writes(int group, int tile) const { return channels(2, group, tile); }
  HOST_DEVICE constexpr int removal(int tile, int earlier) const { return pairs(0, tile, earlier); }
  HOST_DEVICE constexpr int weight(int tile, int earlier) const { return pairs(1, tile, earlier); }
};

/// A block of the scans has a chunk in shared memory while the next one is on its way: rows of keys and
/// queries once, each copied anew as soon as it was read; what belongs to pairs of tokens twice, and values
/// once or twice. Where that is too much (not `whole`), pairs once as well, copied anew when the chunk is
/// solved, but for e^L, and no values. `Prepared`: where the operands lie, as in PreparedLayout.
template <class Prepared>
struct ScanLayout {
  int rows, pairs, decays, values;  ///< bytes; decays: of the pairs'
  bool whole;

  HOST_DEVICE constexpr ScanLayout(device::FormatSizes sizes, int key_groups, bool whole)
      : rows(Prepared(sizes.operand_block, key_groups).removal(0, 0)),
        pairs(Prepared(sizes.operand_block, key_groups).bytes() - rows),
        decays(Prepared(sizes.operand_block, key_groups).bytes() -
               Prepared(sizes.operand_block, key_groups).decays()),
        values(device::tile_bytes(sizes.element, scan_values)),
        whole(whole) {}
  /// Where operands of pairs lie beyond their place in Prepared, and e^L beyond that; `turn`: 0 or 1.
  HOST_DEVICE constexpr int of_pairs(int turn) const { return whole ? turn * pairs : 0; }
  HOST_DEVICE constexpr int of_decays(int turn) const { return whole ? 0 : turn * decays; }
  HOST_DEVICE constexpr int of_values(int turn) const {
    return rows + 2 * pairs + turn % Prepared::value_tiles * values;
  }
  HOST_DEVICE constexpr int bytes() const {
    return whole ? rows + 2 * pairs + Prepared::value_tiles * values : rows + pairs + decays;
  }
  HOST_DEVICE constexpr bool fits() const { return bytes() + turns_bytes <= device::most_shared_bytes; }
};
/// Do the functions of a capacity have all ahead, or all but values? Else they read operands where they lie.
template <class Prepared>
HOST_DEVICE constexpr bool scans_whole_ahead(device::FormatSizes sizes, int capacity) {
  return ScanLayout<Prepared>(sizes, capacity / 16, true).fits();
}
template <class Prepared>
HOST_DEVICE constexpr bool scans_ahead(device::FormatSizes sizes, int capacity) {
  return scans_whole_ahead<Prepared>(sizes, capacity) ||
         ScanLayout<Prepared>(sizes, capacity / 16, false).fits();
}

/// The kernel of the gradients of tokens' gates, or none (token_gradients.cuh): tiles of q, k and do, of what
/// the scans kept of tokens, u and dr, and of states, S and D: together where three such blocks are on a
/// multiprocessor of sm_90, else do in q's place, dr in that of k, D in that of S. Then M and N, tile_pairs
/// tiles each.
struct TokenGradientLayout {
  int keys_offset, cotangents_offset, updates_offset, pulls_offset, states_offset, adjoints_offset;
  int weights_offset, removals_offset, bytes;
  bool all;

  HOST_DEVICE constexpr explicit TokenGradientLayout(device::FormatSizes format)
      : keys_offset(0),
        cotangents_offset(0),
        updates_offset(0),
        pulls_offset(0),
        states_offset(0),
        adjoints_offset(0),
        weights_offset(0),
        removals_offset(tile_pairs * 256 * format.kept),
        bytes(0),
        all(false) {
    const int given = device::tile_bytes(format.element, 64), kept = device::tile_bytes(format.kept, 64);
    all = 3 * given + 4 * kept + 2 * removals_offset <= device::third_of_shared_bytes;
    keys_offset = given;
    cotangents_offset = all ? 2 * given : 0;
    pulls_offset = all ? 3 * given : given;
    updates_offset = pulls_offset + kept;
    states_offset = updates_offset + kept;
    adjoints_offset = all ? states_offset + kept : states_offset;
    weights_offset = adjoints_offset + kept;
    removals_offset += weights_offset;
    bytes = 2 * removals_offset - weights_offset;
  }
};

/// The kernel of the gradients of key channels' gates (channel_gradients.cuh), 64 key channels a block: tiles
/// of q, k and g, which the gradients replace in the end; do, u, dr, S and D while they are contracted, M, N
/// and M's diagonal afterwards in their place. Where all that exceeds 99 KiB q, k and g wait for the
/// place too (not `early`).
struct ChannelGradientLayout {
  int updates_offset, pulls_offset, states_offset, adjoints_offset;  ///< do comes first
  int removals_offset, diagonal_offset;                              ///< M comes first
  int queries_offset, keys_offset, gates_offset;
  int bytes;
  bool early;

  HOST_DEVICE constexpr ChannelGradientLayout(device::FormatSizes format, int gate)
      : updates_offset(device::tile_bytes(format.element, 64)),
        pulls_offset(updates_offset + device::tile_bytes(format.kept, 64)),
        states_offset(pulls_offset + device::tile_bytes(format.kept, 64)),
        adjoints_offset(states_offset + device::tile_bytes(format.kept, 64)),
        removals_offset(device::tile_bytes(format.kept, 64)),
        diagonal_offset(2 * removals_offset),
        queries_offset(0),
        keys_offset(device::tile_bytes(format.element, 64)),
        gates_offset(2 * keys_offset),
        bytes(0),
        early(false) {
    const int stage = adjoints_offset + device::tile_bytes(format.kept, 64),
              inputs = gates_offset + device::tile_bytes(gate, 64),
              products = diagonal_offset + 4 * chunk_tokens;
    early = inputs + stage <= device::most_shared_bytes;
    queries_offset = early ? stage : products;
    keys_offset += queries_offset, gates_offset += queries_offset;
    const int end = queries_offset + inputs;
    bytes = end > stage ? end : stage;
  }
};

}  // namespace assay::delta
