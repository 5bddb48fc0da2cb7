// A matrix product on tensor cores: C[row, column] = sum over places of A[row, place] B[column, place]. A
// block of 128 threads makes 64 x 64 of C; each of its four warps 32 x 32. Every 64 places the accumulators
// are added to totals in fp32, so that what tensor cores truncate does not grow with the contraction. No two
// blocks write one element.
#pragma once
#include "../device/operand.cuh"
#include "product_layout.h"

constexpr int tile_rows = assay::merge_heads::block_rows, tile_places = 32,
              places_per_total = assay::merge_heads::places_per_total;

// One operand in memory: rows of `stride` elements with neighbouring places, or (by_place false) places of
// `stride` elements with neighbouring rows.
template <class Format, bool by_place>
struct Side {
  using Bits = typename Format::Bits;
  // 16-bit formats: 24 words from row to row, fp32: 48; 16 lanes (8) that load a quad each then hit every
  // bank once.
  static constexpr int pitch = 48;
  static constexpr int quads = 4;  // per thread and tile
  const Bits* from;
  i64 stride, rows, places;

  // Place of the thread's i-th quad in the tile: its first row and place.
  static __device__ __forceinline__ int row_of(int i) {
    const int thread = int(threadIdx.x);
    if constexpr (by_place) return (thread + 128 * i) / 8;
    return 4 * (thread % 4 + 4 * i);
  }
  static __device__ __forceinline__ int place_of(int i) {
    const int thread = int(threadIdx.x);
    if constexpr (by_place) return 4 * (thread % 8);
    return thread / 4;
  }
  __device__ __forceinline__ void load(Quad<Format> (&to)[quads], i64 first_row, i64 first_place) const {
    const bool vector = stride % 4 == 0;  // neighbours end where the stride does: then four or none are there
#pragma unroll
    for (int i = 0; i < quads; ++i) {
      const i64 row = first_row + row_of(i), place = first_place + place_of(i);
      const bool live = row < rows && place < places;
      const i64 left = by_place ? places - place : rows - row;
      const Bits* const at = from + (by_place ? row * stride + place : place * stride + row);
      to[i] = load_quad<Format>(at, live ? int(min(left, i64(4))) : 0, vector);
    }
  }
  static __device__ __forceinline__ void store(const Quad<Format> (&from)[quads], Bits* tile) {
#pragma unroll
    for (int i = 0; i < quads; ++i) {
      Bits* const at = tile + row_of(i) * pitch + place_of(i);
      if constexpr (by_place) {
        *reinterpret_cast<Quad<Format>*>(at) = from[i];
      } else {
#pragma unroll
        for (int c = 0; c < 4; ++c) at[c * pitch] = element(from[i], c);
      }
    }
  }

 private:
  static __device__ __forceinline__ Bits element(const Quad<Format>& quad, int c) {
    if constexpr (sizeof(Bits) == 2)
      return static_cast<Bits>(quad.bits[c >> 1] >> (16 * (c & 1)));
    else
      return quad.value[c];
  }
};

// A lane's share of 16 rows x 16 places: rows lane / 4 and lane / 4 + 8, places 4 (lane % 4) to + 3.
template <class Operand, class Format>
__device__ __forceinline__ Operand load_operand(const typename Format::Bits* tile, int pitch, int row,
                                                int place) {
  const int lane = int(threadIdx.x) & 31;
  const typename Format::Bits* const at = tile + (row + lane / 4) * pitch + place + 4 * (lane % 4);
  float x[2][4];
  reinterpret_cast<const Quad<Format>*>(at)->decode(x[0]);
  reinterpret_cast<const Quad<Format>*>(at + 8 * pitch)->decode(x[1]);
  return Operand::of(x);
}

template <class Format>
struct ProductOperand;
template <>
struct ProductOperand<Bf16> {
  using Type = OperandBf16;
};
template <>
struct ProductOperand<Fp16> {
  using Type = OperandTf32;
};
template <>
struct ProductOperand<Fp32> {
  using Type = OperandTf32x3;
};

// C has B's rows as columns. Grid (x): ceil(rows of A / 64) x ceil(rows of B / 64).
template <class Format, bool a_by_place, bool b_by_place>
__device__ __forceinline__ void product(const Side<Format, a_by_place>& a, const Side<Format, b_by_place>& b,
                                        typename Format::Bits* c) {
  using Bits = typename Format::Bits;
  using Operand = typename ProductOperand<Format>::Type;
  constexpr int pitch = Side<Format, true>::pitch;
  __shared__ __align__(16) Bits tiles[2][tile_rows * pitch];

  const u32 column_blocks = u32((b.rows + tile_rows - 1) / tile_rows);  // of at most 2^31 - 1 blocks
  const i64 first_row = i64(blockIdx.x / column_blocks) * tile_rows;
  const i64 first_column = i64(blockIdx.x % column_blocks) * tile_rows;
  const int warp = int(threadIdx.x) >> 5, lane = int(threadIdx.x) & 31;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;

  Accumulator sums[2][4];  // 16 rows x 8 columns each
  float totals[2][4][4] = {};
#pragma unroll
  for (int i = 0; i < 8; ++i) sums[i >> 2][i & 3].clear();
  Quad<Format> next_a[4], next_b[4];
  a.load(next_a, first_row, 0), b.load(next_b, first_column, 0);
  for (i64 begin = 0; begin < a.places; begin += tile_places) {
    __syncthreads();
    a.store(next_a, tiles[0]), b.store(next_b, tiles[1]);
    __syncthreads();
    a.load(next_a, first_row, begin + tile_places), b.load(next_b, first_column, begin + tile_places);
#pragma unroll
    for (int place = 0; place < tile_places; place += 16) {
      Operand left[2], right[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        left[i] = load_operand<Operand, Format>(tiles[0], pitch, warp_row + 16 * i, place);
        right[i] = load_operand<Operand, Format>(tiles[1], pitch, warp_column + 16 * i, place);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) multiply(sums[i][j], left[i], right[j >> 1], j & 1);
    }
    if ((begin + tile_places) % places_per_total != 0 && begin + tile_places < a.places) continue;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      Accumulator& sum = sums[i >> 4][(i >> 2) & 3];
      float& total = totals[i >> 4][(i >> 2) & 3][i & 3];
      total = total + sum.r[i & 3];
      sum.r[i & 3] = 0.0f;
    }
  }

  const bool vector = b.rows % 2 == 0;
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const i64 row = first_row + warp_row + 16 * i + lane / 4 + 8 * half;
        const i64 column = first_column + warp_column + 8 * j + 2 * (lane % 4);
        if (row < a.rows && column < b.rows)
          store_pair<Format>(c + row * b.rows + column, totals[i][j][2 * half], totals[i][j][2 * half + 1],
                             int(min(b.rows - column, i64(2))), vector);
      }
}
