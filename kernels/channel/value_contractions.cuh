// What the gradients of keys take from the value channels (chunk_keys.cuh): M, S do and D v of a chunk, and
// rowsum(S (.) D).
#pragma once
#include "keys_memory.cuh"

// Adds S (.) D of 16 channels of each to the sums of the lane's two key channels.
__device__ __forceinline__ void add_products(float (&sums)[2], const Share& s, const Share& d) {
#pragma unroll
  for (int i = 0; i < 8; ++i) sums[i >> 2] = fused(s[i >> 2][i & 3], d[i >> 2][i & 3], sums[i >> 2]);
}

// A warp's 16 rows of a matrix of pairs of tokens, times `scale`, to a tile in shared memory, tile (i, j) for
// i >= j; tiles on the diagonal as symmetric matrices, whose diagonal stands apart in fp32 (or nowhere) and
// is not taken from there.
template <class T>
__device__ __forceinline__ void store_pairs(char* to, float* diagonal, const Accumulator (&x)[4][2],
                                            float scale, int warp, int lane) {
  const auto place = [&](int row, int column) {
    return reinterpret_cast<typename T::Bits*>(to + T::offset(row, column));
  };
#pragma unroll
  for (int tile = 0; tile < 4; ++tile) {
    if (tile > warp) continue;
    if (sizeof(typename T::Bits) == 2 && tile < warp) {  // neighbours at once
#pragma unroll
      for (int r = 0; r < 8; r += 2)
        store_pair<typename T::Element>(
            place(16 * warp + (lane >> 2) + 4 * (r & 2), 16 * tile + 2 * (lane & 3) + 2 * (r & 4)),
            x[tile][r >> 2].r[r & 3] * scale, x[tile][r >> 2].r[(r & 3) + 1] * scale, 2, true);
      continue;
    }
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      const int row = 16 * warp + (lane >> 2) + 8 * ((r >> 1) & 1),
                column = 16 * tile + 2 * (lane & 3) + (r & 1) + 8 * (r >> 2);
      const float product = x[tile][r >> 2].r[r & 3] * scale;
      if (diagonal != nullptr && row == column) diagonal[row] = product;
      if (column > row) continue;
      *place(row, column) = T::Element::encode(product);
      if (tile == warp && column < row) *place(column, row) = T::Element::encode(product);
    }
  }
}

// One warp's share of the contractions over the value channels; without `of_keys` only what dq takes.
template <class Format, class Gate, class Query, bool of_keys>
struct ValueContractions {
  using Shared = KeyShared<Format, Gate, Query>;
  using Operand = typename OperandOf<Format>::Type;
  using Plain = typename Shared::Plain;
  using Values = Fragment<typename Shared::ValueTile, Format>;
  using States = Fragment<typename Shared::StateTile, Plain>;
  // Pairs of later tiles too, which nobody reads: a product is cheaper than a branch around it.
  static constexpr bool all_pairs = sizeof(Operand) == sizeof(OperandBf16);
  Accumulator products[4][2];             // do_i . v_j: rows i of the warp's 16 tokens, tile of j
  Accumulator queries[4][2], keys[4][2];  // S do and D v: 16 key channels x tokens, tile by tile
  float carried[2];                       // rowsum(S (.) D) over the lane's value channels

  __device__ void clear() {
#pragma unroll
    for (int tile = 0; tile < 4; ++tile)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        products[tile][half].clear(), queries[tile][half].clear(), keys[tile][half].clear();
    carried[0] = carried[1] = 0.0f;
  }
  // Adds 16 value channels.
  __device__ __forceinline__ void add(const Shared& shared, int value, int warp, int lane) {
    const Operand own = Values::template row_operand<Operand>(shared.cotangents(), 16 * warp, value, lane);
    const Operand state = States::template column_operand<Operand>(shared.states(), value, 16 * warp, lane);
    Operand adjoint;
    if constexpr (of_keys) {
      adjoint = States::template column_operand<Operand>(shared.adjoints(), value, 16 * warp, lane);
      Share s, d;
      States::columns(s, shared.states(), value, 16 * warp, lane);
      States::columns(d, shared.adjoints(), value, 16 * warp, lane);
      add_products(carried, s, d);
    }
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
      const Operand v = Values::template second_row_operand<Operand>(shared.values(), 16 * tile, value, lane);
      const Operand d_o =
          Values::template second_row_operand<Operand>(shared.cotangents(), 16 * tile, value, lane);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (all_pairs || tile <= warp) multiply(products[tile][half], own, v, half);
        multiply(queries[tile][half], state, d_o, half);
        if constexpr (of_keys) multiply(keys[tile][half], adjoint, v, half);
      }
    }
  }
  __device__ __forceinline__ void store_products(const Shared& shared, float scale, int warp, int lane) {
    store_pairs<typename Shared::StateTile>(shared.products(), shared.diagonal(), products, scale, warp,
                                            lane);
  }
};
