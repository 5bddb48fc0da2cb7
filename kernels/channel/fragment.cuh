// Shares of the 16 x 16 blocks of a tile in shared memory, as floats or as an operand. Rows and places are
// those of operand.cuh; places are taken in the order in which an accumulator pair has its columns, so that
// what comes out of a product can go into the next one.
#pragma once
#include "../device/tile.cuh"

// The element, of 16 along the contraction, that the lane holds at a place: 2t, 2t+8, 2t+1, 2t+9 for quarter
// t = lane % 4.
__device__ __forceinline__ int element_of(int place, int lane) {
  return 2 * (lane & 3) + (place >> 1) + 8 * (place & 1);
}
// The same element as a column of two accumulators; row lane/4 + 8 i.
__device__ __forceinline__ float& element(Accumulator (&c)[2], int i, int place) {
  return c[place & 1].r[2 * i + (place >> 1)];
}

template <class T, class Stored>
struct Fragment {
  static constexpr bool narrow = sizeof(typename Stored::Bits) == 2;

  // Row r < 16 and column c of the block that begins at (row, column): apart, so that what is the lane's own
  // is computed once for all blocks.
  static __device__ __forceinline__ const char* at(const char* tile, int row, int column, int r, int c) {
    return tile + (T::offset(row, column) + T::offset(r, c));
  }

  // Rows are the tile's rows [row, row + 16), places its columns from `column` on.
  static __device__ __forceinline__ void rows(float (&x)[2][4], const char* tile, int row, int column,
                                              int lane) {
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const auto pair = *reinterpret_cast<const Pair<Stored>*>(
          at(tile, row, column, (lane >> 2) + 8 * (m & 1), 2 * (lane & 3) + 8 * (m >> 1)));
      x[m & 1][m >> 1] = pair.low(), x[m & 1][(m >> 1) + 2] = pair.high();
    }
  }
  // Rows are the tile's columns [column, column + 16), places its rows from `row` on.
  static __device__ __forceinline__ void columns(float (&x)[2][4], const char* tile, int row, int column,
                                                 int lane) {
    if constexpr (narrow) {
      u32 r[4];
      packed_columns(r, tile, row, column, lane);
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        const Pair<Stored> pair{r[m]};
        x[m & 1][m >> 1] = pair.low(), x[m & 1][(m >> 1) + 2] = pair.high();
      }
    } else {
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int place = 0; place < 4; ++place)
          x[i][place] = Stored::decode(*reinterpret_cast<const typename T::Bits*>(
              at(tile, row, column, element_of(place, lane), (lane >> 2) + 8 * i)));
    }
  }

  static __device__ __forceinline__ void packed_rows(u32 (&r)[4], const char* tile, int row, int column,
                                                     int lane) {
    const int matrix = lane >> 3;
    load_matrices(r, at(tile, row, column, (lane & 7) + 8 * (matrix & 1), 8 * (matrix >> 1)));
  }
  // The same in the order of what is only ever B (../device/operand.cuh).
  static __device__ __forceinline__ void packed_second_rows(u32 (&r)[4], const char* tile, int row,
                                                            int column, int lane) {
    const int matrix = lane >> 3;
    load_matrices(r, at(tile, row, column, (lane & 7) + 8 * (matrix >> 1), 8 * (matrix & 1)));
  }
  static __device__ __forceinline__ void packed_second_columns(u32 (&r)[4], const char* tile, int row,
                                                               int column, int lane) {
    const int matrix = lane >> 3;
    load_matrices_transposed(r, at(tile, row, column, (lane & 7) + 8 * (matrix & 1), 8 * (matrix >> 1)));
  }
  static __device__ __forceinline__ void packed_columns(u32 (&r)[4], const char* tile, int row, int column,
                                                        int lane) {
    const int matrix = lane >> 3;
    load_matrices_transposed(r, at(tile, row, column, (lane & 7) + 8 * (matrix >> 1), 8 * (matrix & 1)));
  }

  // The same as operands; a bf16 operand is what lies in memory.
  template <class Operand>
  static __device__ __forceinline__ Operand row_operand(const char* tile, int row, int column, int lane) {
    if constexpr (sizeof(Operand) == 16) {
      Operand operand;
      packed_rows(operand.r, tile, row, column, lane);
      return operand;
    } else {
      float x[2][4];
      rows(x, tile, row, column, lane);
      return Operand::of(x);
    }
  }
  template <class Operand>
  static __device__ __forceinline__ Operand column_operand(const char* tile, int row, int column, int lane) {
    if constexpr (sizeof(Operand) == 16) {
      Operand operand;
      packed_columns(operand.r, tile, row, column, lane);
      return operand;
    } else {
      float x[2][4];
      columns(x, tile, row, column, lane);
      return Operand::of(x);
    }
  }
  template <class Operand>
  static __device__ __forceinline__ Operand second_row_operand(const char* tile, int row, int column,
                                                               int lane) {
    if constexpr (sizeof(Operand) == 16) {
      u32 r[4];
      packed_second_rows(r, tile, row, column, lane);
      return Operand::second(r);
    } else {
      return row_operand<Operand>(tile, row, column, lane);
    }
  }
  template <class Operand>
  static __device__ __forceinline__ Operand second_column_operand(const char* tile, int row, int column,
                                                                  int lane) {
    if constexpr (sizeof(Operand) == 16) {
      u32 r[4];
      packed_second_columns(r, tile, row, column, lane);
      return Operand::second(r);
    } else {
      return column_operand<Operand>(tile, row, column, lane);
    }
  }
  // The lane's elements, rounded to the stored format, back to where `columns` reads them.
  static __device__ __forceinline__ void store_columns(char* tile, const float (&x)[2][4], int row,
                                                       int column, int lane) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int place = 0; place < 4; ++place)
        *reinterpret_cast<typename T::Bits*>(const_cast<char*>(at(
            tile, row, column, element_of(place, lane), (lane >> 2) + 8 * i))) = Stored::encode(x[i][place]);
  }
};
