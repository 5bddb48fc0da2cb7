// rwkv6.chunk, forward: gla.chunk (../gla/chunk.cu) read out before each token's own write, with a bonus for
// it. Two launches: rwkv6_chunk_state_C (states at chunk starts and the final state), then
// rwkv6_chunk_output, or rwkv6_chunk_output_64 for K, V <= 64. Built once per pair of formats:
// -DELEMENT=Bf16|Fp16|Fp32 (r, k, v, u, o) -DGATE=Bf16|Fp16|Fp32 (w).
//   r, k [token, H, K]; v, o [token, H, V]; w [token, H, K] log decays <= 0; u [H, K]
//   initial_state (or null), final_state [N, H, K, V] fp32; states, sequences, chunks, grids and
//   `vector` as in ../gla/chunk.cu
#include "../channel/chunk_kernels.cuh"
#include "../channel/chunk_output.cuh"

using Element = ELEMENT;
using Decay = GATE;

#define STATE_KERNEL(columns) CHUNK_STATE_KERNEL(rwkv6, columns)
FOR_EACH_SCAN_WIDTH(STATE_KERNEL)

#define OUTPUT_KERNEL(suffix, blocks, one_block)                                                           \
  extern "C" __global__ void __launch_bounds__(128, blocks) rwkv6_chunk_output##suffix(                    \
      const Element::Bits* r, const Element::Bits* k, const Element::Bits* v, const Decay::Bits* w,        \
      const Element::Bits* u, const char* states, Element::Bits* o, const i64* chunks, float scale,        \
      int heads, int key_channels, int value_channels, int vector) {                                       \
    chunk_output<Element, Decay, ExclusiveForward, Element, Element, one_block>(                           \
        r, k, v, w, u, states, o, chunks, scale, Shape{heads, key_channels, value_channels, vector != 0}); \
  }
FOR_EACH_OUTPUT_SIZE(OUTPUT_KERNEL)
