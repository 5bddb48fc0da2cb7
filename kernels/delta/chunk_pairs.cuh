// Products of the tokens of a chunk with each other, 16 tokens per warp:
//   P_ij = sum_c k_ic k_jc e^{G_ic - G_jc}, j < i        A_ij = sum_c q_ic k_jc e^{G_ic - G_jc}, j <= i
// No decay is ever a difference. Of gates per key channel the pairs are split as in
// channel/chunk_scores.cuh, where the bits of i and j first differ, so that one set of registers is both
// operands; rows are a key or a query on the later side and a key on the earlier one. Of gates per token the
// products are weighed afterwards (scalar/token_decay.cuh).
#pragma once
#include "../channel/chunk_scores.cuh"
#include "../channel/fragment.cuh"
#include "../scalar/token_decay.cuh"

namespace rule {

// The format that gates per key channel lie in memory in.
template <class Gate>
struct GateFormat {
  using Type = Fp32;
};
template <class Format>
struct GateFormat<ChannelGate<Format>> {
  using Type = Format;
};

// What the warps of a block tell each other.
template <class Gate, class Operand>
struct PairShared {
  static constexpr bool by_channel = Gate::width == GateWidth::channel,
                        by_token = Gate::width == GateWidth::token;
  __align__(16) char keys[by_channel ? 2 : 1][by_channel ? 3 : 1][by_channel ? Operand::block_bytes : 16];
  float totals[by_channel ? 2 : 1][4][16];
  GradientDecays decays;  // of gates per token
  float squares[4][16][17];
  float betas[64];
};

// 16 key channels of a tile: the lane's rows lane/4 and lane/4 + 8, channels 4 (lane%4) + c; gates in log2
// units.
struct PairRows {
  float key[2][4], query[2][4], y[2][4];
};

// Where a chunk's rows of one head start: its first token, key channel 0.
template <class Format, class Gate>
struct PairInputs {
  using GateBits = Quad<typename GateFormat<Gate>::Type>;
  const typename Format::Bits *q, *k;
  const typename Gate::Bits* gates;
  i64 key_stride, gate_stride;  // from token to token
  int rows, K;
  bool vector;

  // Without gates of channels all warps read the keys: 64 channels at a time lie in shared memory.
  static constexpr bool staged = Gate::width != GateWidth::channel;
  using Staged = Tile<Format, 64>;
  char* tiles;  // of queries, then of keys

  // Starts copying 64 channels from `channel` on.
  __device__ __forceinline__ void stage(int channel) const {
    if constexpr (staged) {
      load_tile<Staged, 128>(tiles, q + channel, key_stride, rows, K - channel, vector);
      load_tile<Staged, 128>(tiles + Staged::bytes, k + channel, key_stride, rows, K - channel, vector);
      commit_copies();
    }
  }
  template <bool keys>
  __device__ __forceinline__ void load_rows(float (&x)[2][4], int tile, int channel, int lane) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = 16 * tile + (lane >> 2) + 8 * half;
      if constexpr (staged)
        reinterpret_cast<const Quad<Format>*>(tiles + (keys ? Staged::bytes : 0) +
                                              Staged::offset(row, channel & 63))
            ->decode(x[half]);
      else
        load_quad<Format>((keys ? k : q) + row * key_stride + channel, row < rows ? K - channel : 0, vector)
            .decode(x[half]);
    }
  }
  __device__ __forceinline__ PairRows load(int tile, int channel, int lane) const {
    PairRows x;
    load_rows<true>(x.key, tile, channel, lane), load_rows<false>(x.query, tile, channel, lane);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if constexpr (Gate::width != GateWidth::channel) continue;
      using Stored = typename GateFormat<Gate>::Type;
      const int row = 16 * tile + (lane >> 2) + 8 * half;
      load_quad<Stored>(reinterpret_cast<const typename Stored::Bits*>(gates) + row * gate_stride + channel,
                        gates != nullptr && row < rows ? K - channel : 0, vector)
          .decode(x.y[half]);
#pragma unroll
      for (int c = 0; c < 4; ++c) x.y[half][c] = x.y[half][c] * log2_e;
    }
    return x;
  }
};

// The weights e^{G_i} and e^{L - G_i} of a lane's rows and channels.
struct PairEnds {
  float start[2][4], end[2][4];

