// An input that is a view, copied row by row into dense memory: what kernels read whose inputs lie there in
// one piece. Four axes, missing ones of size 1 in front; strides in elements.
//   gather_16, gather_32   elements of 16 and of 32 bits
// 256 threads. Grid (x): ceil(rows / 64), where a row is the last axis.
#include "../gated/instruction.cuh"

constexpr int rows_per_block = 64;  // gather_plan.cpp says the same
constexpr int gather_threads = 256;

struct ViewStrides {
  i64 size1, size2;                        // of the second and third axis
  i64 stride0, stride1, stride2, stride3;  // of all four
};

// Lanes of a row: the smallest power of two that covers it, at most the block.
__device__ __forceinline__ int lanes_of_row(i64 length) {
  int lanes = 1;
  while (lanes < length && lanes < gather_threads) lanes *= 2;
  return lanes;
}

// Rows first.. of `length` units each; a unit is one element, or 16 bytes of neighbours.
template <class Unit>
__device__ __forceinline__ void copy_rows(const Unit* source, Unit* dense, const i64* row_start, i64 first,
                                          int count, i64 length, i64 step) {
  const int lanes = lanes_of_row(length);
  const int lane = int(threadIdx.x) % lanes, together = gather_threads / lanes;
  for (int row = int(threadIdx.x) / lanes; row < count; row += together) {
    const Unit* from = source + row_start[row];
    Unit* to = dense + (first + row) * length;
    for (i64 at = lane; at < length; at += lanes) to[at] = from[at * step];
  }
}

template <class Element>
__device__ __forceinline__ void gather(const Element* source, Element* dense, i64 rows, i64 length,
                                       const ViewStrides& view) {
  constexpr i64 in_unit = 16 / sizeof(Element);
  __shared__ i64 row_start[rows_per_block];
  const i64 first = i64(blockIdx.x) * rows_per_block, left = rows - first;
  const int count = left < rows_per_block ? int(left) : rows_per_block;
  // 16 bytes at a time where every row begins and ends at a multiple of 16 bytes.
  const i64 uneven = length | view.stride0 | view.stride1 | view.stride2;
  const bool whole =
      view.stride3 == 1 && uneven % in_unit == 0 && reinterpret_cast<i64>(source) % 16 == 0 && length > 0;
  const i64 unit = whole ? in_unit : 1;
  if (int(threadIdx.x) < count) {
    const i64 row = first + int(threadIdx.x), outer = row / view.size2;
    row_start[threadIdx.x] = (outer / view.size1 * view.stride0 + outer % view.size1 * view.stride1 +
                              row % view.size2 * view.stride2) /
                             unit;
  }
  __syncthreads();
  if (whole)
    copy_rows(reinterpret_cast<const uint4*>(source), reinterpret_cast<uint4*>(dense), row_start, first,
              count, length / in_unit, 1);
  else
    copy_rows(source, dense, row_start, first, count, length, view.stride3);
}

extern "C" __global__ void __launch_bounds__(256)
    gather_16(const unsigned short* source, unsigned short* dense, i64 rows, i64 length, i64 size1, i64 size2,
              i64 stride0, i64 stride1, i64 stride2, i64 stride3) {
  gather(source, dense, rows, length, {size1, size2, stride0, stride1, stride2, stride3});
}
extern "C" __global__ void __launch_bounds__(256)
    gather_32(const u32* source, u32* dense, i64 rows, i64 length, i64 size1, i64 size2, i64 stride0,
              i64 stride1, i64 stride2, i64 stride3) {
  gather(source, dense, rows, length, {size1, size2, stride0, stride1, stride2, stride3});
}
