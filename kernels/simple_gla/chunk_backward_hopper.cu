// simple_gla.chunk_hopper, backward, where gates are none or fixed: all gradients in one launch on GPUs of
// sm_90a (../scalar/chunk_hopper.cuh), with the bits of simple_gla.chunk and without states in memory; blocks
// of dv, dk and dq side by side. Built once per gate: -DELEMENT=Bf16 (q, k, v, do, dq, dk, dv)
// -DGATE=NoGate|HeadGate.
//   q, k, v, d_o: tensor maps of [token, H, K] and [token, H, V] as in chunk_hopper.cu, boxes of 64 channels
//   gates: HeadGate: [H], in units of log2; NoGate: null
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, H, K, V] fp32
//   dq, dk [token, H, K], dv [token, H, V]; sequences [N][3]: first token, tokens, (unused)
// Grid: (N H ceil(max(K, V)/64), 3), 512 threads. simple_gla_chunk_backward_hopper_C_64 serves K and V <= C,
// which are multiples of 8.
#include "../scalar/chunk_hopper.cuh"

using Gate = GATE;

#define HOPPER_KERNEL(capacity)                                                                            \
  extern "C" __global__ void __launch_bounds__(512, 1) simple_gla_chunk_backward_hopper_##capacity##_64(   \
      const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,                            \
      const __grid_constant__ TensorMap v, const __grid_constant__ TensorMap d_o, const Gate::Bits* gates, \
      const float* initial_state, const float* dfinal_state, float* dinitial_state, Bf16::Bits* dq,        \
      Bf16::Bits* dk, Bf16::Bits* dv, const i64* sequences, int count, float scale, int heads,             \
      int key_channels, int value_channels) {                                                              \
    const int K = key_channels, V = value_channels;                                                        \
    if (blockIdx.y == 0)                                                                                   \
      chunk_hopper<Gate, HopperResult::value_gradients, capacity / 64, 64>(                                \
          HopperTensors{&k, &q, &d_o, K, V, dv, dfinal_state, dinitial_state, V, 1}, gates, sequences,     \
          count, scale, heads);                                                                            \
    else if (blockIdx.y == 1)                                                                              \
      chunk_hopper<Gate, HopperResult::key_gradients, capacity / 64, 64>(                                  \
          HopperTensors{&v, &d_o, &q, V, K, dk, dfinal_state, nullptr, 1, V}, gates, sequences, count,     \
          scale, heads);                                                                                   \
    else                                                                                                   \
      chunk_hopper<Gate, HopperResult::query_gradients, capacity / 64, 64>(                                \
          HopperTensors{&d_o, &v, &k, V, K, dq, initial_state, nullptr, 1, V}, gates, sequences, count,    \
          scale, heads);                                                                                   \
  }

HOPPER_KERNEL(64)
HOPPER_KERNEL(128)
