// An input that is a view, copied into dense memory: what kernels read whose inputs lie there in one piece.
// Four axes; the last two are a plane of `plane` elements with rows of `length`. Strides are in elements.
//   gather_16, gather_32   elements of 16 and of 32 bits
// 128 threads, an element each. Grid (x): planes * tiles, where tiles = ceil(plane / 128).
#include "../device/instruction.cuh"
#include "gather_layout.h"

constexpr u32 gather_threads = assay::views::gather_threads;

template <class Element>
__device__ __forceinline__ void gather(const Element* source, Element* dense, u32 tiles, u32 plane,
                                       u32 length, u32 size1, i64 stride0, i64 stride1, i64 stride2,
                                       i64 stride3) {
  const u32 outer = blockIdx.x / tiles, at = blockIdx.x % tiles * gather_threads + threadIdx.x;
  if (at >= plane) return;
  dense[i64(outer) * plane + at] = source[outer / size1 * stride0 + outer % size1 * stride1 +
                                          at / length * stride2 + at % length * stride3];
}

extern "C" __global__ void __launch_bounds__(128)
    gather_16(const unsigned short* source, unsigned short* dense, u32 tiles, u32 plane, u32 length,
              u32 size1, i64 stride0, i64 stride1, i64 stride2, i64 stride3) {
  gather(source, dense, tiles, plane, length, size1, stride0, stride1, stride2, stride3);
}
extern "C" __global__ void __launch_bounds__(128)
    gather_32(const u32* source, u32* dense, u32 tiles, u32 plane, u32 length, u32 size1, i64 stride0,
              i64 stride1, i64 stride2, i64 stride3) {
  gather(source, dense, tiles, plane, length, size1, stride0, stride1, stride2, stride3);
}
