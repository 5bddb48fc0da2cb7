// First kernels of rwkv7 in chunks: of each chunk of 64 tokens and head, all that does not depend on values
// or states (chunk_layout.h), as operands for the scan, or for both scans of gradients. One launch has what
// is read by a on the later side of its pairs, the other by r; on the earlier side both have b and k. A block
// owns one chunk and head, a warp 16 tokens. No decay is ever a difference: pairs are split as in
// channel/chunk_scores.cuh.
#pragma once
#include "../delta/chunk_prepare.cuh"
#include "chunk_layout.h"

namespace general {

using assay::rwkv7::PreparedLayout;

// What is on the later side of a launch's pairs.
struct Readers {
  using Pass = ExclusiveForward;  // they see the state before their own token's decay
};
struct Queries {
  using Pass = Forward;
};

// What the warps of a block tell each other.
template <class Operand>
struct Shared {
  __align__(16) char sources[2][2][3][Operand::block_bytes];  // [buffer][writers, keys][tile]
  float totals[2][4][16];
  float squares[4][16][17];
  float ones[16];
};

// 16 key channels of a tile: the lane's rows lane/4 and lane/4 + 8, channels 4 (lane%4) + c; gates in log2
// units.
struct Rows {
  float later[2][4], source[2][2][4], y[2][4];  // source: writers, keys
};

// Where a chunk's rows of one head start: its first token, key channel 0.
template <class Format, class Gate>
struct Inputs {
  const typename Format::Bits *later, *writers, *keys;
  const typename Gate::Bits* gates;
  i64 stride;  // from token to token
  int rows, K;
  bool vector;

  __device__ __forceinline__ Rows load(int tile, int channel, int lane) const {
    Rows x;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = 16 * tile + (lane >> 2) + 8 * half, count = row < rows ? K - channel : 0;
      const i64 at = row * stride + channel;
      load_quad<Format>(later + at, count, vector).decode(x.later[half]);
      load_quad<Format>(writers + at, count, vector).decode(x.source[0][half]);
      load_quad<Format>(keys + at, count, vector).decode(x.source[1][half]);
      load_quad<Gate>(gates + at, count, vector).decode(x.y[half]);
#pragma unroll
      for (int c = 0; c < 4; ++c) x.y[half][c] = x.y[half][c] * log2_e;
    }
    return x;
  }
};

// One warp's sums over key channels: with its own tile and, [d], with the tile d + 1 before it; of writers
// and of keys.
template <class Operand, class Side>
struct Pairs {
  using Sums = RowSums<typename Side::Pass>;
  DiagonalTile own[2];
  Accumulator across[2][3][2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int of = 0; of < 2; ++of) {
      own[of].clear();
#pragma unroll
      for (int d = 0; d < 3; ++d) across[of][d][0].clear(), across[of][d][1].clear();
    }
  }

  // 16 key channels; `buffer` alternates. By all warps of a block together.
  __device__ __forceinline__ void add(const Rows& x, rule::PairEnds& ends, Shared<Operand>& shared,
                                      int buffer, int warp, int lane) {
    Sums sums(x.y);
    add_own(x, sums, lane);
    if (warp < 3)
#pragma unroll
      for (int of = 0; of < 2; ++of) {
        float source[2][4];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          source[i >> 2][i & 3] = x.source[of][i >> 2][i & 3] * power_of_two(sums.after[i >> 2][i & 3]);
        Operand::store_values(shared.sources[buffer][of][warp], lane, source);
      }
    if (lane < 4)
#pragma unroll
      for (int c = 0; c < 4; ++c) shared.totals[buffer][warp][4 * lane + c] = sums.total[0][c];
    __syncthreads();
    add_across(x, sums, ends, shared, buffer, warp, lane);
  }

  // The products with the tile d before the warp's own (0: its own), as x[row][place], places tokens.
  __device__ __forceinline__ void with_tile(int of, int d, float (&x)[2][4], int lane) const {
    if (d > 0) return rule::PairSums<Operand, GateWidth::none>::spread(x, across[of][d - 1]);
    own[of].scores(x, lane);
    if constexpr (Side::Pass::exclusive)
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (element_of(i & 3, lane) >= (lane >> 2) + 8 * (i >> 2)) x[i >> 2][i & 3] = 0.0f;
  }

 private:
  // Leaves the sums over the tile's 16 rows.
  __device__ __forceinline__ void add_own(const Rows& x, Sums& sums, int lane) {
    const int row = lane >> 2;
#pragma unroll
    for (int of = 0; of < 2; ++of)
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if constexpr (!Side::Pass::exclusive)
          own[of].dot[i >> 2] =
              fused(x.later[i >> 2][i & 3], x.source[of][i >> 2][i & 3], own[of].dot[i >> 2]);
#pragma unroll
    for (int l = 0; l < 3; ++l) {
      const bool second = (row >> l) & 1;
      float both[2][2][4];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int half = i >> 2, c = i & 3;
        const float e = power_of_two(second ? sums.up_to[half][c] : sums.after[half][c]);
#pragma unroll
        for (int of = 0; of < 2; ++of)
          both[of][half][c] = (second ? x.later[half][c] : x.source[of][half][c]) * e;
      }
#pragma unroll
      for (int of = 0; of < 2; ++of) {
        const Operand operand = Operand::of(both[of]);
        multiply(own[of].pair[l][0], operand, operand, 0), multiply(own[of].pair[l][1], operand, operand, 1);
      }
      sums.double_block(1 << l, second);
    }
    float both[2][2][4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float after = power_of_two(sums.after[0][c]), up_to = power_of_two(sums.up_to[1][c]);
#pragma unroll
      for (int of = 0; of < 2; ++of)
        both[of][0][c] = x.source[of][0][c] * after, both[of][1][c] = x.later[1][c] * up_to;
    }
