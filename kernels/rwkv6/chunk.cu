// rwkv6.chunk, forward: gla.chunk (../gla/chunk.cu) read out before each token's own write, with a bonus for
// it. Two launches: rwkv6_chunk_state_V (states at chunk starts and the final state), then
// rwkv6_chunk_output. Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (r, k, v, u, o)
// -DGATE=Bf16|Fp16|Fp32 (w).
//   r, k [token, H, K]; v, o [token, H, V]; w [token, H, K] log decays <= 0; u [H, K]
//   initial_state (or null), final_state [N, H, K, V] fp32; states, sequences, chunks, WIDTHS, grids and
//   `vector` as in ../gla/chunk.cu
#include "../channel/chunk_output.cuh"

using Element = ELEMENT;
using Decay = GATE;

#define STATE_KERNEL(columns)                                                                               \
  extern "C" __global__ void __launch_bounds__(128) rwkv6_chunk_state_##columns(                            \
      const Element::Bits* k, const Element::Bits* v, const Decay::Bits* w, const float* initial_state,     \
      float* final_state, char* states, const i64* sequences, int heads, int key_channels,                  \
      int value_channels, int vector) {                                                                     \
    chunk_state<Element, Decay, columns, Forward>(k, v, w, initial_state, final_state,                      \
                                                  OperandStates<Element>{states}, sequences, 1.0f,          \
                                                  Shape{heads, key_channels, value_channels, vector != 0}); \
  }
#define OUTPUT_KERNEL(blocks)                                                                                \
  extern "C" __global__ void __launch_bounds__(128, blocks) rwkv6_chunk_output(                              \
      const Element::Bits* r, const Element::Bits* k, const Element::Bits* v, const Decay::Bits* w,          \
      const Element::Bits* u, const char* states, Element::Bits* o, const i64* chunks, float scale,          \
      int heads, int key_channels, int value_channels, int vector) {                                         \
    chunk_output<Element, Decay, ExclusiveForward>(r, k, v, w, u, states, o, chunks, scale,                  \
                                                   Shape{heads, key_channels, value_channels, vector != 0}); \
  }

#if WIDTHS & 1
STATE_KERNEL(32)
#endif
#if WIDTHS & 2
STATE_KERNEL(64)
#endif
OUTPUT_KERNEL(3)  // blocks per multiprocessor that there are registers for: with more the compiler spills
