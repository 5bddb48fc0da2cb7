// simple_gla.chunk_hopper, forward: as simple_gla.chunk (chunk.cu), with the same bits, in one launch on GPUs
// of sm_90a (../scalar/chunk_hopper.cuh). Built once per gate: -DELEMENT=Bf16 (q, k, v, o)
// -DGATE=NoGate|HeadGate|TokenGate<Bf16|Fp16|Fp32>.
//   q, k, v: tensor maps of [token, H, K] and [token, H, V], axes {channel, head, token}, of boxes of 64
//   tokens of one head and 64 channels (v: `columns`), swizzled by 128 bytes (v of 32 columns: 64)
//   gates: TokenGate: g [token, H] log decays <= 0; HeadGate: [H], in units of log2; NoGate: null
//   initial_state (or null), final_state [N, H, K, V] fp32; o [token, H, V]
//   sequences [N][3]: first token, tokens, (unused)
// Grid (x): N H ceil(V/columns), 512 threads. simple_gla_chunk_hopper_C_columns serves K <= C. K and V are
// multiples of 8.
#include "../scalar/chunk_hopper.cuh"

using Gate = GATE;

#define HOPPER_KERNEL(capacity, columns)                                                                 \
  extern "C" __global__ void __launch_bounds__(512, 1) simple_gla_chunk_hopper_##capacity##_##columns(   \
      const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,                          \
      const __grid_constant__ TensorMap v, const Gate::Bits* gates, const float* initial_state,          \
      Bf16::Bits* o, float* final_state, const i64* sequences, int count, float scale, int heads,        \
      int key_channels, int value_channels) {                                                            \
    const HopperTensors tensors{                                                                         \
        &q, &k, &v, key_channels, value_channels, o, initial_state, final_state, value_channels, 1, {}}; \
    chunk_hopper<Gate, HopperResult::outputs, capacity / 64, columns>(tensors, gates, sequences, count,  \
                                                                      scale, heads);                     \
  }

HOPPER_KERNEL(64, 32)
HOPPER_KERNEL(64, 64)
HOPPER_KERNEL(128, 32)
HOPPER_KERNEL(128, 64)
