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
  HOST_DEVICE constexpr int reads(int tile, int group) const { return tokens(0, tile, group); }
  HOST_DEVICE constexpr int queries(int tile, int group) const { return tokens(1, tile, group); }
  HOST_DEVICE constexpr int writes(int group, int tile) const { return channels(2, group, tile); }
  HOST_DEVICE constexpr int value_writes(int group, int tile) const { return channels(3, group, tile); }
  HOST_DEVICE constexpr int removal(int tile, int earlier) const { return pairs(0, tile, earlier); }
  HOST_DEVICE constexpr int feed(int tile, int earlier) const { return pairs(1, tile, earlier); }
  HOST_DEVICE constexpr int weight(int tile, int earlier) const { return pairs(2, tile, earlier); }
  HOST_DEVICE constexpr int direct(int tile, int earlier) const { return pairs(3, tile, earlier); }
};

}  // namespace assay::rwkv7
