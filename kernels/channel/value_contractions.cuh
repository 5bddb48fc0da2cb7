// What the gradients of keys take from the value channels (chunk_keys.cuh): M, S do and D v of a chunk, and
// rowsum(S (.) D).
#pragma once
#include "keys_memory.cuh"

// Adds S (.) D of 16 channels of each to the sums of the lane's two key channels.
__device__ __forceinline__ void add_products(float (&sums)[2], const Share& s, const Share& d) {
#pragma unroll
  for (int i = 0; i < 8; ++i) sums[i >> 2] = fused(s[i >> 2][i & 3], d[i >> 2][i & 3], sums[i >> 2]);
}

// A tile of 16 rows and columns of a matrix of pairs of tokens, times `scale`, to a tile in shared memory; on
// the diagonal as a symmetric matrix, whose own diagonal stands apart in fp32 (or nowhere) and is not taken
// from there.
template <class T>
__device__ __forceinline__ void store_tile_of_pairs(char* to, float* diagonal, const Accumulator (&x)[2],
                                                    float scale, int rows, int columns, int lane) {
  const auto place = [&](int row, int column) {
    return reinterpret_cast<typename T::Bits*>(to + T::offset(row, column));
  };
  if (sizeof(typename T::Bits) == 2 && columns < rows) {  // neighbours at once
#pragma unroll
    for (int r = 0; r < 8; r += 2)
      store_pair<typename T::Element>(
          place(16 * rows + (lane >> 2) + 4 * (r & 2), 16 * columns + 2 * (lane & 3) + 2 * (r & 4)),
          x[r >> 2].r[r & 3] * scale, x[r >> 2].r[(r & 3) + 1] * scale, 2, true);
    return;
  }
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    const int row = (lane >> 2) + 8 * ((r >> 1) & 1), column = 2 * (lane & 3) + (r & 1) + 8 * (r >> 2);
    const float product = x[r >> 2].r[r & 3] * scale;
    const auto bits = T::Element::encode(product);
    typename T::Bits *const own = place(16 * rows, 16 * columns) + T::offset(row, column) / int(sizeof(bits)),
                            *const mirrored =
                                place(16 * rows, 16 * columns) + T::offset(column, row) / int(sizeof(bits));
    if (columns < rows || column <= row) *own = bits;
    if (columns == rows && column < row) *mirrored = bits;
    if (columns == rows && column == row && diagonal != nullptr) diagonal[16 * rows + row] = product;
  }
}

// A warp's 16 rows of such a matrix.
template <class T>
__device__ __forceinline__ void store_pairs(char* to, float* diagonal, const Accumulator (&x)[4][2],
                                            float scale, int warp, int lane) {
#pragma unroll
  for (int tile = 0; tile < 4; ++tile)
    if (tile <= warp) store_tile_of_pairs<T>(to, diagonal, x[tile], scale, warp, tile, lane);
}

// One warp's share of the contractions over the value channels: of 16 key channels and `tiles` tiles of
// tokens; without `of_keys` only what dq takes.
template <class Format, class Gate, class Query, bool of_keys, int tiles>
struct ValueContractions {
  using Shared = KeyShared<Format, Gate, Query>;
  using Operand = typename OperandOf<Format>::Type;
  using Plain = typename Shared::Plain;
  using Values = Fragment<typename Shared::ValueTile, Format>;
  using States = Fragment<typename Shared::StateTile, Plain>;
  // Pairs of later tiles too, which nobody reads: a product is cheaper than a branch around it.
  static constexpr bool all_pairs = sizeof(Operand) == sizeof(OperandBf16);
  Accumulator products[tiles][2];                 // do_i . v_j: rows i of 16 tokens, tile of j
  Accumulator queries[tiles][2], keys[tiles][2];  // S do and D v: 16 key channels x tokens, tile by tile
  float carried[2];  // rowsum(S (.) D) over the lane's value channels; by the warp of tile 0

  __device__ void clear() {
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        products[tile][half].clear(), queries[tile][half].clear(), keys[tile][half].clear();
    carried[0] = carried[1] = 0.0f;
  }
  // Of the second half the last tile first.
  static __device__ __forceinline__ int tile_of(int half, int at) {
    return half ? 3 - at : at;
  }
  // Adds 16 value channels, for the tiles of a half (or all).
  __device__ __forceinline__ void add(const Shared& shared, int value, int group, int half, int lane) {
    const Operand own = Values::template row_operand<Operand>(shared.cotangents(), 16 * group, value, lane);
    const Operand state = States::template column_operand<Operand>(shared.states(), value, 16 * group, lane);
    Operand adjoint;
    if constexpr (of_keys) {
      adjoint = States::template column_operand<Operand>(shared.adjoints(), value, 16 * group, lane);
      if (half == 0) {
        Share s, d;
        States::columns(s, shared.states(), value, 16 * group, lane);
        States::columns(d, shared.adjoints(), value, 16 * group, lane);
        add_products(carried, s, d);
      }
    }
#pragma unroll
    for (int at = 0; at < tiles; ++at) {
      const int tile = tile_of(half, at);
      const Operand v = Values::template second_row_operand<Operand>(shared.values(), 16 * tile, value, lane);
      const Operand d_o =
          Values::template second_row_operand<Operand>(shared.cotangents(), 16 * tile, value, lane);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (all_pairs || tile <= group) multiply(products[at][half], own, v, half);
        multiply(queries[at][half], state, d_o, half);
        if constexpr (of_keys) multiply(keys[at][half], adjoint, v, half);
      }
    }
  }
  // Up to four times 16.
  __device__ __forceinline__ void add_groups(const Shared& shared, int groups, int group, int half,
                                             int lane) {
    if (groups == 4)
#pragma unroll
      for (int at = 0; at < 4; ++at) add(shared, 16 * at, group, half, lane);
    else
#pragma unroll 1
      for (int at = 0; at < groups; ++at) add(shared, 16 * at, group, half, lane);
  }
  __device__ __forceinline__ void store_products(const Shared& shared, float scale, int group, int half,
                                                 int lane) {
#pragma unroll
    for (int at = 0; at < tiles; ++at)
      if (const int tile = tile_of(half, at); tile <= group)
        store_tile_of_pairs<typename Shared::StateTile>(shared.products(), shared.diagonal(), products[at],
                                                        scale, group, tile, lane);
  }
};
