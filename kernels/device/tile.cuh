// A tile of 64 tokens in shared memory (tile_layout.h): loaded and stored by a block, 16 bytes per thread and
// step where rows are aligned, read as operands by its warps. load_tile only starts the copies: callers wait
// for them and meet at a barrier.
#pragma once
#include "operand.cuh"
#include "tile_layout.h"

template <class Format, int columns_>
struct Tile {
  using Element = Format;
  using Bits = typename Format::Bits;
  static constexpr int columns = columns_;
  static constexpr int bytes = assay::device::tile_bytes(int(sizeof(Bits)), columns);

  static __device__ int offset(int row, int column) {
    return assay::device::tile_offset(int(sizeof(Bits)), columns, row, column);
  }
};

// Starts loading 64 rows x Tile::columns elements from `from`, `row_stride` elements apart; rows and columns
// from (rows, count) on become zero. `vector`: row starts are 16-byte aligned and count is a multiple of 8.
template <class T, int threads>
__device__ __forceinline__ void load_tile(char* tile, const typename T::Bits* from, i64 row_stride, int rows,
                                          int count, bool vector) {
  constexpr int size = int(sizeof(typename T::Bits));
  if (vector) {
    constexpr int per_piece = 16 / size, pieces = T::columns / per_piece, step = threads / pieces;
    static_assert(step <= 16 ? 16 % step == 0 : step % 16 == 0,
                  "rows of one thread keep their place in the padding");
    const int row = int(threadIdx.x) / pieces, column = int(threadIdx.x) % pieces * per_piece;
    const typename T::Bits* piece = from + row * row_stride + column;
    char* to = tile + T::offset(row, column);
    if (column >= count) rows = 0;
#pragma unroll
    for (int i = 0; i < 64 / step; ++i, piece += step * row_stride)
      copy_async(to + T::offset(i * step, 0), piece, row + i * step < rows ? 16 : 0);
  } else {
#pragma unroll 1
    for (int i = int(threadIdx.x); i < 64 * T::columns; i += threads) {
      const int row = i / T::columns, column = i % T::columns;
      typename T::Bits bits = 0;
      if (row < rows && column < count) bits = from[row * row_stride + column];
      *reinterpret_cast<typename T::Bits*>(tile + T::offset(row, column)) = bits;
    }
  }
}

// 64 tokens x 64 channels from shared memory to a tensor; 16 bytes at a time where rows are aligned.
template <class T, int threads>
__device__ __forceinline__ void store_tile(typename T::Bits* to, const char* tile, i64 row_stride, int rows,
                                           int count, bool vector) {
  constexpr int size = int(sizeof(typename T::Bits)), per_piece = 16 / size, pieces = T::columns / per_piece;
  if (vector) {
#pragma unroll 1
    for (int i = int(threadIdx.x); i < rows * pieces; i += threads) {
      const int row = i / pieces, column = i % pieces * per_piece;
      if (column < count)
        *reinterpret_cast<uint4*>(to + row * row_stride + column) =
            *reinterpret_cast<const uint4*>(tile + T::offset(row, column));
    }
  } else {
#pragma unroll 1
    for (int i = int(threadIdx.x); i < rows * T::columns; i += threads) {
      const int row = i / T::columns, column = i % T::columns;
      if (column < count)
        to[row * row_stride + column] =
            *reinterpret_cast<const typename T::Bits*>(tile + T::offset(row, column));
    }
  }
}

// Which token stands at place k of a contraction over 16 tokens; `half` is k / 8, `m` is k % 8.
struct NaturalTokens {
  int first;
  __device__ int operator()(int m, int half) const { return first + 8 * half + m; }
};
// Each quarter t = lane % 4 of a warp holds 16 neighbouring tokens of 64; step s takes four of each quarter.
struct QuarterTokens {
  int step;
  __device__ int operator()(int m, int half) const { return 16 * (m >> 1) + 4 * step + 2 * half + (m & 1); }
};

// Is what lies in the tile what the operand's registers hold?
template <class T, class Operand>
constexpr bool holds_operands = sizeof(Operand) == sizeof(OperandBf16) && sizeof(typename T::Bits) == 2;

// Operand whose rows are the tile's columns [column, column + 16) and whose places are 16 of its tokens.
// `second`: it is only ever B (operand.cuh).
template <class T, bool second = false, class Operand, class Tokens>
__device__ __forceinline__ void load_columns(Operand& operand, const char* tile, int column, Tokens token,
                                             int lane) {
  if constexpr (holds_operands<T, Operand>) {
    const int matrix = lane >> 3;
    const int of_places = second ? matrix & 1 : matrix >> 1, of_rows = second ? matrix >> 1 : matrix & 1;
    u32 r[4];
    load_matrices_transposed(r, tile + T::offset(token(lane & 7, of_places), column + 8 * of_rows));
    operand = second ? Operand::second(r) : Operand{{r[0], r[1], r[2], r[3]}};
  } else {
    float x[2][4];
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const int row = token(2 * (lane & 3) + (place >> 1), place & 1);
#pragma unroll
      for (int half = 0; half < 2; ++half)
        x[half][place] = T::Element::decode(*reinterpret_cast<const typename T::Bits*>(
            tile + T::offset(row, column + 8 * half + (lane >> 2))));
    }
    operand = Operand::of(x);
  }
}
