// For chunk_output.cuh the scores A_ij = sum_c q_ic k_jc e^{G_ic - G_jc} of a chunk, 16 tokens per warp.
// Exclusive readouts (rwkv6) see the state before their own token: G_{i-1} in place of G_i for j < i, and a
// bonus u in place of the weight 1 on the diagonal, A_ii = sum_c q_ic u_c k_ic.
//
// No decay is ever a difference. A pair (j, i) of one 16-row tile is split where the bits of j and i first
// differ: with s = 8, 4, 2, 1 that bit, j lies in the first and i in the second half of an aligned block of
// 2 s rows, and
//   e^{G_i - G_j} = e^{F_s[i]} e^{B_s[j]},  F_s[i] = sum of g over i's block of s rows up to i,
//                                           B_s[j] = over j's after j.
// Every row is on one side only at each s, so one exponential per element and s serves, and one set of
// registers is both operands of the product; what the product says of pairs of other s is dropped by
// selection. Backward (pass.cuh) F_s leaves i's own gate out and B_s takes j's own in. Pairs of different
// tiles meet at the tiles' edges: e^{F_16[i]} (product of e^{total} of the tiles between) e^{B_16[j]}.
#pragma once
#include "chunk_state.cuh"

// Sums over the rows of a tile for the lane's elements: rows row = lane/4 and row + 8, four neighbouring key
// channels.
template <class Pass>
struct RowSums {
  float up_to[2][4];  // F_s, with the row itself where targets decay
  float after[2][4];  // B_s, with the row itself where sources decay
  float total[2][4];  // over the row's block of s rows

  __device__ explicit RowSums(const float (&y)[2][4]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      total[i >> 2][i & 3] = y[i >> 2][i & 3];
      up_to[i >> 2][i & 3] = Pass::target_decays ? y[i >> 2][i & 3] : 0.0f;
      after[i >> 2][i & 3] = Pass::source_decays ? y[i >> 2][i & 3] : 0.0f;
    }
  }
  // From blocks of s = 1, 2, 4 rows to 2 s: the partner block is 4 s lanes away. One addition deeper.
  __device__ void double_block(int s, bool second) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float partner = __shfl_xor_sync(0xffffffffu, total[i >> 2][i & 3], 4 * s);
      if (second)
        up_to[i >> 2][i & 3] = up_to[i >> 2][i & 3] + partner;
      else
        after[i >> 2][i & 3] = after[i >> 2][i & 3] + partner;
      total[i >> 2][i & 3] = total[i >> 2][i & 3] + partner;
    }
  }
  // From 8 to 16 rows: both halves lie in the same lane.
  __device__ void join_halves() {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      up_to[1][c] = up_to[1][c] + total[0][c];
      after[0][c] = after[0][c] + total[1][c];
      total[0][c] = total[1][c] = total[0][c] + total[1][c];
    }
  }
};

// A chunk's inputs from one token on, key channel 0: q, k, g (or null) of the head, and its bonus u (or
// null).
template <class Format, class Gate, class Query = Format, class Key = Format>
struct ScoreInputs {
  const typename Query::Bits* q;
  const typename Key::Bits* k;
  const typename Gate::Bits* g;
  const typename Format::Bits* u;

  // From `rows` elements and `channels` on; the bonus has no rows.
  __device__ __forceinline__ void move(i64 rows, int channels) {
    q += rows + channels, k += rows + channels;
    if (g != nullptr) g += rows + channels;
    if (u != nullptr) u += channels;
  }
};

// The lane's elements of q, k and g for 16 key channels, as they lie in memory.
template <class Format, class Gate, class Query, class Key>
struct Rows {
  Quad<Query> q[2];
  Quad<Key> k[2];
  Quad<Format> bonus;
  Quad<Gate> g[2];

  // `from`: of the lane's first row and channel, which is `channel`; the second one is `second` elements
  // further. Rows and channels outside are zero.
  __device__ void load(const ScoreInputs<Format, Gate, Query, Key>& from, i64 second, int rows, int channel,
                       int lane, const Shape& shape) {
    if (shape.vector && rows >= 16 && from.g != nullptr && (channel | 15) < shape.key_channels)
      return load_all(from, second);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = (lane >> 2) + 8 * half;
      const int count = row < rows ? shape.key_channels - channel : 0;
      const i64 offset = half * second;
      q[half] = load_quad<Query>(from.q + offset, count, shape.vector);
      k[half] = load_quad<Key>(from.k + offset, count, shape.vector);
      g[half] = load_quad<Gate>(from.g + offset, from.g != nullptr ? count : 0, shape.vector);
    }
    bonus = load_quad<Format>(from.u, from.u != nullptr ? shape.key_channels - channel : 0, shape.vector);
  }

 private:
  // Nothing is outside.
  __device__ void load_all(const ScoreInputs<Format, Gate, Query, Key>& from, i64 second) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const i64 offset = half * second;
      q[half] = *reinterpret_cast<const Quad<Query>*>(from.q + offset);
      k[half] = *reinterpret_cast<const Quad<Key>*>(from.k + offset);
      g[half] = *reinterpret_cast<const Quad<Gate>*>(from.g + offset);
    }
    if (from.u != nullptr)
      bonus = *reinterpret_cast<const Quad<Format>*>(from.u);
    else
      bonus.clear();
  }
};