#pragma unroll
    for (int of = 0; of < 2; ++of) {
      const Operand operand = Operand::of(both[of]);
      multiply(own[of].eight, operand, operand, 0);
    }
    sums.join_halves();
  }

  __device__ __forceinline__ void add_across(const Rows& x, const Sums& sums, rule::PairEnds& ends,
                                             const Shared<Operand>& shared, int buffer, int warp, int lane) {
    float later[2][4];
    float before[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < 8; ++i)
      later[i >> 2][i & 3] = x.later[i >> 2][i & 3] * power_of_two(sums.up_to[i >> 2][i & 3]);
#pragma unroll
    for (int d = 0; d < 3; ++d)
      if (d < warp) {
        const int tile = warp - 1 - d;
        const Operand operand = Operand::of(later);
#pragma unroll
        for (int of = 0; of < 2; ++of) {
          const Operand source = Operand::load(shared.sources[buffer][of][tile], lane);
          multiply(across[of][d][0], operand, source, 0), multiply(across[of][d][1], operand, source, 1);
        }
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const float total = shared.totals[buffer][tile][4 * (lane & 3) + c], e = power_of_two(total);
          before[c] = before[c] + total;
#pragma unroll
          for (int half = 0; half < 2; ++half) later[half][c] = later[half][c] * e;
        }
      }
    ends.set(sums, before, shared.totals[buffer], warp, lane);
  }
};

// Where a chunk's operands go: of the scan forward, and of the one backward.
struct Prepared {
  PreparedLayout layout;
  char *to, *back;
};

// 16 tokens and key channels of one side of what is read and one of what is written, with their decays: rows
// of tokens, and rows of key channels. `back`: for both scans of gradients, of which the one forward makes no
// outputs.
template <class Operand, bool readers, bool back>
__device__ __forceinline__ void store_rows(const float (&later)[2][4], const float (&source)[2][4],
                                           const rule::PairEnds& ends, float (&square)[16][17],
                                           const Prepared& prepared, int group, float scale, int warp,
                                           int lane) {
  const PreparedLayout& layout = prepared.layout;
  const int reads = readers ? layout.reads(warp, group) : layout.queries(warp, group),
            writes = readers ? layout.writes(group, warp) : layout.value_writes(group, warp);
  float from_start[2][4], to_end[2][4];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int half = i >> 2, c = i & 3;
    from_start[half][c] = later[half][c] * scale * ends.start[half][c];
    to_end[half][c] = source[half][c] * ends.end[half][c];
  }
  if constexpr (readers || !back) Operand::store_values(prepared.to + reads, lane, from_start);
  rule::store_transposed<Operand, true>(prepared.to + writes, to_end, square, lane);
  if constexpr (back) {
    Operand::store_values(prepared.back + reads, lane, to_end);
    rule::store_transposed<Operand, true>(prepared.back + writes, from_start, square, lane);
  }
}

// The products of two tiles' tokens: of a and b (`of` 0) or k, r and b or k. Backward they are transposed,
// those of a and k and of r and b in each other's place.
template <class Operand, bool readers, bool back>
__device__ __forceinline__ void store_pairs(const float (&x)[2][4], float (&square)[16][17],
                                            const Prepared& prepared, int of, int tile, int earlier,
                                            int lane) {
  const PreparedLayout& layout = prepared.layout;
  const int own = readers ? layout.removal(tile, earlier) : layout.direct(tile, earlier),
            feed = layout.feed(tile, earlier), weight = layout.weight(tile, earlier);
  if constexpr (readers || !back)
    Operand::store_values(prepared.to + (of == (readers ? 0 : 1) ? own : readers ? feed : weight), lane, x);
  if constexpr (back)
    rule::store_transposed<Operand, false>(prepared.back + (of == (readers ? 0 : 1) ? own
                                                            : readers               ? weight
                                                                                    : feed),
                                           x, square, lane);
}

