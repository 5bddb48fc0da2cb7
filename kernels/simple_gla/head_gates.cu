// One log decay per head: what its kernels are given and what becomes of their tokens' gradients.
//   simple_gla_head_gates: gamma [H] in units of log2 from log decays g_gamma [H] of any format
//   simple_gla_sum_gates: dg_gamma [H], each the sum over all tokens of gate_gradients [token, H] fp32
// One function per format of g_gamma. Grids (x): ceil(H/128); H. 128 threads.
#include "../device/gate.cuh"
#include "../device/tile_layout.h"

constexpr int threads = assay::device::block_threads;

template <class Gate>
__device__ __forceinline__ void head_gates(const typename Gate::Bits* g_gamma, float* gamma, int heads) {
  const int head = int(blockIdx.x) * threads + int(threadIdx.x);
  if (head < heads) gamma[head] = Gate::decode(g_gamma[head]);
}

// Each thread adds every 128th token, then halves are added to halves.
template <class Gate>
__device__ __forceinline__ void sum_gates(const float* gate_gradients, typename Gate::Bits* dg_gamma,
                                          i64 tokens, int heads) {
  __shared__ float of_warps[4];
  const int head = int(blockIdx.x);
  float sum = 0.0f;
  for (i64 token = int(threadIdx.x); token < tokens; token += threads)
    sum = sum + gate_gradients[token * heads + head];
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2) sum = sum + __shfl_xor_sync(0xffffffffu, sum, mask);
  if ((threadIdx.x & 31) == 0) of_warps[threadIdx.x >> 5] = sum;
  __syncthreads();
  if (threadIdx.x == 0)
    dg_gamma[head] = Gate::encode((of_warps[0] + of_warps[1]) + (of_warps[2] + of_warps[3]));
}

#define HEAD_GATE_KERNELS(name, Format)                                                    \
  extern "C" __global__ void __launch_bounds__(128)                                        \
      simple_gla_head_gates_##name(const Format::Bits* g_gamma, float* gamma, int heads) { \
    head_gates<TokenGate<Format>>(g_gamma, gamma, heads);                                  \
  }                                                                                        \
  extern "C" __global__ void __launch_bounds__(128) simple_gla_sum_gates_##name(           \
      const float* gate_gradients, Format::Bits* dg_gamma, i64 tokens, int heads) {        \
    sum_gates<TokenGate<Format>>(gate_gradients, dg_gamma, tokens, heads);                 \
  }

HEAD_GATE_KERNELS(bf16, Bf16)
HEAD_GATE_KERNELS(fp16, Fp16)
HEAD_GATE_KERNELS(fp32, Fp32)
