// Maps over tensors element by element: four neighbours at a time, a block takes 2048 elements.
#pragma once
#include "../gated/format.cuh"

constexpr int mapped_per_block = 2048;  // gates_plan.cpp says the same

// to[i] = f(a[i], b[i]) for i < count; pass a twice where there is only one input. Pointers are aligned to 16
// bytes.
template <class A, class B, class To, class Function>
__device__ __forceinline__ void map_elements(const typename A::Bits* a, const typename B::Bits* b,
                                             typename To::Bits* to, i64 count, const Function& f) {
  const i64 first = i64(blockIdx.x) * mapped_per_block + 4 * int(threadIdx.x);
  float x[2][4], y[2][4];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const i64 at = first + 1024 * i, left = count - at;
    const int live = left < 4 ? int(left) : 4;
    load_quad<A>(a + at, live, live == 4).decode(x[i]);
    load_quad<B>(b + at, live, live == 4).decode(y[i]);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const i64 at = first + 1024 * i, left = count - at;
    float result[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) result[c] = f(x[i][c], y[i][c]);
    if (left >= 4) {
      store_quad<To>(to + at, result);
    } else {
#pragma unroll
      for (int c = 0; c < 3; ++c)
        if (c < left) to[at + c] = To::encode(result[c]);
    }
  }
}