// The inverse of a tile's own pairs of a and b.
template <class Format, bool back>
__device__ __forceinline__ void store_solve(float (&x)[2][4], const float* ones, float (&square)[16][17],
                                            const Prepared& prepared, int tile, int lane) {
  const int place = prepared.layout.solve(tile);
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i >> 2][i & 3] = -x[i >> 2][i & 3];
  __syncwarp();
  rule::store_square(square, x, lane);
  __syncwarp();
  rule::solve_tile(square, ones, lane);
  rule::load_square<false>(x, square, lane);
  rule::SolveOperand<Format>::store_values(prepared.to + place, lane, x);
  if constexpr (back) {
    rule::load_square<true>(x, square, lane);
    rule::SolveOperand<Format>::store_values(prepared.back + place, lane, x);
  }
}

//   later (a or r), b, k [token, heads, K]; gates likewise, log decays <= 0; prepared, prepared_back (null
//   unless `back`): [chunk][heads]; chunks [chunk][2]: first token, tokens
template <class Format, class Gate, class Side, bool back>
__device__ __forceinline__ void prepare(const typename Format::Bits* later, const typename Format::Bits* b,
                                        const typename Format::Bits* k, const typename Gate::Bits* gates,
                                        char* prepared, char* prepared_back, const i64* chunks, float scale,
                                        int heads, int K, bool vector) {
  using Operand = typename OperandOf<Format>::Type;
  constexpr bool readers = Side::Pass::exclusive;
  __shared__ Shared<Operand> shared;
  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
  const int head = int(blockIdx.x) % heads, chunk = int(blockIdx.x) / heads;
  const i64 first = chunks[2 * i64(chunk)], at = (first * heads + head) * K;
  const int rows = int(chunks[2 * i64(chunk) + 1]), key_groups = (K + 15) / 16;
  const PreparedLayout layout(Operand::block_bytes, key_groups);
  const i64 place = i64(blockIdx.x) * layout.bytes();
  const Prepared to{layout, prepared + place, back ? prepared_back + place : nullptr};
  float(&square)[16][17] = shared.squares[warp];
  const float weight = back && !readers ? scale : 1.0f;

  if (int(threadIdx.x) < 16) shared.ones[threadIdx.x] = 1.0f;
  const Inputs<Format, Gate> in{later + at, b + at, k + at, gates + at, i64(heads) * K, rows, K, vector};
  Pairs<Operand, Side> pairs;
  pairs.clear();
#pragma unroll 1
  for (int group = 0; group < key_groups; ++group) {
    const Rows x = in.load(warp, 16 * group + 4 * (lane & 3), lane);
    rule::PairEnds ends;
    pairs.add(x, ends, shared, group & 1, warp, lane);
    store_rows<Operand, readers, back>(x.later, x.source[readers ? 0 : 1], ends, square, to, group, weight,
                                       warp, lane);
    if (readers && int(threadIdx.x) < 16) {
      const auto& totals = shared.totals[group & 1];
      const float whole = decay_factor((totals[0][threadIdx.x] + totals[1][threadIdx.x]) +
                                       (totals[2][threadIdx.x] + totals[3][threadIdx.x]));
      const int decay = layout.decays() + 4 * (16 * group + int(threadIdx.x));
      *reinterpret_cast<float*>(to.to + decay) = whole;
      if constexpr (back) *reinterpret_cast<float*>(to.back + decay) = whole;
    }
  }
#pragma unroll
  for (int of = 0; of < 2; ++of)
#pragma unroll
    for (int d = 0; d < 4; ++d)
      if (d <= warp) {
        float x[2][4];
        pairs.with_tile(of, d, x, lane);
#pragma unroll
        for (int i = 0; i < 8; ++i) x[i >> 2][i & 3] = x[i >> 2][i & 3] * weight;
        store_pairs<Operand, readers, back>(x, square, to, of, warp, warp - d, lane);
      }
  if constexpr (readers) {
    float x[2][4];
    pairs.with_tile(0, 0, x, lane);
    store_solve<Format, back>(x, shared.ones, square, to, warp, lane);
  }
}

}  // namespace general
