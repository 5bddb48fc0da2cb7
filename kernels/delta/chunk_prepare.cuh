// First kernel of the chunked delta rules: of each chunk of 64 tokens and head, all that does not depend on
// values or states (chunk_layout.h), as operands for the scan, or for both scans of gradients. A block owns
// one chunk and head, a warp 16 tokens.
#pragma once
#include "chunk_pairs.cuh"
#include "solve_operand.cuh"
#include "transpose.cuh"

namespace rule {

// X = (1 + diag(beta) P)^-1 diag(beta) of one tile, P below the diagonal of `square`: forward substitution, a
// column per lane; X replaces P. By one warp.
__device__ __forceinline__ void solve_tile(float (&square)[16][17], const float* betas, int lane) {
  float x[16];
  const int column = lane & 15;
#pragma unroll
  for (int row = 0; row < 16; ++row) {
    float sum = row == column ? 1.0f : 0.0f;
#pragma unroll
    for (int j = 0; j < row; ++j) sum = fused(-square[row][j], x[j], sum);
    x[row] = betas[row] * sum;
  }
  __syncwarp();
  if (lane < 16)
#pragma unroll
    for (int row = 0; row < 16; ++row) square[row][column] = x[row];
  __syncwarp();
}

// Lane's share of a 16 x 16 square as x[row][place]; its transpose where `transposed`.
__device__ __forceinline__ void store_square(float (&square)[16][17], const float (&x)[2][4], int lane) {
#pragma unroll
  for (int i = 0; i < 8; ++i) square[(lane >> 2) + 8 * (i >> 2)][element_of(i & 3, lane)] = x[i >> 2][i & 3];
}
template <bool transposed>
__device__ __forceinline__ void load_square(float (&x)[2][4], const float (&square)[16][17], int lane) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int row = (lane >> 2) + 8 * (i >> 2), place = element_of(i & 3, lane);
    x[i >> 2][i & 3] = transposed ? square[place][row] : square[row][place];
  }
}

// Where a chunk's operands go: of the scan forward, and of the one backward.
struct Prepared {
  assay::delta::PreparedLayout layout;
  char *to, *back;
};

// 16 tokens and key channels: k and q with their decays, as rows of tokens and as rows of key channels.
// `back`: for both scans of gradients, of which the one forward makes no outputs.
template <class Operand, bool back>
__device__ __forceinline__ void store_rows(const PairRows& x, const PairEnds& ends, float (&square)[16][17],
                                           const Prepared& prepared, int group, float scale, int warp,
                                           int lane) {
  float from_start[2][4], to_end[2][4], queries[2][4];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int half = i >> 2, c = i & 3;
    from_start[half][c] = -x.key[half][c] * ends.start[half][c];
    to_end[half][c] = x.key[half][c] * ends.end[half][c];
    queries[half][c] = (back ? x.query[half][c] * scale : x.query[half][c]) * ends.start[half][c];
  }
  const assay::delta::PreparedLayout& layout = prepared.layout;
  Operand::store_values(prepared.to + layout.reads(warp, group), lane, from_start);
  store_transposed<Operand, true>(prepared.to + layout.writes(group, warp), to_end, square, lane);
  if constexpr (back) {
    Operand::store_values(prepared.back + layout.reads(warp, group), lane, to_end);
    store_transposed<Operand, true>(prepared.back + layout.value_writes(group, warp), queries, square, lane);
    store_transposed<Operand, true>(prepared.back + layout.writes(group, warp), from_start, square, lane);
  } else {
    Operand::store_values(prepared.to + layout.queries(warp, group), lane, queries);
  }
}

// The products of two tiles' tokens.
template <class Operand, bool back>
__device__ __forceinline__ void store_pairs(float (&p)[2][4], float (&a)[2][4], float (&square)[16][17],
                                            const Prepared& prepared, float scale, int tile, int earlier,
                                            int lane) {
  const int removal = prepared.layout.removal(tile, earlier), weight = prepared.layout.weight(tile, earlier);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    p[i >> 2][i & 3] = -p[i >> 2][i & 3];
    if constexpr (back) a[i >> 2][i & 3] = a[i >> 2][i & 3] * scale;
  }
  Operand::store_values(prepared.to + removal, lane, p);
  if constexpr (back)
    store_transposed<Operand, false>(prepared.back + removal, p, square, lane),
        store_transposed<Operand, false>(prepared.back + weight, a, square, lane);
  else
    Operand::store_values(prepared.to + weight, lane, a);
}

