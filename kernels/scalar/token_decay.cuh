// Decays of a chunk of 64 tokens with one gate per token (or none, or one per head), and their sums.
//
// No decay is ever a difference. The pair (j, i), j < i, is split where the bits of j and i first differ:
// with s = 2^l that bit, j lies in the first and i in the second half of an aligned block of 2 s tokens, and
//   e^{G_i - G_j} = 2^{up[l][i] + after[l][j]},  up = sum over i's block of s tokens up to i, after = over
//   j's after j.
// All terms are <= 0 and in log2 units (decay.cuh); a sum is at most 7 additions deep.
#pragma once
#include "../device/decay.cuh"
#include "../device/gate.cuh"

// The gates of one chunk in log2 units, two per lane of a warp: tokens lane and lane + 32, 0 beyond its end.
template <class Gate>
__device__ __forceinline__ void load_gates(float (&y)[2], const typename Gate::Bits* gates, i64 first,
                                           i64 rows, int head, int heads, int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = lane + 32 * half;
    const i64 at = Gate::width == GateWidth::head ? head : (first + row) * heads + head;
    y[half] = row < rows ? Gate::decode(gates[at]) : 0.0f;
  }
}

// One warp's sums: lane holds tokens lane and lane + 32.
struct TokenSums {
  float up[2], after[2], total[2];  // over aligned blocks of s tokens, s = 1 to begin with

  __device__ explicit TokenSums(const float (&y)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) up[half] = total[half] = y[half], after[half] = 0.0f;
  }
  // From blocks of s = 2^l tokens to 2 s.
  __device__ void double_block(int l, int lane) {
    const bool second = (lane >> l) & 1;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float partner = __shfl_xor_sync(0xffffffffu, total[half], 1 << l);
      if (second)
        up[half] = up[half] + partner;
      else
        after[half] = after[half] + partner;
      total[half] = total[half] + partner;
    }
  }
  // From 32 to 64 tokens.
  __device__ void join_halves() {
    up[1] = up[1] + total[0];
    after[0] = after[0] + total[1];
    total[0] = total[1] = total[0] + total[1];
  }
};

// Sums of a chunk in shared memory, for the weights of all its pairs.
struct PairDecays {
  float up[6][64], after[6][64];
  float from_start[64];  // e^{G_i}

  // By one whole warp; visible to the others after the next barrier. Returns the sums over the chunk.
  __device__ TokenSums fill(const float (&y)[2], int lane) {
    TokenSums sums(y);
#pragma unroll
    for (int l = 0; l < 6; ++l) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        up[l][lane + 32 * half] = sums.up[half];
        after[l][lane + 32 * half] = sums.after[half];
      }
      if (l < 5)
        sums.double_block(l, lane);
      else
        sums.join_halves();
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) from_start[lane + 32 * half] = power_of_two(sums.up[half]);
    return sums;
  }
  // Weight of tokens of different blocks of 8, whose numbers are `row_block` and `column_block`.
  __device__ static int level_of(int row_block, int column_block) {
    return 34 - __clz(row_block ^ column_block);
  }
  // Weight of the pair (j, i), j <= i.
  __device__ float weight(int i, int j) const {
    const int l = 31 - __clz(i ^ j);
    return i == j ? 1.0f : power_of_two(up[max(l, 0)][i] + after[max(l, 0)][j]);
  }
};

// Gradients need the decays to the chunk's end too.
struct GradientDecays : PairDecays {
  float to_end[64];  // e^{L - G_j}

  __device__ void fill(const float (&y)[2], int lane) {
    const TokenSums sums = PairDecays::fill(y, lane);
#pragma unroll
    for (int half = 0; half < 2; ++half) to_end[lane + 32 * half] = power_of_two(sums.after[half]);
  }
  __device__ float whole_chunk() const {
    return from_start[63];
  }  // e^L
};
