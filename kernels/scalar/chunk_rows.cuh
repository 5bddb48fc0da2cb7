// What a warp makes of its 16 tokens of a chunk: their scores with the chunk's tokens, and their outputs.
#pragma once
#include "../device/shape.cuh"
#include "rows.cuh"
#include "token_decay.cuh"

// Which tokens of the columns' 64 a warp's rows are paired with: in 16s, m of `warp`.
struct EarlierPartners {
  static constexpr bool later = false;
  static __device__ bool hold(int m, int warp) { return m <= warp; }
};
struct LaterPartners {
  static constexpr bool later = true;
  static __device__ bool hold(int m, int warp) { return m >= warp; }
};
struct AllPartners {  // columns of another block of tokens
  static __device__ bool hold(int, int) { return true; }
};
template <bool later>
struct PartnersOf {
  using Type = EarlierPartners;
};
template <>
struct PartnersOf<true> {
  using Type = LaterPartners;
};

// A warp's 16 rows of a block's scores: s[c].r[2 h + b] is token lane/4 + 8 h of the warp's with token
// 8 c + 2 (lane%4) + b of the columns'.
template <class Operand, class Partners = EarlierPartners>
struct ScoreRows {
  Accumulator s[8];

  __device__ void clear() {
#pragma unroll
    for (int c = 0; c < 8; ++c) s[c].clear();
  }
  template <class T, class ColumnTile = T>
  __device__ __forceinline__ void add(const char* rows, const char* columns, int groups, int warp, int lane) {
#pragma unroll 1
    for (int group = 0; group < groups; ++group) {
      Operand q;
      load_rows<T>(q, rows, 16 * warp, 16 * group, lane);
#pragma unroll
      for (int m = 0; m < 4; ++m)
        if (Partners::hold(m, warp)) {
          Operand k;
          load_rows<ColumnTile>(k, columns, 16 * m, 16 * group, lane);
          multiply(s[2 * m], q, k, 0);
          multiply(s[2 * m + 1], q, k, 1);
        }
    }
  }
  // Causal, each score times its decay; what lies on the other side of the diagonal is dropped by selection.
  template <class Gate>
  __device__ __forceinline__ void weigh(const PairDecays& decays, int warp, int lane) {
#pragma unroll
    for (int m = 0; m < 4; ++m)
      if (m == warp)
        weigh_diagonal<Gate>(decays, m, lane);
      else if (has_decay<Gate> && Partners::hold(m, warp))
        weigh_apart(decays, m, warp, lane);
  }
  // Rows and columns of different blocks: each score times 2 to the sum of both tokens' log decays.
  __device__ __forceinline__ void weigh_across(const float* of_rows, const float* of_columns, int warp,
                                               int lane) {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      float& score = s[i >> 2].r[i & 3];
      score = score * power_of_two(of_rows[16 * warp + (lane >> 2) + 8 * ((i >> 1) & 1)] +
                                   of_columns[8 * (i >> 2) + 2 * (lane & 3) + (i & 1)]);
    }
  }
  __device__ __forceinline__ void times(const ScoreRows& other) {
#pragma unroll
    for (int i = 0; i < 32; ++i) s[i >> 2].r[i & 3] = s[i >> 2].r[i & 3] * other.s[i >> 2].r[i & 3];
  }
  __device__ __forceinline__ void times(float factor) {
#pragma unroll
    for (int i = 0; i < 32; ++i) s[i >> 2].r[i & 3] = s[i >> 2].r[i & 3] * factor;
  }
  // Scores with tokens 16 m .. 16 m + 15 as an operand whose places are those tokens.
  __device__ __forceinline__ Operand operand(int m) const {
    float x[2][4];
#pragma unroll
    for (int i = 0; i < 8; ++i) x[(i >> 1) & 1][(i >> 2) + 2 * (i & 1)] = s[2 * m + (i >> 2)].r[i & 3];
    return Operand::of(x);
  }

 private:
  // Rows and columns of different blocks of 16: the pairs' decays part at one level.
  __device__ __forceinline__ void weigh_apart(const PairDecays& decays, int m, int warp, int lane) {
    const int l = PairDecays::level_of(2 * warp, 2 * m), i = 16 * warp + (lane >> 2),
              j = 16 * m + 2 * (lane & 3);
    const float* of_rows = (Partners::later ? decays.after : decays.up)[l] + i;
    const float* of_columns = (Partners::later ? decays.up : decays.after)[l] + j;
    const float row[2] = {of_rows[0], of_rows[8]};
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const float2 pair = *reinterpret_cast<const float2*>(of_columns + 8 * c);
      const float column[2] = {pair.x, pair.y};
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float& score = s[2 * m + c].r[e];
        score = score * power_of_two(row[e >> 1] + column[e & 1]);
      }
    }
  }
  // The warp's own 16 tokens, in blocks of 8.
  template <class Gate>
  __device__ __forceinline__ void weigh_diagonal(const PairDecays& decays, int m, int lane) {
#pragma unroll
    for (int c = 0; c < 2; ++c)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int h = e >> 1, i = 16 * m + (lane >> 2) + 8 * h, j = 16 * m + 8 * c + 2 * (lane & 3) + (e & 1),
                  late = Partners::later ? j : i, early = Partners::later ? i : j;
        float& score = s[2 * m + c].r[e];
        if (c != h && Partners::later == (c < h)) {
          score = 0.0f;
          continue;
        }
        if constexpr (has_decay<Gate>) {
          if (c != h)
            score = score * power_of_two(decays.up[3][late] + decays.after[3][early]);
          else
            score = score * (early <= late ? decays.weight(late, early) : 0.0f);
        }
        if (c == h) score = early <= late ? score : 0.0f;
      }
  }
};

