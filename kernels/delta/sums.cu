// Sums of what scans leave in fp32, rounded once to the output's format, -DELEMENT=Bf16|Fp16|Fp32; always in
// the same order.
//   delta_sum_channels  y[row] = sum_c x[row, c]: a warp per row, grid ceil(rows / 4)
//   delta_sum_group     y[row, c] = sum_i x[row, i, c], i < count: one head's value heads, a thread per
//                       number, grid ceil(rows channels / 128)
#include "../device/operand.cuh"
#include "../device/tile_layout.h"

using Element = ELEMENT;

extern "C" __global__ void __launch_bounds__(128)
    delta_sum_channels(const float* x, Element::Bits* y, i64 rows, int channels) {
  const i64 row = i64(blockIdx.x) * 4 + (int(threadIdx.x) >> 5);
  const int lane = int(threadIdx.x) & 31;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int c = lane; c < channels; c += 32) sum = sum + x[row * channels + c];
#pragma unroll
  for (int mask = 16; mask >= 1; mask /= 2) sum = sum + __shfl_xor_sync(0xffffffffu, sum, mask);
  if (lane == 0) y[row] = Element::encode(sum);
}

extern "C" __global__ void __launch_bounds__(128)
    delta_sum_group(const float* x, Element::Bits* y, i64 rows, int count, int channels) {
  const i64 at = i64(blockIdx.x) * 128 + int(threadIdx.x);
  if (at >= rows * channels) return;
  const i64 row = at / channels, channel = at % channels;
  // From both ends in pairs: the same bits where a group's heads stand in reverse.
  float sum = 0.0f;
  const float* const from = x + row * count * channels + channel;
  for (int i = 0; 2 * i < count - 1; ++i)
    sum = sum + (from[i64(i) * channels] + from[i64(count - 1 - i) * channels]);
  if (count & 1) sum = sum + from[i64(count / 2) * channels];
  y[at] = Element::encode(sum);
}

// y[row] = sum_c x[row, c] z[row, c], numbers as scans keep them; otherwise as delta_sum_channels.
using Kept = StateOf<Element>::Type;

extern "C" __global__ void __launch_bounds__(128)
    delta_sum_products(const Kept::Bits* x, const Kept::Bits* z, Element::Bits* y, i64 rows, int channels) {
  const i64 row = i64(blockIdx.x) * 4 + (int(threadIdx.x) >> 5);
  const int lane = int(threadIdx.x) & 31;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int c = lane; c < channels; c += 32)
    sum = fused(Kept::decode(x[row * channels + c]), Kept::decode(z[row * channels + c]), sum);
#pragma unroll
  for (int mask = 16; mask >= 1; mask /= 2) sum = sum + __shfl_xor_sync(0xffffffffu, sum, mask);
  if (lane == 0) y[row] = Element::encode(sum);
}
