// What the gradient of learned gates takes (gate_terms.cuh) from blocks of chunk_hopper.cuh that make dq or
// dk: copies of S at every chunk's start and of D at its end, q_i . dq_i and k_j . dk_j.
#pragma once
#include "gate_terms.cuh"
#include "hopper_block.cuh"

// Copies of a chunk's state, rounded as in shared memory: those of 64 key channels and 64 values as the
// threads of a warpgroup hold them, whose order does not matter as long as S and D have the same.
template <int key_tiles, bool later>
__device__ __forceinline__ uint4* kept_state(const HopperBlock<key_tiles, 64, later>& block, int step) {
  const HopperTensors& t = block.tensors;
  const i64 chunk = (block.first_chunk + block.token_of(step) / 64) * block.heads + block.head;
  const int blocks = (t.value_channels + 63) / 64, tiles = (t.key_channels + 63) / 64;
  return t.terms.states +
         ((chunk * blocks + block.value_begin / 64) * tiles) * assay::scalar::KeptState::pieces;
}
template <int n>
__device__ __forceinline__ void keep_state(uint4* to, const Accumulator (&d)[n], int thread) {
  static_assert(n / 2 * 128 == assay::scalar::KeptState::pieces);
#pragma unroll
  for (int i = 0; i < n; i += 2)
    to[i / 2 * 128 + thread] =
        make_uint4(to_bf16_pair(d[i].r[0], d[i].r[1]), to_bf16_pair(d[i].r[2], d[i].r[3]),
                   to_bf16_pair(d[i + 1].r[0], d[i + 1].r[1]), to_bf16_pair(d[i + 1].r[2], d[i + 1].r[3]));
}

// A warp's 16 rows of q, where dq is made, or of k: two of them, lane/4 and 8 more, and columns 8 i +
// 2 (lane%4) and the next of the block's; zeros where there are none.
struct PartnerRows {
  u32 pairs[2][2][4];  // until `dot` 8 columns of the lane's, 16 bytes

  template <class Block>
  __device__ __forceinline__ void load(const Block& block, int step, int warp, int lane) {
    const HopperTensors& t = block.tensors;
    const int row = 16 * warp + (lane >> 2), channel = block.value_begin + 8 * (lane & 3);
    const i64 stride = i64(block.heads) * t.value_channels;
    const Bf16::Bits* const from = t.terms.partner + (block.first + block.token_of(step) + row) * stride +
                                   block.head * t.value_channels + channel;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int half = i & 1, column = 32 * (i >> 1);
      const bool there = row + 8 * half < block.rows_of(step) && channel + column < t.value_channels;
      const uint4 x =
          there ? *reinterpret_cast<const uint4*>(from + 8 * half * stride + column) : make_uint4(0, 0, 0, 0);
      u32(&to)[4] = pairs[half][i >> 1];
      to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
    }
  }
  // Their products with the same rows of a result, as far as it comes from other chunks.
  template <class Block>
  __device__ __forceinline__ void dot(const Block& block, const Accumulator (&sums)[8], int step, int warp,
                                      int lane) {
    const HopperTensors& t = block.tensors;
    const int blocks = (t.value_channels + 63) / 64;
    float* const to = t.terms.dots + i64(block.head * blocks + block.value_begin / 64) * t.terms.tokens +
                      block.first + block.token_of(step);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = 0.0f;
      spread_pairs(pairs[half][0], lane);
      spread_pairs(pairs[half][1], lane);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const Pair<Bf16> pair{pairs[half][i >> 2][i & 3]};
        sum = fused(sums[i].r[2 * half], pair.low(), sum);
        sum = fused(sums[i].r[2 * half + 1], pair.high(), sum);
      }
      sum = GateTerms::over_quad(sum);
      const int row = 16 * warp + 8 * half + (lane >> 2);
      if ((lane & 3) == 0 && row < block.rows_of(step)) to[row] = sum;
    }
  }
};