// Scores inside the warp's own tile, summed over the key channels.
struct DiagonalTile {
  Accumulator eight, pair[3][2];  // pair[l][half]: s = 1 << l
  float dot[2];                   // q_i . k_i of the lane's rows, its own channels only

  __device__ void clear() {
    eight.clear();
#pragma unroll
    for (int l = 0; l < 3; ++l) pair[l][0].clear(), pair[l][1].clear();
    dot[0] = dot[1] = 0.0f;
  }

  // The finished tile as x[row][place] of an operand whose places are its 16 tokens.
  __device__ void scores(float (&x)[2][4], int lane) const {
    const int i = lane >> 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float diagonal = dot[half];
      diagonal = diagonal + __shfl_xor_sync(0xffffffffu, diagonal, 1);
      diagonal = diagonal + __shfl_xor_sync(0xffffffffu, diagonal, 2);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int j = 2 * (lane & 3) + h, apart = i ^ j;
        float score = apart & 4 ? pair[2][half].r[2 * half + h]
                                : (apart & 2 ? pair[1][half].r[2 * half + h] : pair[0][half].r[2 * half + h]);
        score = apart == 0 ? diagonal : score;
        x[half][half + 2 * h] = j <= i ? score : 0.0f;  // tokens 0-7 at places 0, 2; 8-15 at places 1, 3
        x[half][(half ^ 1) + 2 * h] = half ? eight.r[2 + h] : 0.0f;
      }
    }
  }
};

// What the warps of a block hand to each other for 64 key channels, and each keeps for itself: k e^{B_16} of
// tiles 0 to 2 as operands, e^{total} of those tiles, and the warp's q e^{F_16} for all key channels.
template <class Operand>
struct Exchange {
  static constexpr int query_bytes = assay::channel::ExchangeLayout::query_bytes;
  char* keys;     // [tile][key group of 4]
  float* totals;  // [tile][64]
  char* queries;  // [key group], 1024 bytes each: first fp32 q e^{F_16}, in the end the operand q e^{G}

  __device__ Exchange(char* shared, const assay::channel::ExchangeLayout& layout, int warp)
      : keys(shared + layout.keys_offset),
        totals(reinterpret_cast<float*>(shared + layout.totals_offset)),
        queries(shared + warp * layout.warp_bytes) {}
  __device__ char* key_block(int tile, int group) const {
    return keys + (tile * 4 + group) * Operand::block_bytes;
  }
  __device__ float4* total_quad(int tile, int group, int quarter) const {
    return reinterpret_cast<float4*>(totals) + tile * 16 + group * 4 + quarter;
  }
};

// Both loops of a warp over 64 key channels: its own tile, then, behind a barrier, what it has with earlier
// tiles.
template <class Format, class Gate, class Pass, class Query = Format, class Key = Format>
struct Scores {
  using Operand = typename OperandOf<Format>::Type;
  DiagonalTile diagonal;
  Accumulator across[3][2];  // [d]: scores with the tile d + 1 before the warp's own

  __device__ void clear_across() {
#pragma unroll
    for (int d = 0; d < 3; ++d) across[d][0].clear(), across[d][1].clear();
  }

  // 16 key channels of the warp's tile: scores inside it, and its scaled keys, totals and queries for the
  // others. `load_next`: into `rows`, once they are decoded.
  template <class LoadNext>
  __device__ __forceinline__ void own_tile(const Rows<Format, Gate, Query, Key>& rows, LoadNext load_next,
                                           const Exchange<Operand>& exchange, int group, int key_group,
                                           int warp, int lane) {
    const int row = lane >> 2;
    float query[2][4], key[2][4], y[2][4], x[2][4], bonus[4];
    if constexpr (Pass::exclusive) rows.bonus.decode(bonus);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rows.q[half].decode(query[half]);
      rows.k[half].decode(key[half]);
      rows.g[half].decode(y[half]);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        y[half][c] = y[half][c] * log2_e;
        const float own = Pass::exclusive ? query[half][c] * bonus[c] : query[half][c];
        diagonal.dot[half] = fused(own, key[half][c], diagonal.dot[half]);
      }
    }
    load_next();
    RowSums<Pass> sums(y);
