// gla.fused_recurrent, forward: S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T, o_t = scale S_t^T q_t, one token
// after the other, the state in registers, fp32 throughout. Built once per pair of formats:
// -DELEMENT=Bf16|Fp16|Fp32 (q, k, v, o) -DGATE=Bf16|Fp16|Fp32 (g).
//   q, k [token, H, K]; v, o [token, H, V]; g [token, H, K] log decays <= 0, or null: no decay
//   initial_state (or null), final_state [N, H, K, V] fp32; sequences [N][3]: first token, tokens, (unused)
// Grid (x): N H ceil(V/32), 128 threads. gla_fused_recurrent_C serves K <= C.
#include "decay.cuh"
#include "format.cuh"

// e^g from g in log2 units. Weak decays as 1 + (e^g - 1): one rounding of a number below 1 (2^-25), the rest
// of the error is proportional to |g|; strong ones by ex2, whose 2^-22 is at most 12 u per nat there.
__device__ __forceinline__ float decay_factor(float y) {
  const bool weak = y > -0.5f;
  const float near = 1.0f + power_of_two_minus_one(weak ? y : 0.0f), far = power_of_two(y);
  return weak ? near : far;
}

__device__ __forceinline__ float component(const float4& x, int i) {
  return i == 0 ? x.x : i == 1 ? x.y : i == 2 ? x.z : x.w;
}

// A lane holds key channels 4 (lane%4 + 4 i) + {0..3} of one value channel; a warp has 8 value channels.
template <class Format, class Gate, int channels>
__device__ __forceinline__ void fused_recurrent(const typename Format::Bits* q,
                                                const typename Format::Bits* k,
                                                const typename Format::Bits* v, const typename Gate::Bits* g,
                                                const float* initial_state, typename Format::Bits* o,
                                                float* final_state, const i64* sequences, float scale,
                                                int heads, int K, int V) {
  constexpr int steps = channels > 64 ? 8 : 16, quads = channels / 16;
  __shared__ float4 queries[steps][channels / 4], keys[steps][channels / 4], decays[steps][channels / 4];
  __shared__ float values[steps][32];

  const int lane = int(threadIdx.x) & 31, part = lane & 3, column = int(threadIdx.x) >> 2;
  const int value_blocks = (V + 31) / 32;
  int block = int(blockIdx.x);
  const int value_begin = block % value_blocks * 32, value = value_begin + column;
  block /= value_blocks;
  const int head = block % heads, sequence = block / heads;
  const i64 first = sequences[3 * sequence], tokens = sequences[3 * sequence + 1];
  const i64 state_base = (i64(sequence) * heads + head) * K;

  float S[quads][4];
#pragma unroll
  for (int i = 0; i < quads * 4; ++i) {
    const int key = 4 * (part + 4 * (i >> 2)) + (i & 3);
    const bool live = initial_state != nullptr && key < K && value < V;
    S[i >> 2][i & 3] = live ? initial_state[(state_base + key) * V + value] : 0.0f;
  }

  for (i64 begin = 0; begin < tokens; begin += steps) {
    const int count = int(min(i64(steps), tokens - begin));
#pragma unroll 1
    for (int i = int(threadIdx.x); i < count * channels; i += 128) {
      const int step = i / channels, key = i % channels;
      const bool live = key < K;
      const i64 at = ((first + begin + step) * heads + head) * K + key;
      reinterpret_cast<float*>(queries)[i] = live ? Format::decode(q[at]) : 0.0f;
      reinterpret_cast<float*>(keys)[i] = live ? Format::decode(k[at]) : 0.0f;
      const float y = live && g != nullptr ? Gate::decode(g[at]) * log2_e : 0.0f;
      reinterpret_cast<float*>(decays)[i] = decay_factor(y);
    }
#pragma unroll 1
    for (int i = int(threadIdx.x); i < count * 32; i += 128) {
      const int step = i / 32, at_value = value_begin + i % 32;
      const i64 at = ((first + begin + step) * heads + head) * V + at_value;
      values[step][i % 32] = at_value < V ? Format::decode(v[at]) : 0.0f;
    }
    __syncthreads();
#pragma unroll 1
    for (int step = 0; step < count; ++step) {
      float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      const float v_t = values[step][column];
#pragma unroll
      for (int i = 0; i < quads; ++i) {
        const float4 q_t = queries[step][part + 4 * i], k_t = keys[step][part + 4 * i];
        const float4 e_t = decays[step][part + 4 * i];
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          S[i][c] = fused(component(e_t, c), S[i][c], component(k_t, c) * v_t);
          sum[c] = fused(component(q_t, c), S[i][c], sum[c]);
        }
      }
      float result = (sum[0] + sum[1]) + (sum[2] + sum[3]);
      result = result + __shfl_xor_sync(0xffffffffu, result, 1);
      result = result + __shfl_xor_sync(0xffffffffu, result, 2);
      if (part == 0 && value < V)
        o[((first + begin + step) * heads + head) * V + value] = Format::encode(result * scale);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < quads * 4; ++i) {
    const int key = 4 * (part + 4 * (i >> 2)) + (i & 3);
    if (key < K && value < V) final_state[(state_base + key) * V + value] = S[i >> 2][i & 3];
  }
}

using Element = ELEMENT;
using Decay = GATE;

#define RECURRENT_KERNEL(channels)                                                                         \
  extern "C" __global__ void __launch_bounds__(128) gla_fused_recurrent_##channels(                        \
      const Element::Bits* q, const Element::Bits* k, const Element::Bits* v, const Decay::Bits* g,        \
      const float* initial_state, Element::Bits* o, float* final_state, const i64* sequences, float scale, \
      int heads, int key_channels, int value_channels) {                                                   \
    fused_recurrent<Element, Decay, channels>(q, k, v, g, initial_state, o, final_state, sequences, scale, \
                                              heads, key_channels, value_channels);                        \
  }

RECURRENT_KERNEL(16)
RECURRENT_KERNEL(64)
RECURRENT_KERNEL(256)
