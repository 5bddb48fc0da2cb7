// Maps over tensors element by element, four neighbours at a time.
#pragma once
#include "../device/format.cuh"
#include "each_layout.h"

// Elements `at` and the three behind it, with the last of all `count` ones in place of those behind that.
template <class Format>
__device__ __forceinline__ void load_four(const typename Format::Bits* from, i64 at, i64 count,
                                          float (&x)[4]) {
  if (at + 4 <= count) {
    load_quad<Format>(from + at, 4, true).decode(x);
  } else {
#pragma unroll
    for (int c = 0; c < 3; ++c) x[c] = Format::decode(from[min(at + c, count - 1)]);
    x[3] = x[2];
  }
}

// to[i] = f(from[0][i], ..) for i < count. Pointers are aligned to 16 bytes.
template <class From, class To, int inputs, class Function>
__device__ __forceinline__ void map_elements(const typename From::Bits* const (&from)[inputs],
                                             typename To::Bits* to, i64 count, const Function& f) {
  using namespace assay::elementwise;
  const i64 first = i64(blockIdx.x) * per_block + 4 * int(threadIdx.x);
  float x[quads][inputs][4];
#pragma unroll
  for (int i = 0; i < quads; ++i)
#pragma unroll
    for (int input = 0; input < inputs; ++input)
      load_four<From>(from[input], first + quad_stride * i, count, x[i][input]);
#pragma unroll
  for (int i = 0; i < quads; ++i) {
    const i64 at = first + quad_stride * i, left = count - at;
    float result[4];
#pragma unroll
    for (int c = 0; c < 4; ++c)
      if constexpr (inputs == 1)
        result[c] = f(x[i][0][c]);
      else
        result[c] = f(x[i][0][c], x[i][1][c]);
    if (left >= 4) {
      store_quad<To>(to + at, result);
    } else {
#pragma unroll
      for (int c = 0; c < 3; ++c)
        if (c < left) to[at + c] = To::encode(result[c]);
    }
  }
}
