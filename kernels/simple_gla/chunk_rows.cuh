// What a warp makes of its 16 tokens of a chunk: their scores with the chunk's tokens, and their outputs.
#pragma once
#include "../gated/shape.cuh"
#include "rows.cuh"
#include "token_decay.cuh"

// A warp's 16 rows of the chunk's scores: s[c].r[2 h + b] is token lane/4 + 8 h of the warp's with token
// 8 c + 2 (lane%4) + b of the chunk.
template <class Operand>
struct ScoreRows {
  Accumulator s[8];

  __device__ void clear() {
#pragma unroll
    for (int c = 0; c < 8; ++c) s[c].clear();
  }
  template <class T>
  __device__ __forceinline__ void add(const char* queries, const char* keys, int groups, int warp, int lane) {
#pragma unroll 1
    for (int group = 0; group < groups; ++group) {
      Operand q;
      load_rows<T>(q, queries, 16 * warp, 16 * group, lane);
#pragma unroll
      for (int m = 0; m < 4; ++m)
        if (m <= warp) {
          Operand k;
          load_rows<T>(k, keys, 16 * m, 16 * group, lane);
          multiply(s[2 * m], q, k, 0);
          multiply(s[2 * m + 1], q, k, 1);
        }
    }
  }
  // Causal, each score times its decay; what lies above the diagonal is dropped by selection.
  template <class Gate>
  __device__ __forceinline__ void weigh(const PairDecays& decays, int warp, int lane) {
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      if (c > 2 * warp + 1) continue;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int i = 16 * warp + (lane >> 2) + 8 * h, j = 8 * c + 2 * (lane & 3), row_block = 2 * warp + h;
#pragma unroll
        for (int b = 0; b < 2; ++b) {
          float& score = s[c].r[2 * h + b];
          if constexpr (has_decay<Gate>) {
            if (c < row_block) {
              const int l = PairDecays::level_of(row_block, c);
              score = score * power_of_two(decays.up[l][i] + decays.after[l][j + b]);
            } else if (c == row_block) {
              score = score * (j + b <= i ? decays.weight(i, j + b) : 0.0f);
            }
          }
          score = j + b <= i ? score : 0.0f;
        }
      }
    }
  }
  // Scores with tokens 16 m .. 16 m + 15 as an operand whose places are those tokens.
  __device__ __forceinline__ Operand operand(int m) const {
    float x[2][4];
#pragma unroll
    for (int i = 0; i < 8; ++i) x[(i >> 1) & 1][(i >> 2) + 2 * (i & 1)] = s[2 * m + (i >> 2)].r[i & 3];
    return Operand::of(x);
  }
};

// Outputs of a warp's 16 tokens, 16 `groups` value channels.
template <class Operand, int groups>
struct OutputRows {
  Accumulator out[groups][2];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < groups; ++i) out[i][0].clear(), out[i][1].clear();
  }
  template <class T>
  __device__ __forceinline__ void add_state(const char* queries, const char* state, int key_groups,
                                            int value_groups, int warp, int lane) {
#pragma unroll 1
    for (int group = 0; group < key_groups; ++group) {
      Operand q;
      load_rows<T>(q, queries, 16 * warp, 16 * group, lane);
#pragma unroll
      for (int i = 0; i < groups; ++i)
        if (i < value_groups) {
          const Operand S = Operand::load(state + (i * 4 + group) * Operand::block_bytes, lane);
          multiply(out[i][0], q, S, 0);
          multiply(out[i][1], q, S, 1);
        }
    }
  }
  __device__ __forceinline__ void decay(const PairDecays& decays, int warp, int lane) {
    const float w[2] = {decays.from_start[16 * warp + (lane >> 2)],
                        decays.from_start[16 * warp + (lane >> 2) + 8]};
#pragma unroll
    for (int i = 0; i < groups * 8; ++i) {
      float& x = out[i >> 3][(i >> 2) & 1].r[i & 3];
      x = x * w[(i >> 1) & 1];
    }
  }
  template <class T>
  __device__ __forceinline__ void add_scores(const Operand (&scores)[4], const char* values, int value_groups,
                                             int warp, int lane) {
#pragma unroll
    for (int i = 0; i < groups; ++i)
      if (i < value_groups)
#pragma unroll
        for (int m = 0; m < 4; ++m)
          if (m <= warp) {
            Operand v;
            load_columns<T>(v, values, 16 * i, NaturalTokens{16 * m}, lane);
            multiply(out[i][0], scores[m], v, 0);
            multiply(out[i][1], scores[m], v, 1);
          }
  }
  template <class Format>
  __device__ __forceinline__ void store(typename Format::Bits* o, int value_begin, int live_rows, float scale,
                                        const Shape& shape, int lane) const {
#pragma unroll
    for (int i = 0; i < groups * 4; ++i) {
      const int half = i & 1, row = (lane >> 2) + 8 * half,
                value = value_begin + 16 * (i >> 2) + 8 * ((i >> 1) & 1) + 2 * (lane & 3);
      const Accumulator& x = out[i >> 2][(i >> 1) & 1];
      if (row < live_rows && value < shape.value_channels)
        store_pair<Format>(o + i64(row) * shape.heads * shape.value_channels + value, x.r[2 * half] * scale,
                           x.r[2 * half + 1] * scale, shape.value_channels - value, shape.vector);
    }
  }
};