  // `rows`: over the warp's own tile; `before`: over all tiles before it; `totals`: of each tile.
  template <class Pass>
  __device__ __forceinline__ void set(const RowSums<Pass>& rows, const float (&before)[4],
                                      const float (&totals)[4][16], int warp, int lane) {
    float behind[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int d = 1; d < 4; ++d)
      if (warp + d < 4)
#pragma unroll
        for (int c = 0; c < 4; ++c) behind[c] = behind[c] + totals[warp + d][4 * (lane & 3) + c];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int half = i >> 2, c = i & 3;
      start[half][c] = power_of_two(rows.up_to[half][c] + before[c]);
      end[half][c] = power_of_two(rows.after[half][c] + behind[c]);
    }
  }
};

// One warp's sums over key channels: with its own tile and, [d], with the tile d + 1 before it.
template <class Operand, GateWidth width>
struct PairSums {
  Accumulator keys[2], queries[2];  // own tile
  Accumulator keys_across[3][2], queries_across[3][2];
  float dot[2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      keys[h].clear(), queries[h].clear(), dot[h] = 0.0f;
#pragma unroll
      for (int d = 0; d < 3; ++d) keys_across[d][h].clear(), queries_across[d][h].clear();
    }
  }
  __device__ __forceinline__ void own(const PairRows& x, const RowSums<Forward>*, int) {
    const Operand k = Operand::of(x.key), q = Operand::of(x.query);
#pragma unroll
    for (int h = 0; h < 2; ++h) multiply(keys[h], k, k, h), multiply(queries[h], q, k, h);
  }
  // Places of the operands are key channels; x[row][place] places are tokens of that tile (element_of).
  __device__ __forceinline__ void own_tile(float (&p)[2][4], float (&a)[2][4], int) const {
    spread(p, keys), spread(a, queries);
  }
  __device__ __forceinline__ void across(int d, float (&p)[2][4], float (&a)[2][4]) const {
    spread(p, keys_across[d]), spread(a, queries_across[d]);
  }
  static __device__ __forceinline__ void spread(float (&x)[2][4], const Accumulator (&c)[2]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) x[(i >> 1) & 1][(i >> 2) + 2 * (i & 1)] = c[i >> 2].r[i & 3];
  }
};

template <class Operand>
struct PairSums<Operand, GateWidth::channel> {
  DiagonalTile keys, queries;
  Accumulator keys_across[3][2], queries_across[3][2];

  __device__ __forceinline__ void clear() {
    keys.clear(), queries.clear();
#pragma unroll
    for (int d = 0; d < 3; ++d)
#pragma unroll
      for (int h = 0; h < 2; ++h) keys_across[d][h].clear(), queries_across[d][h].clear();
  }
  // Leaves the sums over the tile's 16 rows.
  __device__ __forceinline__ void own(const PairRows& x, RowSums<Forward>* sums, int lane) {
    const int row = lane >> 2;
    float k[2][4], q[2][4];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      queries.dot[i >> 2] = fused(x.query[i >> 2][i & 3], x.key[i >> 2][i & 3], queries.dot[i >> 2]);
#pragma unroll
    for (int l = 0; l < 3; ++l) {
      const bool second = (row >> l) & 1;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int half = i >> 2, c = i & 3;
        const float e = power_of_two(second ? sums->up_to[half][c] : sums->after[half][c]);
        k[half][c] = x.key[half][c] * e;
        q[half][c] = (second ? x.query[half][c] : x.key[half][c]) * e;
      }
      const Operand of_keys = Operand::of(k), of_queries = Operand::of(q);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        multiply(keys.pair[l][h], of_keys, of_keys, h);
        multiply(queries.pair[l][h], of_queries, of_queries, h);
      }
      sums->double_block(1 << l, second);
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float after = power_of_two(sums->after[0][c]), up_to = power_of_two(sums->up_to[1][c]);
      k[0][c] = q[0][c] = x.key[0][c] * after;
      k[1][c] = x.key[1][c] * up_to, q[1][c] = x.query[1][c] * up_to;
    }
    const Operand of_keys = Operand::of(k), of_queries = Operand::of(q);
    multiply(keys.eight, of_keys, of_keys, 0), multiply(queries.eight, of_queries, of_queries, 0);
    sums->join_halves();
  }
  __device__ __forceinline__ void own_tile(float (&p)[2][4], float (&a)[2][4], int lane) const {
    keys.scores(p, lane), queries.scores(a, lane);
  }
  __device__ __forceinline__ void across(int d, float (&p)[2][4], float (&a)[2][4]) const {
    using Plain = PairSums<Operand, GateWidth::none>;
    Plain::spread(p, keys_across[d]), Plain::spread(a, queries_across[d]);
  }
};

template <class Format, class Gate>
struct Pairs {
  using Operand = typename OperandOf<Format>::Type;
  using Shared = PairShared<Gate, Operand>;
  PairSums<Operand, Gate::width> sums;