//   q, k [token, key heads, K]; beta [token, heads] or null: 1; gates as Gate says; prepared, prepared_back
//   (null unless `back`): [chunk][heads]
template <class Format, class Gate, bool back>
__device__ __forceinline__ void prepare(const typename Format::Bits* q, const typename Format::Bits* k,
                                        const typename Format::Bits* beta, const typename Gate::Bits* gates,
                                        char* prepared, char* prepared_back, const i64* chunks, float scale,
                                        int key_heads, int heads, int K, bool vector) {
  using Operand = typename OperandOf<Format>::Type;
  using Shared = PairShared<Gate, Operand>;
  __shared__ Shared shared;
  const int lane = int(threadIdx.x) & 31, warp = int(threadIdx.x) >> 5;
  const int head = int(blockIdx.x) % heads, chunk = int(blockIdx.x) / heads;
  const i64 first = chunks[2 * i64(chunk)];
  const int rows = int(chunks[2 * i64(chunk) + 1]), key_groups = (K + 15) / 16;
  const i64 key_element = (first * key_heads + head / (heads / key_heads)) * K;
  const assay::delta::PreparedLayout layout(Operand::block_bytes, key_groups);
  const i64 at = i64(blockIdx.x) * layout.bytes();
  const Prepared to{layout, prepared + at, back ? prepared_back + at : nullptr};

  using Inputs = PairInputs<Format, Gate>;
  __shared__ __align__(16) char tiles[Inputs::staged ? 2 * Inputs::Staged::bytes : 16];
  Inputs in{
      q + key_element, k + key_element, nullptr, i64(key_heads) * K, i64(heads) * K, rows, K, vector, tiles};
  if constexpr (Shared::by_channel)
    if (gates != nullptr) in.gates = gates + (first * heads + head) * K;
  in.stage(0);
  if (int(threadIdx.x) < 64) {
    const int row = int(threadIdx.x);
    float rate = row < rows ? 1.0f : 0.0f;
    if (row < rows && beta != nullptr) rate = Format::decode(beta[(first + row) * heads + head]);
    shared.betas[row] = rate;
  }
  if constexpr (Shared::by_token)
    if (warp == 0) {
      float y[2];
      load_gates<Gate>(y, gates, first, rows, head, heads, lane);
      shared.decays.fill(y, lane);
    }
  __syncthreads();
  Pairs<Format, Gate> pairs;
  pairs.sums.clear();
#pragma unroll 1
  for (int group = 0; group < key_groups; ++group) {
    if (Inputs::staged && group % 4 == 0) {
      if (group > 0) {
        __syncthreads();  // everyone is done with the 64 channels before
        in.stage(16 * group);
      }
      wait_copies<0>();
      __syncthreads();
    }
    PairRows x;
    PairEnds ends;
    pairs.add(in, x, ends, shared, group, warp, lane);
    store_rows<Operand, back>(x, ends, shared.squares[warp], to, group, scale, warp, lane);
    if (int(threadIdx.x) < 16) {
      float whole = 1.0f;
      if constexpr (Shared::by_channel) {
        const auto& totals = shared.totals[group & 1];
        whole = decay_factor((totals[0][threadIdx.x] + totals[1][threadIdx.x]) +
                             (totals[2][threadIdx.x] + totals[3][threadIdx.x]));
      }
      if constexpr (Shared::by_token) whole = decay_factor(shared.decays.up[5][31] + shared.decays.up[5][63]);
      const int decay = layout.decays() + 4 * (16 * group + int(threadIdx.x));
      *reinterpret_cast<float*>(to.to + decay) = whole;
      if constexpr (back) *reinterpret_cast<float*>(to.back + decay) = whole;
    }
  }
#pragma unroll
  for (int d = 0; d < 4; ++d)
    if (d <= warp) {
      float p[2][4], a[2][4];
      pairs.with_tile(d, p, a, shared, warp, lane);
      store_pairs<Operand, back>(p, a, shared.squares[warp], to, scale, warp, warp - d, lane);
    }
  // The pairs of the tile's own tokens, which come first, once more: their places are taken.
  float p[2][4], a[2][4], x[2][4];
  pairs.with_tile(0, p, a, shared, warp, lane);
  __syncwarp();
  store_square(shared.squares[warp], p, lane);
  __syncwarp();
  solve_tile(shared.squares[warp], shared.betas + 16 * warp, lane);
  load_square<false>(x, shared.squares[warp], lane);
  SolveOperand<Format>::store_values(to.to + layout.solve(warp), lane, x);
  if constexpr (back) {
    load_square<true>(x, shared.squares[warp], lane);
    SolveOperand<Format>::store_values(to.back + layout.solve(warp), lane, x);
  }
}

}  // namespace rule
