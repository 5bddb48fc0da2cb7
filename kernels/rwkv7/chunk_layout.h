// What the chunks of rwkv7 leave in memory between their launches. Host and device compile this file (C++17).
#pragma once
#include "../delta/chunk_layout.h"

namespace assay::rwkv7 {

/// One chunk and head, as 16 x 16 operands (device/operand.cuh), 4 tiles of 16 tokens and key groups of 16
/// channels. G_i sums log decays up to token i, E_i up to the one before. Pairs are
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
/// then e^L of all key channels as fp32. Solves are as fp32 operands are, whatever the format.
struct PreparedLayout {
  int block, key_groups;

  HOST_DEVICE constexpr PreparedLayout(int operand_block, int key_groups)
      : block(operand_block), key_groups(key_groups) {}
  HOST_DEVICE constexpr int reads(int tile, int group) const { return (tile * key_groups + group) * block; }
  HOST_DEVICE constexpr int queries(int tile, int group) const { return reads(4 + tile, group); }
  HOST_DEVICE constexpr int writes(int group, int tile) const {
    return reads(8, 0) + (group * 4 + tile) * block;
  }
  HOST_DEVICE constexpr int value_writes(int group, int tile) const {
    return reads(12, 0) + (group * 4 + tile) * block;
  }
  HOST_DEVICE constexpr int removal(int tile, int earlier) const { return pairs(0, tile, earlier); }
  HOST_DEVICE constexpr int feed(int tile, int earlier) const { return pairs(1, tile, earlier); }
  HOST_DEVICE constexpr int weight(int tile, int earlier) const { return pairs(2, tile, earlier); }
  HOST_DEVICE constexpr int direct(int tile, int earlier) const { return pairs(3, tile, earlier); }
  HOST_DEVICE constexpr int solve(int tile) const {
    return pairs(4, 0, 0) + tile * device::fp32_sizes.operand_block;
  }
  HOST_DEVICE constexpr int decays() const { return solve(4); }
  HOST_DEVICE constexpr int bytes() const { return decays() + 64 * key_groups; }

 private:
  HOST_DEVICE constexpr int pairs(int kind, int tile, int earlier) const {
    return reads(16, 0) + (kind * delta::tile_pairs + tile * (tile + 1) / 2 + earlier) * block;
  }
};

}  // namespace assay::rwkv7
