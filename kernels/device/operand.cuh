// Tensor-core operands. One lane's share of a 16 x 16 operand is x[2][4]: rows lane/4 and lane/4 + 8 (rows of
// A, or columns of B), and four places of the contraction that belong to the lane's quarter t = lane % 4.
// Which places those are is free as long as both operands agree, so callers let them be neighbours in memory.
// The same registers serve as A (16 rows) and as B (two tiles of 8 columns: rows 0-7 and rows 8-15 of x).
// What is only ever B is loaded by `load_second` and its like: in an order in which the two registers of a
// tile of columns are neighbours, as the instruction wants them.
//   m16n8k16 (bf16):    places {0, 2} are k = 2t, 2t+1; places {1, 3} are k = 2t+8, 2t+9
//   m16n8k8 (tf32) x 2: places 0, 2 are k = t, t+4 of the first product; places 1, 3 those of the second
#pragma once
#include "format.cuh"
#include "tile_layout.h"

// Accumulator of m16n8: element r is row lane/4 + 8 (r/2), column 2 (lane%4) + r%2.
struct Accumulator {
  float r[4];
  __device__ void clear() { r[0] = r[1] = r[2] = r[3] = 0.0f; }
};

// bf16 operands, relative rounding error 2^-8 (0 where the value is a bf16 already).
struct OperandBf16 {
  using Shared = uint4;                    // one lane's share in memory
  static constexpr int block_bytes = 512;  // one 16 x 16 operand in memory
  u32 r[4];                                // [2 * (places {1,3}) + row]

  static __device__ OperandBf16 of(const float (&x)[2][4]) {
    return {{to_bf16_pair(x[0][0], x[0][2]), to_bf16_pair(x[1][0], x[1][2]), to_bf16_pair(x[0][1], x[0][3]),
             to_bf16_pair(x[1][1], x[1][3])}};
  }
  __device__ void store(char* block, int lane) const {
    reinterpret_cast<uint4*>(block)[lane] = make_uint4(r[0], r[1], r[2], r[3]);
  }
  static __device__ OperandBf16 load(const char* block, int lane) {
    const uint4 x = reinterpret_cast<const uint4*>(block)[lane];
    return {{x.x, x.y, x.z, x.w}};
  }
  static __device__ void store_values(char* block, int lane, const float (&x)[2][4]) {
    of(x).store(block, lane);
  }
  static __device__ OperandBf16 second(const u32 (&x)[4]) { return {{x[0], x[2], x[1], x[3]}}; }
  static __device__ OperandBf16 load_second(const char* block, int lane) {
    const uint4 x = reinterpret_cast<const uint4*>(block)[lane];
    return {{x.x, x.z, x.y, x.w}};
  }
  static __device__ void store_second_values(char* block, int lane, const float (&x)[2][4]) {
    const OperandBf16 operand = of(x);
    reinterpret_cast<uint4*>(block)[lane] =
        make_uint4(operand.r[0], operand.r[2], operand.r[1], operand.r[3]);
  }
};

// c += A B^T over 16 places, for columns 8 `half` .. 8 `half` + 7 of B.
__device__ __forceinline__ void multiply(Accumulator& c, const OperandBf16& a, const OperandBf16& b,
                                         int half) {
  mma_bf16(c.r, a.r[0], a.r[1], a.r[2], a.r[3], b.r[half], b.r[half + 2]);
}

// One lane's eight floats of a 16 x 16 block in memory: two runs of 512 bytes, so that no bank is hit twice.
__device__ __forceinline__ void store_floats(char* block, int lane, const float (&x)[2][4]) {
  float4* row = reinterpret_cast<float4*>(block);
  row[lane] = make_float4(x[0][0], x[0][1], x[0][2], x[0][3]);
  row[lane + 32] = make_float4(x[1][0], x[1][1], x[1][2], x[1][3]);
}
__device__ __forceinline__ void load_floats(const char* block, int lane, float (&x)[2][4]) {
  const float4* row = reinterpret_cast<const float4*>(block);
  const float4 first = row[lane], second = row[lane + 32];
  x[0][0] = first.x, x[0][1] = first.y, x[0][2] = first.z, x[0][3] = first.w;
  x[1][0] = second.x, x[1][1] = second.y, x[1][2] = second.z, x[1][3] = second.w;
}

// tf32 operands: range of fp32, relative rounding error 2^-11, 0 for values that are fp16 already.
struct OperandTf32 {
  static constexpr int block_bytes = 1024;
  u32 r[2][4];

