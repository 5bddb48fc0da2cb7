// The gradient of a chunk's gates. With P_ij = scale (q_i . k_j) e^{G_i - G_j} (do_i . v_j), S the state at
// the chunk's start and D its gradient at the chunk's end,
//   dg_t = e^L <S, D> + sum_{i>=t} q_i . dq_i + sum_{j<t} k_j . dk_j + sum_{j<t<=i} P_ij,
// dq and dk only as far as they come from other chunks. The rectangles of P are split as its pairs are
// (token_decay.cuh): where s = 2^l is the highest bit in which i and j differ, i lies in the second and j in
// the first half of an aligned block of 2 s tokens, and the pair counts for the tokens of the second half up
// to i and for those of the first half after j. Nothing is ever subtracted.
#pragma once
#include "chunk_rows.cuh"

struct GateTerms {
  // Sums of P over a token's partners of level l, in [l]; of level 5 in [5] + [6].
  float pairs[7][64];
  float ends[64], starts[64];  // q_i . dq_i, k_j . dk_j
  float state[4];              // <S, D> by warps

  static __device__ float over_quad(float x) {
    x = x + __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
  }
  static __device__ float over_rows(float x) {
#pragma unroll
    for (int mask = 4; mask < 32; mask *= 2) x = x + __shfl_xor_sync(0xffffffffu, x, mask);
    return x;
  }

  // One warp's rows of P, with LaterPartners. Every entry of `pairs` is written by exactly one warp.
  __device__ __forceinline__ void sum_pairs(const Accumulator (&p)[8], int warp, int lane) {
    const int row = lane >> 2, column = 2 * (lane & 3);
    Accumulator own[2];  // the tile of the warp's own tokens
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float& x = own[i >> 2].r[i & 3];
      x = p[i >> 2].r[i & 3];
#pragma unroll
      for (int m = 1; m < 4; ++m) x = chosen(m == warp, p[2 * m + (i >> 2)].r[i & 3], x);
    }
#pragma unroll
    for (int h = 0; h < 2; ++h)
      inside_block(own[h].r[2 * h], own[h].r[2 * h + 1], pairs[0] + 16 * warp + 8 * h, row, column, lane);
    // Level 3: the tile's second block of columns with its first block of rows.
    const float of_row = over_quad(own[1].r[0] + own[1].r[1]);
    if ((lane & 3) == 0) pairs[3][16 * warp + row] = of_row;
    store_columns(pairs[3] + 16 * warp + 8, own[1].r[0], own[1].r[1], column, lane);

    float of_rows[2][2] = {};  // [level 4, 5][h]
#pragma unroll
    for (int c = 2; c < 8; ++c) {
      if ((c >> 1) <= warp) continue;
      const bool near = (c >> 1) == (warp ^ 1);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float sum = p[c].r[2 * h] + p[c].r[2 * h + 1];
        of_rows[0][h] = of_rows[0][h] + (near ? sum : 0.0f);
        of_rows[1][h] = of_rows[1][h] + (near ? 0.0f : sum);
      }
      store_columns(pairs[near ? 4 : 5 + (warp & 1)] + 8 * c, p[c].r[0] + p[c].r[2], p[c].r[1] + p[c].r[3],
                    column, lane);
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float near = over_quad(of_rows[0][h]), far = over_quad(of_rows[1][h]);
      const int token = 16 * warp + 8 * h + row;
      if ((lane & 3) == 0 && (warp & 1) == 0) pairs[4][token] = near;
      if ((lane & 3) == 0 && warp < 2) pairs[5][token] = far, pairs[6][token] = 0.0f;
    }
  }

  // What the pairs inside the chunk give the gate of token t.
  __device__ __forceinline__ float of_pairs(int t) const {
    float sum = 0.0f;
#pragma unroll
    for (int l = 0; l < 6; ++l) {
      const int begin = t & -(1 << l), end = begin + (1 << l);
      const bool second = (t >> l) & 1;
      for (int i = second ? t : begin; i < (second ? end : t); ++i)
        sum = sum + (l == 5 ? pairs[5][i] + pairs[6][i] : pairs[l][i]);
    }
    return sum;
  }
  // What pairs that reach over the chunk's start or end give it.
  __device__ __forceinline__ float of_ends(int t) const {
    float later = 0.0f, earlier = 0.0f;
    for (int i = t; i < 64; ++i) later = later + ends[i];
    for (int j = 0; j < t; ++j) earlier = earlier + starts[j];
    return later + earlier;
  }
  __device__ __forceinline__ float of_state() const {
    return (state[0] + state[1]) + (state[2] + state[3]);
  }
  // Gradient of token t's gate; all 128 threads, two per token. Lanes with odd numbers give nothing of use.
  __device__ __forceinline__ float gradient(float whole_chunk) const {
    const int t = int(threadIdx.x) >> 1;
    const float sum = threadIdx.x & 1 ? of_pairs(t) : of_ends(t) + of_state() * whole_chunk;
    return sum + __shfl_xor_sync(0xffffffffu, sum, 1);
  }

 private:
  // Sums over the rows, of the lane's two columns, to the columns' places.
  static __device__ __forceinline__ void store_columns(float* to, float first, float second, int column,
                                                       int lane) {
    first = over_rows(first), second = over_rows(second);
    if (lane < 4) to[column] = first, to[column + 1] = second;
  }
  // Both are in registers: an array's element chosen by a branch would be looked up in memory.
  static __device__ __forceinline__ float chosen(bool first, float x, float y) {
    return first ? x : y;
  }

  // Levels 0 to 2: an 8 x 8 block on the diagonal, of which the lane has columns `column` and the next.
  static __device__ __forceinline__ void inside_block(float first, float second, float* to, int row,
                                                      int column, int lane) {
    const float x[2] = {first, second};
#pragma unroll
    for (int l = 0; l < 3; ++l) {
      float level[2];
#pragma unroll
      for (int b = 0; b < 2; ++b) level[b] = ((row ^ (column + b)) >> l) == 1 ? x[b] : 0.0f;
      const float of_row = over_quad(level[0] + level[1]);
      if ((lane & 3) == 0 && ((row >> l) & 1) == 0) to[64 * l + row] = of_row;
#pragma unroll
      for (int b = 0; b < 2; ++b) {
        const float of_column = over_rows(level[b]);
        if (lane < 4 && (((column + b) >> l) & 1)) to[64 * l + column + b] = of_column;
      }
    }
  }
};
