// du [H, K], the gradient of a parameter that all tokens share: the sum of what each chunk has [chunk][H][K],
// always in the same order. A block sums 8 neighbouring elements: 16 threads for each, every one of them over
// every 16th chunk, then by halves.
#pragma once
#include "../device/format.cuh"
#include "bonus_total_layout.h"

template <class Format>
__device__ __forceinline__ void bonus_total(const float* sums, typename Format::Bits* du, i64 chunks,
                                            int width) {
  constexpr int elements = assay::rwkv6::bonus_elements, parts = assay::rwkv6::bonus_parts;
  __shared__ float partial[parts][elements];
  const int part = int(threadIdx.x) / elements, element = int(threadIdx.x) % elements;
  const int at = int(blockIdx.x) * elements + element;
  float sum = 0.0f;
  if (at < width)
    for (i64 chunk = part; chunk < chunks; chunk += parts) sum = sum + sums[chunk * width + at];
  partial[part][element] = sum;
#pragma unroll
  for (int half = parts / 2; half >= 1; half /= 2) {
    __syncthreads();
    if (part < half) partial[part][element] = partial[part][element] + partial[part + half][element];
  }
  if (part == 0 && at < width) du[at] = Format::encode(partial[part][element]);
}
