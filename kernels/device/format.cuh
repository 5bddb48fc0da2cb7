// Storage formats of tensors on the device: bits to float and back, one rounding to nearest even.
#pragma once

#include "instruction.cuh"

struct Bf16 {
  using Bits = unsigned short;
  static __device__ float decode(Bits x) { return __uint_as_float(static_cast<u32>(x) << 16); }
  static __device__ Bits encode(float x) { return to_bf16(x); }
};

struct Fp16 {
  using Bits = unsigned short;
  static __device__ float decode(Bits x) { return from_fp16(x); }
  static __device__ Bits encode(float x) { return to_fp16(x); }
};

struct Fp32 {
  using Bits = float;
  static __device__ float decode(Bits x) { return x; }
  static __device__ Bits encode(float x) { return x; }
};

// Two neighbouring elements as they lie in memory, in shared memory or registers.
template <class Format>
struct Pair {
  u32 bits;
  __device__ float low() const { return Format::decode(static_cast<unsigned short>(bits & 0xffffu)); }
  __device__ float high() const { return Format::decode(static_cast<unsigned short>(bits >> 16)); }
};
template <>
struct __align__(8) Pair<Fp32> {
  float first, second;
  __device__ float low() const {
    return first;
  }
  __device__ float high() const {
    return second;
  }
};

// Four neighbouring elements: 8 or 16 bytes, loaded at once where rows are aligned.
template <class Format>
struct __align__(8) Quad {
  u32 bits[2];
  __device__ void decode(float(&x)[4]) const {
    x[0] = Pair<Format>{bits[0]}.low(), x[1] = Pair<Format>{bits[0]}.high();
    x[2] = Pair<Format>{bits[1]}.low(), x[3] = Pair<Format>{bits[1]}.high();
  }
  __device__ void clear() {
    bits[0] = bits[1] = 0;
  }
  __device__ void set(int i, typename Format::Bits x) {
    bits[i >> 1] |= static_cast<u32>(x) << (16 * (i & 1));
  }
};
template <>
struct __align__(16) Quad<Fp32> {
  float value[4];
  __device__ void decode(float(&x)[4]) const {
    for (int i = 0; i < 4; ++i) x[i] = value[i];
  }
  __device__ void clear() {
    for (int i = 0; i < 4; ++i) value[i] = 0.0f;
  }
  __device__ void set(int i, float x) {
    value[i] = x;
  }
};

// Elements [0, count) of four from `row`; zero beyond. `vector`: rows are aligned and count is a multiple
// of 4.
template <class Format>
__device__ Quad<Format> load_quad(const typename Format::Bits* row, int count, bool vector) {
  Quad<Format> quad;
  quad.clear();
  if (vector) {
    if (count > 0) quad = *reinterpret_cast<const Quad<Format>*>(row);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (i < count) quad.set(i, row[i]);
  }
  return quad;
}

// Four neighbouring elements, rounded to the format, to an aligned place.
template <class Format>
__device__ __forceinline__ void store_quad(typename Format::Bits* to, const float (&x)[4]) {
  if constexpr (sizeof(typename Format::Bits) == 2) {
    uint2 bits;
    bits.x = Format::encode(x[0]) | static_cast<u32>(Format::encode(x[1])) << 16;
    bits.y = Format::encode(x[2]) | static_cast<u32>(Format::encode(x[3])) << 16;
    *reinterpret_cast<uint2*>(to) = bits;
  } else {
    *reinterpret_cast<float4*>(to) = make_float4(x[0], x[1], x[2], x[3]);
  }
}

// Stores `low`, and `high` where count > 1, rounded to the format.
template <class Format>
__device__ void store_pair(typename Format::Bits* to, float low, float high, int count, bool vector) {
  if (vector) {
    if constexpr (sizeof(typename Format::Bits) == 2)
      *reinterpret_cast<u32*>(to) = Format::encode(low) | static_cast<u32>(Format::encode(high)) << 16;
    else
      *reinterpret_cast<float2*>(to) = make_float2(low, high);
  } else {
    to[0] = Format::encode(low);
    if (count > 1) to[1] = Format::encode(high);
  }
}
