// The operands that a tile's inverse, and what it is applied to, are multiplied as: for bf16 two bf16, their
// sum within 2^-16 of a number; else two tf32, whatever the format. An error of either counts times |1 +
// diag(beta) P| |X|, which near-collinear keys make large: one bf16 is not enough.
#pragma once
#include "../device/operand.cuh"
#include "chunk_layout.h"

namespace rule {

// high = rn(x), low = rn(x - high): |x - high| <= 2^-8 |x| is exact, so |x - high - low| <= 2^-16 |x|.
struct OperandBf16x2 {
  OperandBf16 high, low;

  static __device__ __forceinline__ OperandBf16x2 of(const float (&x)[2][4]) {
    OperandBf16x2 result;
    result.high = OperandBf16::of(x);
    float rest[2][4];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int half = i >> 2, place = i & 3;
      const u32 pair = result.high.r[2 * (place & 1) + half];
      rest[half][place] = x[half][place] - __uint_as_float(place >> 1 ? pair & 0xffff0000u : pair << 16);
    }
    result.low = OperandBf16::of(rest);
    return result;
  }
  static __device__ __forceinline__ OperandBf16x2 load(const char* block, int lane) {
    return {OperandBf16::load(block, lane), OperandBf16::load(block + OperandBf16::block_bytes, lane)};
  }
  static __device__ __forceinline__ void store_values(char* block, int lane, const float (&x)[2][4]) {
    const OperandBf16x2 both = of(x);
    both.high.store(block, lane);
    both.low.store(block + OperandBf16::block_bytes, lane);
  }
};

// Small ones first; low * low is left out: 2^-16.
__device__ __forceinline__ void multiply(Accumulator& c, const OperandBf16x2& a, const OperandBf16x2& b,
                                         int half) {
  multiply(c, a.low, b.high, half);
  multiply(c, a.high, b.low, half);
  multiply(c, a.high, b.high, half);
}

template <class Format>
struct SolveOperandOf {
  using Type = OperandTf32x3;
};
template <>
struct SolveOperandOf<Bf16> {
  using Type = OperandBf16x2;
};
template <class Format>
using SolveOperand = typename SolveOperandOf<Format>::Type;
static_assert(2 * OperandBf16::block_bytes == OperandTf32x3::block_bytes, "solves lie alike in every format");

}  // namespace rule