// Scores for the products with them: as operands where those are smaller, else made anew each time.
template <class Operand, class Partners>
struct HeldScores {
  const ScoreRows<Operand, Partners>& scores;
  __device__ __forceinline__ Operand operator[](int m) const { return scores.operand(m); }
};
template <class Partners>
struct HeldScores<OperandBf16, Partners> {
  OperandBf16 operands[4];
  __device__ __forceinline__ HeldScores(const ScoreRows<OperandBf16, Partners>& scores) {
#pragma unroll
    for (int m = 0; m < 4; ++m) operands[m] = scores.operand(m);
  }
  __device__ __forceinline__ const OperandBf16& operator[](int m) const {
    return operands[m];
  }
};

// x[n]: a lane's pair of columns of block n of four, 8 columns each. The four lanes of a row exchange them:
// each gets all pairs of the block that has its number in the row.
__device__ __forceinline__ void spread_pairs(u32 (&x)[4], int lane) {
  // The upper lane of two gets both second words, the lower one both first.
  const auto exchange = [](u32& first, u32& second, bool upper, int mask) {
    const u32 got = __shfl_xor_sync(0xffffffffu, upper ? first : second, mask);
    first = upper ? got : first, second = upper ? second : got;
  };
  exchange(x[0], x[1], lane & 1, 1), exchange(x[2], x[3], lane & 1, 1);
  exchange(x[0], x[2], lane & 2, 2), exchange(x[1], x[3], lane & 2, 2);
}

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
          const Operand S = Operand::load_second(state + (i * 4 + group) * Operand::block_bytes, lane);
          multiply(out[i][0], q, S, 0);
          multiply(out[i][1], q, S, 1);
        }
    }
  }
  // Adds the rows' `groups` x 16 channels times a plain tile of the state whose rows are the outputs'
  // channels, or by_columns: its columns.
  template <class T, class StateTile, bool by_columns>
  __device__ __forceinline__ void add_product(const char* rows, const char* state, int terms, int live_groups,
                                              int warp, int lane) {
#pragma unroll 1
    for (int group = 0; group < terms; ++group) {
      Operand x;
      load_rows<T>(x, rows, 16 * warp, 16 * group, lane);
#pragma unroll
      for (int i = 0; i < groups; ++i)
        if (i < live_groups) {
          Operand S;
          if constexpr (by_columns)
            load_columns<StateTile>(S, state, 16 * i, NaturalTokens{16 * group}, lane);
          else
            load_rows<StateTile>(S, state, 16 * i, 16 * group, lane);
          multiply(out[i][0], x, S, 0);
          multiply(out[i][1], x, S, 1);
        }
    }
  }
  __device__ __forceinline__ void add(const OutputRows& other) {
#pragma unroll
    for (int i = 0; i < groups * 8; ++i) {
      float& x = out[i >> 3][(i >> 2) & 1].r[i & 3];
      x = x + other.out[i >> 3][(i >> 2) & 1].r[i & 3];
    }
  }
  // Each row times its token's factor.
  __device__ __forceinline__ void times(const float* factors, int warp, int lane) {
    const float w[2] = {factors[16 * warp + (lane >> 2)], factors[16 * warp + (lane >> 2) + 8]};
#pragma unroll
    for (int i = 0; i < groups * 8; ++i) {
      float& x = out[i >> 3][(i >> 2) & 1].r[i & 3];
      x = x * w[(i >> 1) & 1];
    }
  }
  __device__ __forceinline__ void times(float factor) {
#pragma unroll
    for (int i = 0; i < groups * 8; ++i) {
      float& x = out[i >> 3][(i >> 2) & 1].r[i & 3];
      x = x * factor;
    }
  }
  // Adds each row's product with the tile's to the lane's share of it: sum[h] of row lane/4 + 8 h.
  template <class T>
  __device__ __forceinline__ void dot(const char* tile, int warp, int lane, float (&sum)[2]) const {
#pragma unroll
    for (int i = 0; i < groups * 8; ++i) {
      const int half = (i >> 1) & 1, row = 16 * warp + (lane >> 2) + 8 * half,
                column = 16 * (i >> 3) + 8 * ((i >> 2) & 1) + 2 * (lane & 3) + (i & 1);
      const auto x = *reinterpret_cast<const typename T::Bits*>(tile + T::offset(row, column));
      sum[half] = fused(out[i >> 3][(i >> 2) & 1].r[i & 3], T::Element::decode(x), sum[half]);
    }
  }
  // scores[m]: the operand of those with tokens 16 m .. 16 m + 15.
  template <class T, class Partners = EarlierPartners, class Scores>
  __device__ __forceinline__ void add_scores(const Scores& scores, const char* values, int live_groups,
                                             int warp, int lane) {
#pragma unroll
    for (int i = 0; i < groups; ++i)
      if (i < live_groups)
#pragma unroll
        for (int m = 0; m < 4; ++m)
          if (Partners::hold(m, warp)) {
            Operand v;
            load_columns<T>(v, values, 16 * i, NaturalTokens{16 * m}, lane);
            multiply(out[i][0], scores[m], v, 0);
            multiply(out[i][1], scores[m], v, 1);
          }
  }
  // To a tensor [token, H, channels], from channel `begin` on; `to`: the warp's first token.
  template <class Format>
  __device__ __forceinline__ void store(typename Format::Bits* to, int begin, int channels, int live_rows,
                                        float scale, const Shape& shape, int lane) const {
    const i64 stride = i64(shape.heads) * channels;
    if constexpr (sizeof(typename Format::Bits) == 2)
      if (shape.vector) {
        store_wide<Format>(to, stride, begin, channels, live_rows, scale, lane);
        return;
      }
#pragma unroll
    for (int i = 0; i < groups * 4; ++i) {
      const int half = i & 1, row = (lane >> 2) + 8 * half,
                channel = begin + 16 * (i >> 2) + 8 * ((i >> 1) & 1) + 2 * (lane & 3);
      const Accumulator& x = out[i >> 2][(i >> 1) & 1];
      if (row < live_rows && channel < channels)
        store_pair<Format>(to + row * stride + channel, x.r[2 * half] * scale, x.r[2 * half + 1] * scale,
                           channels - channel, shape.vector);
    }
  }

 private:
  // 16 bytes per lane: the four lanes of a row exchange their pairs, so that each has all of 8 channels.
  template <class Format>
  __device__ __forceinline__ void store_wide(typename Format::Bits* to, i64 stride, int begin, int channels,
                                             int live_rows, float scale, int lane) const {
#pragma unroll
    for (int i = 0; i < groups; ++i) {  // 32 channels of one half of the rows
      const int half = i & 1, first = i >> 1, row = (lane >> 2) + 8 * half,
                channel = begin + 32 * first + 8 * (lane & 3);
      u32 x[4];
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const Accumulator& from = out[2 * first + (n >> 1)][n & 1];
        x[n] = encode_pair<Format>(from.r[2 * half] * scale, from.r[2 * half + 1] * scale);
      }
      spread_pairs(x, lane);
      if (row < live_rows && channel < channels)
        *reinterpret_cast<uint4*>(to + row * stride + channel) = make_uint4(x[0], x[1], x[2], x[3]);
    }
  }
};
