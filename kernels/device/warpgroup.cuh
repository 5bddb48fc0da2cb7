// Products of a block of 64 rows by the four warps of a warpgroup, their operands bf16 tiles in shared memory
// as the tensor cores read them: rows of 128 or 64 bytes one after the other, eight of them a swizzle pattern
// in which 16-byte piece p of row r stands at place p ^ (r / (128 / row bytes)) % pieces (PTX ISA
// 9.7.15.5.1.2, "Shared Memory Matrix Layout": 128- and 64-byte swizzling, which a tensor map of the same
// swizzling fills). Sums are in the order of mma.sync: 16 places at a time, ascending, so that the bits are
// those of ../scalar/chunk_rows.cuh on the same GPU.
#pragma once
#include "hopper_instruction.cuh"

// 64 rows x `columns` of bf16. A wider matrix is several tiles, one after the other.
template <int columns_>
struct SwizzledTile {
  static constexpr int columns = columns_, rows = 64, row_bytes = 2 * columns, bytes = rows * row_bytes,
                       pieces = row_bytes / 16;
  static_assert(columns == 64 || columns == 32);

  // Of 16 bytes; column is a multiple of 8.
  static __device__ __forceinline__ int offset(int row, int column) {
    const int piece = column / 8 ^ (row * row_bytes / 128 & (pieces - 1));
    return row * row_bytes + 16 * piece;
  }
  // Descriptor of the tile (PTX ISA 9.7.15.5.1.2.2, "Matrix Descriptor Format"): eight rows from one pattern
  // to the next; the tile starts a pattern. The other stride is not used: no row is longer than a pattern.
  static __device__ __forceinline__ u64 descriptor(const char* tile) {
    constexpr u64 swizzling = columns == 64 ? 1 : 2, pattern = 8 * row_bytes;
    return swizzling << 62 | pattern >> 4 << 32 | u64{1} << 16 | (shared_address(tile) & 0x3ffff) >> 4;
  }
  // 16 columns further, or 16 rows.
  static constexpr u64 columns_16 = 32 >> 4, rows_16 = 16 * row_bytes >> 4;
};

// d (64 rows x the columns' rows) += rows columns^T over 64 channels; `adds`: to what d holds.
template <class Rows, class Columns, int n>
__device__ __forceinline__ void add_products_of_rows(Accumulator (&d)[n], const char* rows,
                                                     const char* columns, bool adds) {
  static_assert(8 * n == Columns::rows && Rows::columns == 64 && Columns::columns == 64);
  const u64 a = Rows::descriptor(rows), b = Columns::descriptor(columns);
#pragma unroll
  for (int step = 0; step < 4; ++step)
    wgmma_bf16<0>(d, a + step * Rows::columns_16, b + step * Columns::columns_16, adds || step > 0);
}
// d (64 rows x the matrix's columns) += rows matrix over 64 channels, which are the matrix's rows.
template <class Rows, class Matrix, int n>
__device__ __forceinline__ void add_products_with(Accumulator (&d)[n], const char* rows, const char* matrix,
                                                  bool adds) {
  static_assert(8 * n == Matrix::columns && Rows::columns == 64);
  const u64 a = Rows::descriptor(rows), b = Matrix::descriptor(matrix);
#pragma unroll
  for (int step = 0; step < 4; ++step)
    wgmma_bf16<1>(d, a + step * Rows::columns_16, b + step * Matrix::rows_16, adds || step > 0);
}
// The same with rows in registers: four operands of 16 places.
template <class Matrix, int n>
__device__ __forceinline__ void add_products_with(Accumulator (&d)[n], const OperandBf16* rows,
                                                  const char* matrix, bool adds) {
  static_assert(8 * n == Matrix::columns);
  const u64 b = Matrix::descriptor(matrix);
#pragma unroll
  for (int step = 0; step < 4; ++step)
    wgmma_bf16<1>(d, rows[step], b + step * Matrix::rows_16, adds || step > 0);
}

// Operand whose rows are columns `column` .. column + 15 of the tile and whose places are rows `row` .. row +
// 15.
template <class T>
__device__ __forceinline__ OperandBf16 turned_operand(const char* tile, int column, int row, int lane) {
  OperandBf16 operand;
  const int matrix = lane >> 3;
  load_matrices_transposed(operand.r,
                           tile + T::offset(row + (lane & 7) + 8 * (matrix >> 1), column + 8 * (matrix & 1)));
  return operand;
}
// The warp's 16 rows of sums, rounded, as rows of a tile.
template <class T, int n>
__device__ __forceinline__ void store_rounded(char* tile, const Accumulator (&d)[n], int warp, int lane) {
  static_assert(8 * n == T::columns);
  const int matrix = lane >> 3, row = 16 * warp + (lane & 7) + 8 * (matrix & 1);
#pragma unroll
  for (int i = 0; i < n; i += 2)
    store_matrices(tile + T::offset(row, 8 * (i + (matrix >> 1))), to_bf16_pair(d[i].r[0], d[i].r[1]),
                   to_bf16_pair(d[i].r[2], d[i].r[3]), to_bf16_pair(d[i + 1].r[0], d[i + 1].r[1]),
                   to_bf16_pair(d[i + 1].r[2], d[i + 1].r[3]));
}
