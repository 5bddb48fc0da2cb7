// simple_gla.chunk_hopper, backward, where gates are none or fixed: all gradients in one launch on GPUs of
// sm_90a (../scalar/chunk_hopper.cuh), without states in memory; blocks of dv, dk and dq side by side. Built
// once per gate: -DELEMENT=Bf16 (q, k, v, do, dq, dk, dv) -DGATE=NoGate|HeadGate.
//   q, k, v, d_o: tensor maps of [token, H, K] and [token, H, V] as in chunk_hopper.cu, boxes of 64 channels;
//   q_values, k_values, do_values: the same tensors in boxes of `columns` channels, swizzled as v is there
//   gates: HeadGate: [H], in units of log2; NoGate: null
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, H, K, V] fp32
//   dq, dk [token, H, K], dv [token, H, V]; sequences [N][3]: first token, tokens, (unused)
// Grid: (N H ceil(max(K, V)/columns), 3), 512 threads. simple_gla_chunk_backward_hopper_C_columns serves K
// and V <= C, which are multiples of 8.
#include "../scalar/chunk_hopper.cuh"

using Gate = GATE;

template <int capacity, int columns>
__device__ __forceinline__ void gradients(const TensorMap& q, const TensorMap& k, const TensorMap& v,
                                          const TensorMap& d_o, const TensorMap& q_values,
                                          const TensorMap& k_values, const TensorMap& do_values,
                                          const Gate::Bits* gates, const float* initial_state,
                                          const float* dfinal_state, float* dinitial_state, Bf16::Bits* dq,
                                          Bf16::Bits* dk, Bf16::Bits* dv, const i64* sequences, int count,
                                          float scale, int heads, int K, int V) {
  if (blockIdx.y < 2) {
    const HopperTensors of_values{&k, &q, &do_values, K, V, dv, dfinal_state, dinitial_state, V, 1},
        of_keys{&v, &d_o, &q_values, V, K, dk, dfinal_state, nullptr, 1, V};
    const HopperTensors tensors = blockIdx.y == 0 ? of_values : of_keys;
    chunk_hopper<Gate, HopperResult::key_gradients, capacity / 64, columns>(tensors, gates, sequences, count,
                                                                            scale, heads);
  } else {
    const HopperTensors tensors{&d_o, &v, &k_values, V, K, dq, initial_state, nullptr, 1, V};
    chunk_hopper<Gate, HopperResult::query_gradients, capacity / 64, columns>(tensors, gates, sequences,
                                                                              count, scale, heads);
  }
}

#define HOPPER_KERNEL(capacity, columns)                                                                    \
  extern "C" __global__ void __launch_bounds__(512, 1)                                                      \
      simple_gla_chunk_backward_hopper_##capacity##_##columns(                                              \
          const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,                         \
          const __grid_constant__ TensorMap v, const __grid_constant__ TensorMap d_o,                       \
          const __grid_constant__ TensorMap q_values, const __grid_constant__ TensorMap k_values,           \
          const __grid_constant__ TensorMap do_values, const Gate::Bits* gates, const float* initial_state, \
          const float* dfinal_state, float* dinitial_state, Bf16::Bits* dq, Bf16::Bits* dk, Bf16::Bits* dv, \
          const i64* sequences, int count, float scale, int heads, int key_channels, int value_channels) {  \
    gradients<capacity, columns>(q, k, v, d_o, q_values, k_values, do_values, gates, initial_state,         \
                                 dfinal_state, dinitial_state, dq, dk, dv, sequences, count, scale, heads,  \
                                 key_channels, value_channels);                                             \
  }

HOPPER_KERNEL(64, 32)
HOPPER_KERNEL(64, 64)
HOPPER_KERNEL(128, 32)
HOPPER_KERNEL(128, 64)
