// What normalised linear attention adds to linear attention, n_t = scale S_t^T q_t, computed by its kernels
// in fp32: the other state z_t = z_{t-1} + k_t, the normaliser d_t = scale q_t . z_t + eps, o_t = n_t / d_t,
// and their gradients,
//   dn_t = scale do_t / d_t      dd_t = -scale (do_t . o_t) / d_t      Z_t = Z_{t+1} + dd_t q_t
//   dq_t = S_t dn_t + dd_t z_t      dk_t = G_t v_t + Z_t
// S_t dn_t and G_t v_t being linear attention's gradients for dn. Sums over tokens go by chunks of 64: sums
// of the chunks, one after the other a sum over the chunks, then the tokens of each chunk. All in fp32. Built
// once per format: -DELEMENT=Bf16|Fp16|Fp32 (q, k, v, do, o and their gradients).
//   [token, H, K]: q, k, dq, dk, plain_dq, plain_dk; [token, H, V]: do, o, n, dn; [token, H]: d, dd
//   n, dn, d, dd, plain_dq, plain_dk, and sums [chunk][H][K], are fp32
//   z0, dzt (or null: zero), zt, dz0 (or null: not asked for) [N, H, K] fp32
//   sequences [N][3]: first token, tokens, first chunk; chunks [.][2]: first token, tokens
// Grids (x), 256 threads: *_sums, normalisers, *_gradients: chunks H; *_starts: N H; elementwise (widen,
// narrow, divide): 1024 elements per block; cotangents: 8 rows per block. K is at most 256: a thread per
// channel.
#include "../device/format.cuh"
#include "normalise_layout.h"

using Element = ELEMENT;

constexpr float eps = 0x1.b7cdfep-34f;  // 1e-10, rounded: relative error below 2^-25

// One chunk and head; x(t): offset of the thread's channel in [token, H, K].
struct ChunkPlace {
  i64 first;
  int rows, head, heads, K, channel;
  i64 sums;  // of this chunk and head

  __device__ ChunkPlace(const i64* chunks, int heads, int K)
      : head(int(blockIdx.x) % heads), heads(heads), K(K), channel(int(threadIdx.x)) {
    const i64 chunk = int(blockIdx.x) / heads;
    first = chunks[2 * chunk], rows = int(chunks[2 * chunk + 1]);
    sums = (chunk * heads + head) * K;
  }
  __device__ i64 row(int t) const { return (first + t) * heads + head; }
  __device__ i64 at(int t) const { return row(t) * K + channel; }
};

extern "C" __global__ void __launch_bounds__(256)
    linear_attn_norm_key_sums(const Element::Bits* k, float* sums, const i64* chunks, int heads, int K) {
  const ChunkPlace x(chunks, heads, K);
  if (x.channel >= K) return;
  float sum = 0.0f;
#pragma unroll 8
  for (int t = 0; t < x.rows; ++t) sum = sum + Element::decode(k[x.at(t)]);
  sums[x.sums + x.channel] = sum;
}
extern "C" __global__ void __launch_bounds__(256)
    linear_attn_norm_query_sums(const Element::Bits* q, const float* dd, float* sums, const i64* chunks,
                                int heads, int K) {
  const ChunkPlace x(chunks, heads, K);
  if (x.channel >= K) return;
  float sum = 0.0f;
#pragma unroll 8
  for (int t = x.rows - 1; t >= 0; --t) sum = fused(dd[x.row(t)], Element::decode(q[x.at(t)]), sum);
  sums[x.sums + x.channel] = sum;
}

// Sums of chunks become the sum before each of them; `last` gets the whole. Backward: from the last one on.
__device__ __forceinline__ void starts(float* sums, const float* initial, float* last, const i64* sequences,
                                       int heads, int K, bool backward) {
  const int channel = int(threadIdx.x), head = int(blockIdx.x) % heads, sequence = int(blockIdx.x) / heads;
  if (channel >= K) return;
  const i64 count = (sequences[3 * sequence + 1] + 63) / 64, slot = sequences[3 * sequence + 2];
  const i64 state = (i64(sequence) * heads + head) * K + channel;
  float z = initial != nullptr ? initial[state] : 0.0f;
#pragma unroll 4
  for (i64 i = 0; i < count; ++i) {
    float& sum = sums[((slot + (backward ? count - 1 - i : i)) * heads + head) * K + channel];
    const float of_chunk = sum;
    sum = z;
    z = z + of_chunk;
  }
  if (last != nullptr) last[state] = z;
}
extern "C" __global__ void __launch_bounds__(256)
    linear_attn_norm_key_starts(float* sums, const float* z0, float* zt, const i64* sequences, int heads,
                                int K) {
  starts(sums, z0, zt, sequences, heads, K, false);
}
extern "C" __global__ void __launch_bounds__(256)
    linear_attn_norm_query_starts(float* sums, const float* dzt, float* dz0, const i64* sequences, int heads,
                                  int K) {
  starts(sums, dzt, dz0, sequences, heads, K, true);
}

