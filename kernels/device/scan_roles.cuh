// Warps of a scan that goes token by token. One warp per scheduler computes, and what it waits for shows; so
// as many warps beside it load, decode and exponentiate the tokens that come next.
#pragma once
#include "scan_layout.h"

__device__ __forceinline__ bool computes_in_scan() {
  return int(threadIdx.x) < assay::device::scan_threads;
}
// Among those of its role.
__device__ __forceinline__ int thread_of_scan() {
  return int(threadIdx.x) % assay::device::scan_threads;
}

// Of those rows of a block that a warp computes: where there is none, it rests.
__device__ __forceinline__ int first_row_of_warp(int row_begin, int rows) {
  return row_begin + int(threadIdx.x) / 32 * (rows / (assay::device::scan_threads / 32));
}

// For tokens in shared memory: one place is written while the other is read; where rows are too long for two,
// all warps wait in between.
template <int channels>
constexpr int places_for_tokens = channels > 128 ? 1 : 2;

// Blocks that a multiprocessor is to have: of 128 channels two share its registers.
constexpr int blocks_of_scan(int channels) {
  return channels == 128 ? 2 : 1;
}
