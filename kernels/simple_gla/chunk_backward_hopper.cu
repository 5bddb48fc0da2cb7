// simple_gla.chunk_hopper, backward: dq, dk and dv in one launch on GPUs of sm_90a
// (../scalar/chunk_hopper.cuh), with the bits of simple_gla.chunk and without states in memory; blocks of dv,
// dk and dq side by side. Learned gates' gradient is made of what it leaves, by chunk_gates.cu. Built once
// per gate: -DELEMENT=Bf16 (q, k, v, do, dq, dk, dv)
// -DGATE=NoGate|FixedHeadGate|HeadGate|TokenGate<Bf16|Fp16|Fp32>.
//   q, k, v, d_o: tensor maps of [token, H, K] and [token, H, V] as in chunk_hopper.cu, boxes of 64 channels
//   gates: TokenGate: g [token, H] log decays <= 0; others of heads: [H], in units of log2; NoGate: null
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, H, K, V] fp32
//   dq, dk [token, H, K], dv [token, H, V]; sequences [N][3]: first token, tokens, first chunk
//   of learned gates only: q_rows, k_rows: q and k; states, adjoints, query_dots, key_dots and tokens as in
//   chunk_gates.cu
// Grid: (N H ceil(max(K, V)/64), 3), 512 threads. simple_gla_chunk_backward_hopper_C_64 serves K and V <= C,
// which are multiples of 8.
#include "../scalar/chunk_hopper.cuh"

using Gate = GATE;

#define HOPPER_KERNEL(capacity)                                                                            \
  extern "C" __global__ void __launch_bounds__(512, 1) simple_gla_chunk_backward_hopper_##capacity##_64(   \
      const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,                            \
      const __grid_constant__ TensorMap v, const __grid_constant__ TensorMap d_o, const Gate::Bits* gates, \
      const float* initial_state, const float* dfinal_state, float* dinitial_state, Bf16::Bits* dq,        \
      Bf16::Bits* dk, Bf16::Bits* dv, const Bf16::Bits* q_rows, const Bf16::Bits* k_rows, uint4* states,   \
      uint4* adjoints, float* query_dots, float* key_dots, i64 tokens, const i64* sequences, int count,    \
      float scale, int heads, int key_channels, int value_channels) {                                      \
    const int K = key_channels, V = value_channels;                                                        \
    if (blockIdx.y == 0)                                                                                   \
      chunk_hopper<Gate, HopperResult::value_gradients, capacity / 64, 64>(                                \
          HopperTensors{&k, &q, &d_o, K, V, dv, dfinal_state, dinitial_state, V, 1, {}}, gates, sequences, \
          count, scale, heads);                                                                            \
    else if (blockIdx.y == 1)                                                                              \
      chunk_hopper<Gate, HopperResult::key_gradients, capacity / 64, 64>(                                  \
          HopperTensors{                                                                                   \
              &v, &d_o, &q, V, K, dk, dfinal_state, nullptr, 1, V, {adjoints, k_rows, key_dots, tokens}},  \
          gates, sequences, count, scale, heads);                                                          \
    else                                                                                                   \
      chunk_hopper<Gate, HopperResult::query_gradients, capacity / 64, 64>(                                \
          HopperTensors{                                                                                   \
              &d_o, &v, &k, V, K, dq, initial_state, nullptr, 1, V, {states, q_rows, query_dots, tokens}}, \
          gates, sequences, count, scale, heads);                                                          \
  }

HOPPER_KERNEL(64)
HOPPER_KERNEL(128)