  // 16 key channels; `buffer` alternates. By all warps of a block together.
  __device__ __forceinline__ void add(const PairInputs<Format, Gate>& in, PairRows& x, PairEnds& ends,
                                      Shared& shared, int group, int warp, int lane) {
    const int channel = 16 * group + 4 * (lane & 3);
    x = in.load(warp, channel, lane);
    if constexpr (Shared::by_channel) {
      RowSums<Forward> rows(x.y);
      sums.own(x, &rows, lane);
      add_across(x, rows, ends, shared, group & 1, warp, lane);
    } else {
      sums.own(x, nullptr, lane);
      const Operand k = Operand::of(x.key), q = Operand::of(x.query);
#pragma unroll
      for (int d = 0; d < 3; ++d)
        if (d < warp) {
          float earlier[2][4];
          in.template load_rows<true>(earlier, warp - 1 - d, channel, lane);
          const Operand b = Operand::of(earlier);
#pragma unroll
          for (int h = 0; h < 2; ++h)
            multiply(sums.keys_across[d][h], k, b, h), multiply(sums.queries_across[d][h], q, b, h);
        }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int row = 16 * warp + (lane >> 2) + 8 * (i >> 2);
        ends.start[i >> 2][i & 3] = Shared::by_token ? shared.decays.from_start[row] : 1.0f;
        ends.end[i >> 2][i & 3] = Shared::by_token ? shared.decays.to_end[row] : 1.0f;
      }
    }
  }
  // The products with the tile d before the warp's own (0: its own), as x[row][place], places tokens.
  __device__ __forceinline__ void with_tile(int d, float (&p)[2][4], float (&a)[2][4], const Shared& shared,
                                            int warp, int lane) const {
    if (d == 0)
      sums.own_tile(p, a, lane);
    else
      sums.across(d - 1, p, a);
    const int l = d > 0 ? PairDecays::level_of(2 * warp, 2 * (warp - d)) : 0;
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int place = 0; place < 4; ++place) {
        const int i = 16 * warp + (lane >> 2) + 8 * h, j = 16 * (warp - d) + element_of(place, lane);
        if constexpr (Shared::by_token) {
          const float weight = d > 0    ? power_of_two(shared.decays.up[l][i] + shared.decays.after[l][j])
                               : j <= i ? shared.decays.weight(i, j)
                                        : 0.0f;
          p[h][place] = p[h][place] * weight, a[h][place] = a[h][place] * weight;
        }
        p[h][place] = j < i ? p[h][place] : 0.0f;
        a[h][place] = j <= i ? a[h][place] : 0.0f;
      }
  }

 private:
  __device__ __forceinline__ void add_across(const PairRows& x, const RowSums<Forward>& rows, PairEnds& ends,
                                             Shared& shared, int buffer, int warp, int lane) {
    float k[2][4], q[2][4];
    if (warp < 3) {
#pragma unroll
      for (int i = 0; i < 8; ++i)
        k[i >> 2][i & 3] = x.key[i >> 2][i & 3] * power_of_two(rows.after[i >> 2][i & 3]);
      Operand::store_values(shared.keys[buffer][warp], lane, k);
    }
    if (lane < 4)
#pragma unroll
      for (int c = 0; c < 4; ++c) shared.totals[buffer][warp][4 * lane + c] = rows.total[0][c];
    __syncthreads();
    float before[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float e = power_of_two(rows.up_to[i >> 2][i & 3]);
      k[i >> 2][i & 3] = x.key[i >> 2][i & 3] * e, q[i >> 2][i & 3] = x.query[i >> 2][i & 3] * e;
    }
#pragma unroll
    for (int d = 0; d < 3; ++d)
      if (d < warp) {
        const int tile = warp - 1 - d;
        const Operand b = Operand::load(shared.keys[buffer][tile], lane), of_keys = Operand::of(k),
                      of_queries = Operand::of(q);
#pragma unroll
        for (int h = 0; h < 2; ++h)
          multiply(sums.keys_across[d][h], of_keys, b, h),
              multiply(sums.queries_across[d][h], of_queries, b, h);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const float total = shared.totals[buffer][tile][4 * (lane & 3) + c], e = power_of_two(total);
          before[c] = before[c] + total;
#pragma unroll
          for (int half = 0; half < 2; ++half) k[half][c] = k[half][c] * e, q[half][c] = q[half][c] * e;
        }
      }
    ends.set(rows, before, shared.totals[buffer], warp, lane);
  }
};

}  // namespace rule
