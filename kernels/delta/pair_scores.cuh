// What belongs to the pairs (i, j), j <= i, of a chunk's tokens: in registers the rows of a warp's 16 tokens
// i, in shared memory tiles of 16 x 16.
#pragma once
#include "../channel/fragment.cuh"
#include "../scalar/rows.cuh"
#include "../scalar/token_decay.cuh"
#include "chunk_layout.h"

namespace rule {

// A tile of 16 x 16, as ldmatrix takes it: of 16 bits four matrices of 8 x 8, by columns.
template <class Format>
struct PairTile {
  using Element = Format;
  using Bits = typename Format::Bits;
  static constexpr int bytes = 256 * int(sizeof(Bits));

  static __device__ int offset(int row, int column) {
    if constexpr (sizeof(Bits) == 2)
      return 256 * (column >> 3) + 128 * (row >> 3) + 16 * (row & 7) + 2 * (column & 7);
    else
      return 64 * row + 4 * column;
  }
  // Where the tile of rows 16 `tile` .. and columns 16 `earlier` .. lies.
  static __device__ int place(int tile, int earlier) { return (tile * (tile + 1) / 2 + earlier) * bytes; }
};

// s[d][c].r[2 h + b]: token lane/4 + 8 h of the warp's with token 8 c + 2 (lane%4) + b of the tile d before
// its own. Tiles that would lie before the chunk are zero.
template <class Operand>
struct PairScores {
  Accumulator s[4][2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int d = 0; d < 4; ++d) s[d][0].clear(), s[d][1].clear();
  }
  // x and y: each one's rows times the same columns, over 16 `groups` channels.
  template <class XTile, class YTile, class ColumnTile>
  static __device__ __forceinline__ void add(PairScores& x, const char* of_x, PairScores& y, const char* of_y,
                                             const char* columns, int groups, int warp, int lane) {
#pragma unroll 1
    for (int group = 0; group < groups; ++group) {
      Operand a, b;
      load_rows<XTile>(a, of_x, 16 * warp, 16 * group, lane);
      load_rows<YTile>(b, of_y, 16 * warp, 16 * group, lane);
#pragma unroll
      for (int d = 0; d < 4; ++d)
        if (d <= warp) {
          Operand column;
          load_rows<ColumnTile>(column, columns, 16 * (warp - d), 16 * group, lane);
#pragma unroll
          for (int c = 0; c < 2; ++c) multiply(x.s[d][c], a, column, c), multiply(y.s[d][c], b, column, c);
        }
    }
  }
  // e^{G_i - G_j} of every pair.
  __device__ __forceinline__ void set_weights(const PairDecays& decays, int warp, int lane) {
    clear();
    set_own_weights(decays, warp, lane);
#pragma unroll
    for (int d = 1; d < 4; ++d) {
      if (d > warp) continue;
      const int l = PairDecays::level_of(2 * warp, 2 * (warp - d));
      const float* of_rows = decays.up[l] + 16 * warp + (lane >> 2);
      const float* of_columns = decays.after[l] + 16 * (warp - d) + 2 * (lane & 3);
      const float row[2] = {of_rows[0], of_rows[8]};
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const float2 pair = *reinterpret_cast<const float2*>(of_columns + 8 * c);
        const float column[2] = {pair.x, pair.y};
#pragma unroll
        for (int e = 0; e < 4; ++e) s[d][c].r[e] = power_of_two(row[e >> 1] + column[e & 1]);
      }
    }
  }
  __device__ __forceinline__ void times(float factor) {
#pragma unroll
    for (int i = 0; i < 32; ++i) at(i) = at(i) * factor;
  }
  __device__ __forceinline__ void times(const PairScores& other) {
#pragma unroll
    for (int i = 0; i < 32; ++i) at(i) = at(i) * other.at(i);
  }
  __device__ __forceinline__ void take_product(const PairScores& x, const PairScores& y) {
#pragma unroll
    for (int i = 0; i < 32; ++i) at(i) = fused(-x.at(i), y.at(i), at(i));
  }
  // Drops by selection what is no pair: j > i, or j = i too.
  template <bool strict>
  __device__ __forceinline__ void keep_pairs(int lane) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = (lane >> 2) + 8 * ((i >> 1) & 1), column = 8 * (i >> 2) + 2 * (lane & 3) + (i & 1);
      at(i) = column < row + (strict ? 0 : 1) ? at(i) : 0.0f;
    }
  }
  // To the warp's row of tiles.
  template <class Format>
  __device__ __forceinline__ void store(char* tiles, int warp, int lane) const {
    using T = PairTile<Format>;
#pragma unroll
    for (int d = 0; d < 4; ++d) {
      if (d > warp) continue;
      char* tile = tiles + T::place(warp, warp - d);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Accumulator& x = s[d][i >> 1];
        char* to = tile + T::offset((lane >> 2) + 8 * (i & 1), 8 * (i >> 1) + 2 * (lane & 3));
        const float low = x.r[2 * (i & 1)], high = x.r[2 * (i & 1) + 1];
        if constexpr (sizeof(typename T::Bits) == 2)
          *reinterpret_cast<u32*>(to) = encode_pair<Format>(low, high);
        else
          *reinterpret_cast<float2*>(to) = make_float2(low, high);
      }
    }
  }
  __device__ __forceinline__ float& at(int i) {
    return s[i >> 3][(i >> 2) & 1].r[i & 3];
  }
  __device__ __forceinline__ const float& at(int i) const {
    return s[i >> 3][(i >> 2) & 1].r[i & 3];
  }

 private:
  // Blocks of 8 x 8 part at level 3, their own pairs below it.
  __device__ __forceinline__ void set_own_weights(const PairDecays& decays, int warp, int lane) {
    const int row = lane >> 2, first = 16 * warp;
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const int column = 2 * (lane & 3) + b, l = max(31 - __clz(row ^ column), 0);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int i = first + 8 * h + row, j = first + 8 * h + column;
        const float weight = power_of_two(decays.up[l][i] + decays.after[l][j]);
        s[0][h].r[2 * h + b] = column < row ? weight : 1.0f;
      }
      s[0][0].r[2 + b] = power_of_two(decays.up[3][first + 8 + row] + decays.after[3][first + column]);
    }
  }
};

}  // namespace rule
