// l2norm.fused: y = x / sqrt(|x|^2 + eps) per token and head, and dx = r (dy - y (y . dy)), fp32 between
// loads and the store, square root and reciprocal rounded correctly. Built once per format:
// -DELEMENT=Bf16|Fp16|Fp32.
//   x, y, dy, dx [row, K], a row being a token's head
// A warp owns a row. Grid (x): ceil(rows / 4) of 128 threads.
#include "../device/format.cuh"
#include "fused_layout.h"

using Element = ELEMENT;
using Bits = Element::Bits;

constexpr float epsilon = 0x1.0c6f7ap-20f;

// Lanes hold the same sum: each adds its neighbour's at distances 16, 8, .., 1.
__device__ __forceinline__ float over_lanes(float sum) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    sum = sum + __shfl_xor_sync(0xffffffffu, sum, distance);
  return sum;
}

// sum_c a_c b_c of two rows.
__device__ __forceinline__ float product(const Bits* a, const Bits* b, int K, int lane) {
  float sum = 0.0f;
#pragma unroll 1
  for (int c = lane; c < K; c += 32) sum = fused(Element::decode(a[c]), Element::decode(b[c]), sum);
  return over_lanes(sum);
}
__device__ __forceinline__ float inverse_length(const Bits* x, int K, int lane) {
  return __frcp_rn(__fsqrt_rn(product(x, x, K, lane) + epsilon));
}
__device__ __forceinline__ i64 row_of_warp() {
  return i64(blockIdx.x) * assay::l2norm::rows_per_block + (threadIdx.x >> 5);
}

extern "C" __global__ void __launch_bounds__(128) l2norm(const Bits* x, Bits* y, i64 rows, int K) {
  const i64 row = row_of_warp();
  if (row >= rows) return;
  const int lane = int(threadIdx.x) & 31;
  const Bits* const from = x + row * K;
  const float r = inverse_length(from, K, lane);
#pragma unroll 1
  for (int c = lane; c < K; c += 32) y[row * K + c] = Element::encode(Element::decode(from[c]) * r);
}

extern "C" __global__ void __launch_bounds__(128)
    l2norm_backward(const Bits* x, const Bits* dy, Bits* dx, i64 rows, int K) {
  const i64 row = row_of_warp();
  if (row >= rows) return;
  const int lane = int(threadIdx.x) & 31;
  const Bits *const from = x + row * K, *const cotangent = dy + row * K;
  const float r = inverse_length(from, K, lane), along = product(from, cotangent, K, lane) * r;
#pragma unroll 1
  for (int c = lane; c < K; c += 32) {
    const float y = Element::decode(from[c]) * r;
    dx[row * K + c] = Element::encode((Element::decode(cotangent[c]) - y * along) * r);
  }
}
