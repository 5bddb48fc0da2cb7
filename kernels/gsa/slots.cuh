// What gated slot attention does between its two recurrences, slot by slot of one token and head, and with
// the transposed states of the first one. A warp has one row of `slots` numbers, at most 128.
#pragma once
#include "../device/decay.cuh"
#include "../device/format.cuh"
#include "slots_layout.h"

// The row of the warp, and its lanes' slots lane + 32 i.
struct SlotRow {
  static constexpr int per_lane = assay::gsa::slots_per_lane;
  i64 begin;
  int slots, lane;
  bool live;  // there is such a row

  __device__ SlotRow(i64 rows, int slots) : slots(slots), lane(int(threadIdx.x) & 31) {
    const i64 row = i64(blockIdx.x) * assay::gsa::rows + (int(threadIdx.x) >> 5);
    live = row < rows, begin = row * slots;
  }
  __device__ int slot(int i) const { return lane + 32 * i; }
  // The same in every lane.
  static __device__ float sum_of(float x) {
#pragma unroll
    for (int mask = 16; mask >= 1; mask /= 2) x = x + __shfl_xor_sync(0xffffffffu, x, mask);
    return x;
  }
  static __device__ float largest_of(float x) {
#pragma unroll
    for (int mask = 16; mask >= 1; mask /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, x, mask);
      x = other > x ? other : x;
    }
    return x;
  }
};

// p = softmax(y) along the slots. Exponents are differences to the largest y: none is above 0.
template <class Weight>
__device__ __forceinline__ void softmax(const float* y, typename Weight::Bits* p, i64 rows, int slots) {
  const SlotRow row(rows, slots);
  if (!row.live) return;
  float x[SlotRow::per_lane], largest = y[row.begin];
#pragma unroll
  for (int i = 0; i < SlotRow::per_lane; ++i) {
    const bool live = row.slot(i) < slots;
    x[i] = y[row.begin + (live ? row.slot(i) : 0)];
    largest = x[i] > largest ? x[i] : largest;
  }
  largest = SlotRow::largest_of(largest);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < SlotRow::per_lane; ++i) {
    x[i] = row.slot(i) < slots ? power_of_two((x[i] - largest) * log2_e) : 0.0f;
    sum = sum + x[i];
  }
  const float inverse = __frcp_rn(SlotRow::sum_of(sum));
#pragma unroll
  for (int i = 0; i < SlotRow::per_lane; ++i)
    if (row.slot(i) < slots) p[row.begin + row.slot(i)] = Weight::encode(x[i] * inverse);
}

// dy = p (dp - p . dp).
template <class Weight>
__device__ __forceinline__ void softmax_gradient(const typename Weight::Bits* p, const float* dp,
                                                 typename Weight::Bits* dy, i64 rows, int slots) {
  const SlotRow row(rows, slots);
  if (!row.live) return;
  float weight[SlotRow::per_lane], gradient[SlotRow::per_lane], mean = 0.0f;
#pragma unroll
  for (int i = 0; i < SlotRow::per_lane; ++i) {
    const bool live = row.slot(i) < slots;
    weight[i] = live ? Weight::decode(p[row.begin + row.slot(i)]) : 0.0f;
    gradient[i] = live ? dp[row.begin + row.slot(i)] : 0.0f;
    mean = fused(weight[i], gradient[i], mean);
  }
  mean = SlotRow::sum_of(mean);
#pragma unroll
  for (int i = 0; i < SlotRow::per_lane; ++i)
    if (row.slot(i) < slots) dy[row.begin + row.slot(i)] = Weight::encode(weight[i] * (gradient[i] - mean));
}

// Where a thread of a one-dimensional grid of 128 is.
__device__ __forceinline__ i64 thread_index() {
  return i64(blockIdx.x) * assay::gsa::threads + int(threadIdx.x);
}

// to = a + b, rounded to the format; a block has `sums_per_thread` times as many as threads.
template <class Format>
__device__ __forceinline__ void add(const float* a, const float* b, typename Format::Bits* to, i64 count) {
  constexpr int each = assay::gsa::sums_per_thread, stride = assay::gsa::threads;
  const i64 first = i64(blockIdx.x) * (each * stride) + int(threadIdx.x);
  float sums[each];
#pragma unroll
  for (int i = 0; i < each; ++i)
    sums[i] = first + i * stride < count ? a[first + i * stride] + b[first + i * stride] : 0.0f;
#pragma unroll
  for (int i = 0; i < each; ++i)
    if (first + i * stride < count) to[first + i * stride] = Format::encode(sums[i]);
}

// Matrices [.][rows][columns] to [.][columns][rows]; `count`: elements of all.
__device__ __forceinline__ void transpose(const float* from, float* to, i64 count, int rows, int columns) {
  const i64 i = thread_index();
  if (i >= count) return;
  const int size = rows * columns, at = int(i % size), row = at / columns, column = at % columns;
  to[i - at + i64(column) * rows + row] = from[i];
}