#pragma unroll
    for (int l = 0; l < 3; ++l) {
      const bool second = (row >> l) & 1;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int half = i >> 2, c = i & 3;
        const float exponent = second ? sums.up_to[half][c] : sums.after[half][c];
        x[half][c] = (second ? query[half][c] : key[half][c]) * power_of_two(exponent);
      }
      const Operand both = Operand::of(x);
      multiply(diagonal.pair[l][0], both, both, 0);
      multiply(diagonal.pair[l][1], both, both, 1);
      sums.double_block(1 << l, second);
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      x[0][c] = key[0][c] * power_of_two(sums.after[0][c]);
      x[1][c] = query[1][c] * power_of_two(sums.up_to[1][c]);
    }
    const Operand both = Operand::of(x);
    multiply(diagonal.eight, both, both, 0);
    sums.join_halves();

    if (warp < 3) {
#pragma unroll
      for (int i = 0; i < 8; ++i)
        x[i >> 2][i & 3] = key[i >> 2][i & 3] * power_of_two(sums.after[i >> 2][i & 3]);
      Operand::store_second_values(exchange.key_block(warp, group), lane, x);
      if (row == 0)
        *exchange.total_quad(warp, group, lane & 3) =
            make_float4(power_of_two(sums.total[0][0]), power_of_two(sums.total[0][1]),
                        power_of_two(sums.total[0][2]), power_of_two(sums.total[0][3]));
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
      x[i >> 2][i & 3] = query[i >> 2][i & 3] * power_of_two(sums.up_to[i >> 2][i & 3]);
    store_floats(exchange.queries + key_group * Exchange<Operand>::query_bytes, lane, x);
  }

  // The same channels against the tiles before, the nearest first; in the end q e^{G}, for the state, as an
  // operand.
  __device__ __forceinline__ void earlier_tiles(const Exchange<Operand>& exchange, int group, int key_group,
                                                int warp, int lane) {
    float x[2][4];
    char* query = exchange.queries + key_group * Exchange<Operand>::query_bytes;
    load_floats(query, lane, x);
#pragma unroll
    for (int d = 0; d < 3; ++d)
      if (d < warp) {
        const int tile = warp - 1 - d;
        const Operand a = Operand::of(x), b = Operand::load_second(exchange.key_block(tile, group), lane);
        multiply(across[d][0], a, b, 0);
        multiply(across[d][1], a, b, 1);
        const float4 total = *exchange.total_quad(tile, group, lane & 3);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          x[half][0] = x[half][0] * total.x, x[half][1] = x[half][1] * total.y;
          x[half][2] = x[half][2] * total.z, x[half][3] = x[half][3] * total.w;
        }
      }
    Operand::store_values(query, lane, x);
  }

  // Scores with the tile d before the warp's own (0: its own) as x[row][place], places being that tile's
  // tokens.
  __device__ void with_tile(int d, float (&x)[2][4], int lane) const {
    if (d == 0) return diagonal.scores(x, lane);
#pragma unroll
    for (int i = 0; i < 8; ++i) x[(i >> 1) & 1][(i >> 2) + 2 * (i & 1)] = across[d - 1][i >> 2].r[i & 3];
  }

  // All key channels of the warp's tile, whose rows start at `from`, `stride` apart. By all warps of a block
  // together. `meanwhile`: what is to be started once the first of them are on their way. `one_block`: there
  // are at most 64, so that scores with other tiles need no registers beside those inside the tile.
  template <bool one_block = false, class Meanwhile>
  __device__ __forceinline__ void run(ScoreInputs<Format, Gate, Query, Key> from, i64 stride, int live_rows,
                                      const Exchange<Operand>& exchange, const Shape& shape, int warp,
                                      int lane, Meanwhile meanwhile) {
    Rows<Format, Gate, Query, Key> next;
    from.move((lane >> 2) * stride, 4 * (lane & 3));
    if (live_rows > 0) next.load(from, 8 * stride, live_rows, 4 * (lane & 3), lane, shape);
    meanwhile();
    diagonal.clear();
    if (!one_block) clear_across();
    for (int begin = 0; begin < (one_block ? 1 : shape.key_groups()); begin += 4) {
      const int groups = min(4, shape.key_groups() - begin);
      if (begin > 0) __syncthreads();  // everyone is done with the last 64 key channels
      if (live_rows > 0)
#pragma unroll 1
        for (int group = 0; group < groups; ++group) {
          const int following = begin + group + 1;
          own_tile(
              next,
              [&] {
                from.move(0, 16);
                if (following < shape.key_groups())
                  next.load(from, 8 * stride, live_rows, 16 * following + 4 * (lane & 3), lane, shape);
              },
              exchange, group, begin + group, warp, lane);
        }
      __syncthreads();
      if (one_block) clear_across();
      if (live_rows > 0)
#pragma unroll 1
        for (int group = 0; group < groups; ++group)
          earlier_tiles(exchange, group, begin + group, warp, lane);
    }
  }

  // The finished scores as operands: a[d] those with the tile d before; backward times scale.
  __device__ __forceinline__ void operands(Operand (&a)[4], float scale, int warp, int lane) const {
#pragma unroll
    for (int d = 0; d < 4; ++d)
      if (d <= warp) {
        float x[2][4];
        with_tile(d, x, lane);
        if constexpr (Pass::backward)
#pragma unroll
          for (int i = 0; i < 8; ++i) x[i >> 2][i & 3] = x[i >> 2][i & 3] * scale;
        a[d] = Operand::of(x);
      }
  }
};
