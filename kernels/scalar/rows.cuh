// Operands straight from tiles in shared memory: tokens as rows (q, k), or columns scaled by a weight per
// token (k, on its way into the state). Place p of lane quarter t stands for channel or token
// 2 t + p / 2 + 8 (p % 2) of 16, the order of ldmatrix.
#pragma once
#include "../device/tile.cuh"

// Two of 16 bits in a word, the first one low.
template <class Format>
__device__ __forceinline__ u32 encode_pair(float low, float high) {
  return Format::encode(low) | static_cast<u32>(Format::encode(high)) << 16;
}
template <>
__device__ __forceinline__ u32 encode_pair<Bf16>(float low, float high) {
  return to_bf16_pair(low, high);
}

__device__ __forceinline__ int natural_place(int place, int lane) {
  return 2 * (lane & 3) + (place >> 1) + 8 * (place & 1);
}

// Rows `row` .. row + 15 of the tile, channels `column` .. column + 15.
template <class T, class Operand>
__device__ __forceinline__ void load_rows(Operand& operand, const char* tile, int row, int column, int lane) {
  if constexpr (holds_operands<T, Operand>) {
    const int matrix = lane >> 3;
    load_matrices(operand.r,
                  tile + T::offset(row + (lane & 7) + 8 * (matrix & 1), column + 8 * (matrix >> 1)));
  } else {
    float x[2][4];
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int place = 0; place < 4; ++place)
        x[half][place] = T::Element::decode(*reinterpret_cast<const typename T::Bits*>(
            tile + T::offset(row + (lane >> 2) + 8 * half, column + natural_place(place, lane))));
    operand = Operand::of(x);
  }
}

// Columns `column` .. column + 15 of the tile, tokens `token` .. token + 15 as places, each times its weight
// (rounded to the operand's format once).
template <class T>
__device__ __forceinline__ void load_scaled_columns(OperandBf16& operand, const char* tile, int column,
                                                    int token, const float* weights, int lane) {
  load_columns<T>(operand, tile, column, NaturalTokens{token}, lane);
#pragma unroll
  for (int late = 0; late < 2; ++late) {
    const float2 w = *reinterpret_cast<const float2*>(weights + token + 8 * late + 2 * (lane & 3));
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Pair<Bf16> pair{operand.r[2 * late + half]};
      operand.r[2 * late + half] = to_bf16_pair(pair.low() * w.x, pair.high() * w.y);
    }
  }
}
template <class T, class Operand>
__device__ __forceinline__ void load_scaled_columns(Operand& operand, const char* tile, int column, int token,
                                                    const float* weights, int lane) {
  float x[2][4];
#pragma unroll
  for (int place = 0; place < 4; ++place) {
    const int at = token + natural_place(place, lane);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      x[half][place] = T::Element::decode(*reinterpret_cast<const typename T::Bits*>(
                           tile + T::offset(at, column + 8 * half + (lane >> 2)))) *
                       weights[at];
  }
  operand = Operand::of(x);
}
