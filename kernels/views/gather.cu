// An input that is a view, copied row by row into dense memory: what kernels read whose inputs lie there in
// one piece. Four axes, missing ones of size 1 in front. A row is the last axis; of the other three the plan
// has chosen one along which a block takes its rows.
//   gather_16, gather_32   elements of 16 and of 32 bits
// `whole` != 0 promises that every row begins and ends at a multiple of 16 bytes where `source` does: it is then
// copied in such units. 2^bits lanes take a row. Strides in bytes.
// 256 threads. Grid (x): outer axis x middle axis x parts, parts = ceil(rows / 64).
#include "../gated/instruction.cuh"

constexpr int rows_per_block = 64;  // gather_plan.cpp says the same
constexpr int gather_threads = 256;

struct AxisStrides {
  i64 outer, middle, row;
};

// `rows` rows of `units` units each, the units of a row `step` bytes apart, 2^bits lanes side by side.
template <class Unit>
__device__ __forceinline__ void copy_rows(const char* from, char* to, int rows, i64 from_row, i64 to_row,
                                          i64 units, i64 step, int bits) {
  const int lane = int(threadIdx.x) & ((1 << bits) - 1);
#pragma unroll 1
  for (int row = int(threadIdx.x) >> bits; row < rows; row += gather_threads >> bits)
#pragma unroll 1
    for (i64 at = lane; at < units; at += i64(1) << bits)
      *reinterpret_cast<Unit*>(to + row * to_row + at * i64(sizeof(Unit))) =
          *reinterpret_cast<const Unit*>(from + row * from_row + at * step);
}

template <class Element>
__device__ __forceinline__ void gather(const char* source, char* dense, i64 rows, i64 length, u32 middle_size,
                                       u32 parts, int bits, bool whole, const AxisStrides& view, i64 step,
                                       const AxisStrides& packed) {
  const u32 part = blockIdx.x % parts, places = blockIdx.x / parts;
  const i64 outer = places / middle_size, middle = places % middle_size, first = i64(part) * rows_per_block;
  const char* const from = source + outer * view.outer + middle * view.middle + first * view.row;
  char* const to = dense + outer * packed.outer + middle * packed.middle + first * packed.row;
  const int here = int(min(rows - first, i64(rows_per_block)));
  if (whole && (reinterpret_cast<i64>(source) & 15) == 0)
    copy_rows<uint4>(from, to, here, view.row, packed.row, length * i64(sizeof(Element)) >> 4, 16, bits);
  else
    copy_rows<Element>(from, to, here, view.row, packed.row, length, step, bits);
}

#define GATHER(bits_of_element, Element)                                                                   \
  extern "C" __global__ void __launch_bounds__(256) gather_##bits_of_element(                              \
      const char* source, char* dense, i64 rows, i64 length, u32 middle_size, u32 parts, int bits,         \
      int whole, i64 outer, i64 middle, i64 row, i64 step, i64 packed_outer, i64 packed_middle,            \
      i64 packed_row) {                                                                                    \
    gather<Element>(source, dense, rows, length, middle_size, parts, bits, whole != 0,                     \
                    {outer, middle, row}, step, {packed_outer, packed_middle, packed_row});                \
  }
GATHER(16, unsigned short)
GATHER(32, u32)