// d_t: products of a channel go to shared memory, eight tokens at a time; then a warp adds those of a token.
extern "C" __global__ void __launch_bounds__(256)
    linear_attn_norm_normalisers(const Element::Bits* q, const Element::Bits* k, const float* starts,
                                 float* d, const i64* chunks, float scale, int heads, int K) {
  __shared__ float products[8][256];
  const ChunkPlace x(chunks, heads, K);
  const int lane = x.channel & 31, warp = x.channel >> 5, warps = int(blockDim.x) >> 5;
  const bool live = x.channel < K;
  const float start = live ? starts[x.sums + x.channel] : 0.0f;
  float sum = 0.0f;
#pragma unroll 1
  for (int begin = 0; begin < x.rows; begin += 8) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const bool there = live && begin + i < x.rows;
      const i64 at = there ? x.at(begin + i) : 0;
      sum = sum + (there ? Element::decode(k[at]) : 0.0f);
      products[i][x.channel] = there ? Element::decode(q[at]) * (start + sum) : 0.0f;
    }
    __syncthreads();
#pragma unroll 1
    for (int i = warp; i < 8 && begin + i < x.rows; i += warps) {
      float total = 0.0f;
#pragma unroll 1
      for (int channel = lane; channel < int(blockDim.x); channel += 32) total = total + products[i][channel];
#pragma unroll
      for (int mask = 16; mask >= 1; mask /= 2) total = total + __shfl_xor_sync(0xffffffffu, total, mask);
      if (lane == 0) d[x.row(begin + i)] = fused(total, scale, eps);
    }
    __syncthreads();
  }
}

// z_t again for dq, Z_t for dk.
extern "C" __global__ void __launch_bounds__(256)
    linear_attn_norm_query_gradients(const Element::Bits* k, const float* starts, const float* dd,
                                     const float* plain_dq, Element::Bits* dq, const i64* chunks, int heads,
                                     int K) {
  const ChunkPlace x(chunks, heads, K);
  if (x.channel >= K) return;
  const float start = starts[x.sums + x.channel];
  float sum = 0.0f;
#pragma unroll 8
  for (int t = 0; t < x.rows; ++t) {
    sum = sum + Element::decode(k[x.at(t)]);
    dq[x.at(t)] = Element::encode(fused(dd[x.row(t)], start + sum, plain_dq[x.at(t)]));
  }
}
extern "C" __global__ void __launch_bounds__(256)
    linear_attn_norm_key_gradients(const Element::Bits* q, const float* ends, const float* dd,
                                   const float* plain_dk, Element::Bits* dk, const i64* chunks, int heads,
                                   int K) {
  const ChunkPlace x(chunks, heads, K);
  if (x.channel >= K) return;
  const float end = ends[x.sums + x.channel];
  float sum = 0.0f;
#pragma unroll 8
  for (int t = x.rows - 1; t >= 0; --t) {
    sum = fused(dd[x.row(t)], Element::decode(q[x.at(t)]), sum);
    dk[x.at(t)] = Element::encode(plain_dk[x.at(t)] + (end + sum));
  }
}

// dn and dd of a row of V channels, a warp each.
extern "C" __global__ void __launch_bounds__(256)
    linear_attn_norm_cotangents(const Element::Bits* d_o, const float* n, const float* d, float* dn,
                                float* dd, i64 rows, float scale, int V) {
  const i64 row = i64(blockIdx.x) * assay::linear_attn_norm::rows_per_block + (threadIdx.x >> 5);
  const int lane = int(threadIdx.x) & 31;
  if (row >= rows) return;
  const float norm = d[row];
  float dot = 0.0f;
#pragma unroll 1
  for (int value = lane; value < V; value += 32) {
    const i64 at = row * V + value;
    const float cotangent = Element::decode(d_o[at]);
    dot = fused(cotangent, n[at] / norm, dot);
    dn[at] = cotangent / norm * scale;
  }
#pragma unroll
  for (int mask = 16; mask >= 1; mask /= 2) dot = dot + __shfl_xor_sync(0xffffffffu, dot, mask);
  if (lane == 0) dd[row] = -(dot / norm * scale);
}

// Element by element.
template <class Visit>
__device__ __forceinline__ void for_each_element(i64 count, Visit visit) {
#pragma unroll
  for (int i = 0; i < assay::linear_attn_norm::elements_per_thread; ++i) {
    const i64 at = i64(blockIdx.x) * assay::linear_attn_norm::elements_per_block +
                   assay::linear_attn_norm::threads * i + int(threadIdx.x);
    if (at < count) visit(at);
  }
}
extern "C" __global__ void __launch_bounds__(256)
    linear_attn_norm_divide(const float* n, const float* d, Element::Bits* o, i64 count, int V) {
  for_each_element(count, [&](i64 at) { o[at] = Element::encode(n[at] / d[at / V]); });
}
extern "C" __global__ void __launch_bounds__(256)
    linear_attn_norm_widen(const Element::Bits* x, float* y, i64 count) {
  for_each_element(count, [&](i64 at) { y[at] = Element::decode(x[at]); });
}
extern "C" __global__ void __launch_bounds__(256)
    linear_attn_norm_narrow(const float* x, Element::Bits* y, i64 count) {
  for_each_element(count, [&](i64 at) { y[at] = Element::encode(x[at]); });
}