  static __device__ OperandTf32 of(const float (&x)[2][4]) {
    OperandTf32 result;
#pragma unroll
    for (int i = 0; i < 8; ++i) result.r[i >> 2][i & 3] = to_tf32(x[i >> 2][i & 3]);
    return result;
  }
  static __device__ OperandTf32 load(const char* block, int lane) {
    float x[2][4];
    load_floats(block, lane, x);
    return of(x);
  }
  static __device__ void store_values(char* block, int lane, const float (&x)[2][4]) {
    store_floats(block, lane, x);
  }
  static __device__ OperandTf32 load_second(const char* block, int lane) {
    return load(block, lane);
  }
  static __device__ void store_second_values(char* block, int lane, const float (&x)[2][4]) {
    store_values(block, lane, x);
  }
};

__device__ __forceinline__ void multiply(Accumulator& c, const OperandTf32& a, const OperandTf32& b,
                                         int half) {
  mma_tf32(c.r, a.r[0][0], a.r[1][0], a.r[0][2], a.r[1][2], b.r[half][0], b.r[half][2]);
  mma_tf32(c.r, a.r[0][1], a.r[1][1], a.r[0][3], a.r[1][3], b.r[half][1], b.r[half][3]);
}

// fp32 operands as high + low, both tf32: high = rna(x), low = rna(x - high), |x - high - low| <= 2^-22 |x|.
struct OperandTf32x3 {
  static constexpr int block_bytes = 1024;
  OperandTf32 high, low;

  static __device__ OperandTf32x3 of(const float (&x)[2][4]) {
    OperandTf32x3 result;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float value = x[i >> 2][i & 3];
      const u32 high = to_tf32(value);
      result.high.r[i >> 2][i & 3] = high;
      result.low.r[i >> 2][i & 3] = to_tf32(value - __uint_as_float(high));
    }
    return result;
  }
  static __device__ OperandTf32x3 load(const char* block, int lane) {
    float x[2][4];
    load_floats(block, lane, x);
    return of(x);
  }
  static __device__ void store_values(char* block, int lane, const float (&x)[2][4]) {
    store_floats(block, lane, x);
  }
  static __device__ OperandTf32x3 load_second(const char* block, int lane) {
    return load(block, lane);
  }
  static __device__ void store_second_values(char* block, int lane, const float (&x)[2][4]) {
    store_values(block, lane, x);
  }
};

// Three products (low * low is left out: 2^-22). They are summed from zero, small ones first, and added to c
// by an ordinary rounded addition: the truncations of the tensor core then scale with these 16 places alone,
// not with the whole running sum once per instruction.
__device__ __forceinline__ void multiply(Accumulator& c, const OperandTf32x3& a, const OperandTf32x3& b,
                                         int half) {
  Accumulator sum;
  sum.clear();
  multiply(sum, a.low, b.high, half);
  multiply(sum, a.high, b.low, half);
  multiply(sum, a.high, b.high, half);
#pragma unroll
  for (int i = 0; i < 4; ++i) c.r[i] = c.r[i] + sum.r[i];
}

// What tensors of a format are multiplied as, and how such an operand's values are kept in memory.
template <class Format>
struct OperandOf;
template <class Format>
struct StateOf {
  using Type = Fp32;
};
template <>
struct StateOf<Bf16> {
  using Type = Bf16;
};
template <>
struct OperandOf<Bf16> {
  using Type = OperandBf16;
};
template <>
struct OperandOf<Fp16> {
  using Type = OperandTf32;
};
template <>
struct OperandOf<Fp32> {
  using Type = OperandTf32x3;
};

// The layouts' sizes of a format, from what the device has; the same that the host takes.
template <class Format>
constexpr assay::device::FormatSizes sizes_of_format = {int(sizeof(typename Format::Bits)),
                                                        int(sizeof(typename StateOf<Format>::Type::Bits)),
                                                        OperandOf<Format>::Type::block_bytes};
template <class Format>
constexpr bool has_sizes(assay::device::FormatSizes host) {
  constexpr assay::device::FormatSizes own = sizes_of_format<Format>;
  return own.element == host.element && own.kept == host.kept && own.operand_block == host.operand_block;
}
static_assert(has_sizes<Bf16>(assay::device::bf16_sizes));
static_assert(has_sizes<Fp16>(assay::device::fp16_sizes));
static_assert(has_sizes<Fp32>(assay::device::fp32_sizes));
