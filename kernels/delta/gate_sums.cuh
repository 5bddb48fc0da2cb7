// The gradient of a chunk's gates, of P_ij = (M_ij q_i - N_ij k_i) . k_j and of what crosses the chunk's ends
// (token_gradients.cuh):
//   dg_t = e^L <S, D> + sum_{i>=t} ends_i + sum_{j<t} starts_j + sum_{j<t<=i} P_ij
// Pairs of different tiles of 16 tokens count by the sums over their rows and columns: where i and j first
// part between halves of 64 or of 32 tokens, for the tokens of i's half up to i and those of j's after j.
// Pairs of one tile are summed over its rectangles. Nothing is ever subtracted.
#pragma once
#include "pair_scores.cuh"

namespace rule {

struct GateSums {
  float near[64], far[2][64];   // over partners in the other tile of 32, the other half; by both its warps
  float own[64];                // over the pairs of its own tile that a token's gate lies between
  float ends[64], starts[64];   // what a token has of earlier chunks, and gives to later ones
  float state[4], sums[4][64];  // <S, D> by warps; each warp's share of what is between

  static __device__ __forceinline__ float over_quad(float x) {
    x = x + __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
  }
  static __device__ __forceinline__ float over_lanes(float x) {
    x = over_quad(x);
#pragma unroll
    for (int mask = 4; mask < 32; mask *= 2) x = x + __shfl_xor_sync(0xffffffffu, x, mask);
    return x;
  }

  // One warp's rows of P. Every entry is written by exactly one warp.
  template <class Operand>
  __device__ __forceinline__ void add_pairs(const PairScores<Operand>& p, int warp, int lane) {
    own_tile(p.s[0], warp, lane);
    const bool odd = warp & 1;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float next = of_row(p.s[1], h), farther = of_row(p.s[2], h) + of_row(p.s[3], h),
                  of_near = over_quad(odd ? next : 0.0f), of_far = over_quad(odd ? farther : next + farther);
      const int token = 16 * warp + 8 * h + (lane >> 2);
      if ((lane & 3) == 0 && odd) near[token] = of_near;
      if ((lane & 3) == 0 && warp >= 2) far[0][token] = of_far, far[1][token] = 0.0f;
    }
#pragma unroll
    for (int d = 1; d < 4; ++d) {
      if (d > warp) continue;
      float x[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) x[i] = p.s[d][i >> 1].r[i & 1] + p.s[d][i >> 1].r[2 + (i & 1)];
      store_columns(d == 1 && odd ? near : far[odd], x, warp - d, lane);
    }
  }
  // What a token's gate gets, of the first 64 threads; all threads.
  __device__ __forceinline__ float gradient(float whole_chunk, int warp, int lane) {
    __syncthreads();
    share_between(warp, lane);
    __syncthreads();
    const int t = int(threadIdx.x) & 63;
    const float between = (sums[0][t] + sums[1][t]) + (sums[2][t] + sums[3][t]);
    return fused((state[0] + state[1]) + (state[2] + state[3]), whole_chunk, between + own[t]);
  }

 private:
  static __device__ __forceinline__ float of_row(const Accumulator (&x)[2], int h) {
    return (x[0].r[2 * h] + x[0].r[2 * h + 1]) + (x[1].r[2 * h] + x[1].r[2 * h + 1]);
  }
  // x[2 c + b]: of the lane's row and column 8 c + 2 (lane%4) + b; sums over rows to the columns' places.
  static __device__ __forceinline__ void store_columns(float* to, const float (&x)[4], int tile, int lane) {
    const bool c = lane & 16, b = lane & 8;
    const float first = (c ? x[2] : x[0]) + __shfl_xor_sync(0xffffffffu, c ? x[0] : x[2], 16),
                second = (c ? x[3] : x[1]) + __shfl_xor_sync(0xffffffffu, c ? x[1] : x[3], 16);
    float sum = (b ? second : first) + __shfl_xor_sync(0xffffffffu, b ? first : second, 8);
    sum = sum + __shfl_xor_sync(0xffffffffu, sum, 4);
    if ((lane & 4) == 0) to[16 * tile + 8 * int(c) + 2 * (lane & 3) + int(b)] = sum;
  }
  // Sums over the columns before the lane's, of two columns of a row; `total`: over all eight.
  static __device__ __forceinline__ float before(const float (&x)[4], int h, int lane, float& total) {
    const float pair = x[2 * h] + x[2 * h + 1], neighbour = __shfl_xor_sync(0xffffffffu, pair, 1),
                both = pair + neighbour, others = __shfl_xor_sync(0xffffffffu, both, 2);
    total = both + others;
    return ((lane & 1) ? neighbour : 0.0f) + ((lane & 2) ? others : 0.0f);
  }
  // Rectangles i >= t > j of the warp's own tile, t its columns.
  __device__ __forceinline__ void own_tile(const Accumulator (&p)[2], int warp, int lane) {
    const int row = lane >> 2, column = 2 * (lane & 3);
    float unused, lower_left;
    const float upper = before(p[0].r, 0, lane, unused), left = before(p[0].r, 1, lane, lower_left),
                right = lower_left + before(p[1].r, 1, lane, unused);
    const float of_upper[2] = {upper, upper + p[0].r[0]}, of_left[2] = {left, left + p[0].r[2]},
                of_right[2] = {right, right + p[1].r[2]};
    float x[4];
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const bool reaches = row >= column + b;
      x[b] = (reaches ? of_upper[b] : 0.0f) + of_left[b];
      x[2 + b] = reaches ? of_right[b] : 0.0f;
    }
    store_columns(own, x, warp, lane);
  }
  // Over aligned lanes, 2^levels of them: from the lane's on, or before it.
  static __device__ __forceinline__ float sum_of_side(float& total, bool later, int levels, int lane) {
    float sum = later ? total : 0.0f;
#pragma unroll
    for (int l = 0; l < 5; ++l) {
      const float partner = __shfl_xor_sync(0xffffffffu, total, 1 << l);
      if (l < levels) {
        sum = sum + (later != bool((lane >> l) & 1) ? partner : 0.0f);
        total = total + partner;
      }
    }
    return sum;
  }
  // A warp each: ends, starts, pairs of the halves of 64 and of 32 tokens.
  __device__ __forceinline__ void share_between(int warp, int lane) {
    const float* from = warp == 0 ? ends : warp == 1 ? starts : warp == 2 ? far[0] : near;
    float low = from[lane], high = from[lane + 32];
    if (warp == 2) low = low + far[1][lane], high = high + far[1][lane + 32];
    const bool second = lane & 16;
    const float of_low = sum_of_side(low, warp == 3 ? second : warp == 0, warp == 3 ? 4 : 5, lane),
                of_high = sum_of_side(high, warp == 3 ? second : warp != 1, warp == 3 ? 4 : 5, lane);
    sums[warp][lane] = warp == 0 ? of_low + high : of_low;
    sums[warp][lane + 32] = warp == 1 ? of_high + low : of_high;
  }
};

}  // namespace rule
