// Where scans leave the states at chunk starts, 16 value channels x 16 key channels at a time, by one warp. A
// lane has x[2][4]: value channels lane/4 + 8 i, and the four key channels that `Keys` says.
//   OperandStates  as operands, for kernels that multiply with them:
//                  [chunk][H][ceil(V/16)][ceil(K/16)] blocks; 16 or 32 bytes per lane, all in a row
//   PlainStates    as matrices of values x keys in the format that operands keep, for gradients:
//                  [chunk][H][V][K], V and K padded to multiples of 16; rows of 32 or 64 bytes
#pragma once
#include "operand.cuh"
#include "shape.cuh"

// Key channels 4 t .. 4 t + 3 of 16, t = lane % 4, stored at once; place(): of the first one.
struct NeighbourKeys {
  static __device__ __forceinline__ int place(int lane) { return 4 * (lane & 3); }
  template <class Plain>
  static __device__ __forceinline__ void store(typename Plain::Bits* at, const float (&x)[4]) {
    store_quad<Plain>(at, x);
  }
};
// Key channels 2 t, 2 t + 8, 2 t + 1, 2 t + 9 of 16: pairs.
struct PairedKeys {
  static __device__ __forceinline__ int place(int lane) { return 2 * (lane & 3); }
  template <class Plain>
  static __device__ __forceinline__ void store(typename Plain::Bits* at, const float (&x)[4]) {
    store_pair<Plain>(at, x[0], x[2], 2, true);
    store_pair<Plain>(at + 8, x[1], x[3], 2, true);
  }
};

// Elements of `Bits` from one group of 16 value channels to the next, and to a group of key channels; a store
// at such a place, or by its numbers. `chunk`: of chunks and heads. By numbers every address is computed
// anew: one base for both rows costs the fp32 scan that stores BothStates 35 registers.
template <class Format>
struct OperandStates {
  using Operand = typename OperandOf<Format>::Type;
  using Bits = char;
  Bits* to;

  static __device__ i64 group_stride(const Shape& shape) {
    return i64(shape.key_groups()) * Operand::block_bytes;
  }
  static __device__ i64 key_place(int key_group) { return key_group * Operand::block_bytes; }
  static __device__ __forceinline__ void store(Bits* at, const Shape&, int lane, const float (&x)[2][4]) {
    Operand::store_second_values(at, lane, x);
  }
  __device__ __forceinline__ void store(i64 chunk, int value_group, int key_group, const Shape& shape,
                                        int lane, const float (&x)[2][4]) const {
    const i64 block = (chunk * shape.value_groups() + value_group) * shape.key_groups() + key_group;
    store(to + block * Operand::block_bytes, shape, lane, x);
  }
};
template <class Format, class Keys>
struct PlainStates {
  using Plain = typename StateOf<Format>::Type;
  using Bits = typename Plain::Bits;
  Bits* to;

  static __device__ i64 group_stride(const Shape& shape) { return 256 * i64(shape.key_groups()); }
  static __device__ i64 key_place(int key_group) { return 16 * key_group; }
  static __device__ __forceinline__ void store(Bits* at, const Shape& shape, int lane,
                                               const float (&x)[2][4]) {
    const int stride = 16 * shape.key_groups();
#pragma unroll
    for (int i = 0; i < 2; ++i)
      Keys::template store<Plain>(at + (((lane >> 2) + 8 * i) * stride + Keys::place(lane)), x[i]);
  }
  __device__ __forceinline__ void store(i64 chunk, int value_group, int key_group, const Shape& shape,
                                        int lane, const float (&x)[2][4]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const i64 value = (chunk * shape.value_groups() + value_group) * 16 + (lane >> 2) + 8 * i;
      Keys::template store<Plain>(to + value * shape.key_groups() * 16 + key_group * 16 + Keys::place(lane),
                                  x[i]);
    }
  }
};

// Both, or of both those that are not null (GivenStates).
template <class Format, class Keys>
struct BothStates {
  OperandStates<Format> operands;
  PlainStates<Format, Keys> plain;

  __device__ __forceinline__ void store(i64 chunk, int value_group, int key_group, const Shape& shape,
                                        int lane, const float (&x)[2][4]) const {
    operands.store(chunk, value_group, key_group, shape, lane, x);
    plain.store(chunk, value_group, key_group, shape, lane, x);
  }
};
template <class Format, class Keys>
struct GivenStates {
  BothStates<Format, Keys> both;

  __device__ __forceinline__ void store(i64 chunk, int value_group, int key_group, const Shape& shape,
                                        int lane, const float (&x)[2][4]) const {
    if (both.operands.to != nullptr) both.operands.store(chunk, value_group, key_group, shape, lane, x);
    if (both.plain.to != nullptr) both.plain.store(chunk, value_group, key_group, shape, lane, x);
  }
};
