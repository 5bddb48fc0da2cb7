// gla.chunk, forward: gated linear attention in chunks of 64 tokens on tensor cores, two launches:
// gla_chunk_state_V (states at chunk starts and the final state), then gla_chunk_output_V, V value channels
// per block. Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (q, k, v, o) -DGATE=Bf16|Fp16|Fp32 (g).
//   q, k [token, H, K]; v, o [token, H, V]; g [token, H, K] log decays <= 0, or null: no decay
//   initial_state (or null), final_state [N, H, K, V] fp32
//   states: workspace [chunk][H][ceil(V/16)][ceil(K/16)] blocks of 16 x 16 operands (bf16: 512 bytes, else
//   1024) sequences [N][3]: first token, tokens, first chunk; chunks [.][2]: first token, tokens
// -DWIDTHS: which value channels per block there are: 1 states by 32, 2 states by 64, 4 outputs by 128 (64
// always). Grids (x): N H ceil(K/64) ceil(V/columns), chunks H ceil(V/columns); 128 threads. Any K and V of
// at least 1; `vector` != 0 promises that K and V are multiples of 8 and all pointers 16-byte aligned.
#include "../channel/chunk_output.cuh"

using Element = ELEMENT;
using Decay = GATE;

#define STATE_KERNEL(columns)                                                                               \
  extern "C" __global__ void __launch_bounds__(128) gla_chunk_state_##columns(                              \
      const Element::Bits* k, const Element::Bits* v, const Decay::Bits* g, const float* initial_state,     \
      float* final_state, char* states, const i64* sequences, int heads, int key_channels,                  \
      int value_channels, int vector) {                                                                     \
    chunk_state<Element, Decay, columns, Forward>(k, v, g, initial_state, final_state,                      \
                                                  OperandStates<Element>{states}, sequences, 1.0f,          \
                                                  Shape{heads, key_channels, value_channels, vector != 0}); \
  }
#define OUTPUT_KERNEL(blocks)                                                                         \
  extern "C" __global__ void __launch_bounds__(128, blocks)                                           \
      gla_chunk_output(const Element::Bits* q, const Element::Bits* k, const Element::Bits* v,        \
                       const Decay::Bits* g, const char* states, Element::Bits* o, const i64* chunks, \
                       float scale, int heads, int key_channels, int value_channels, int vector) {    \
    chunk_output<Element, Decay, Forward>(q, k, v, g, nullptr, states, o, chunks, scale,              \
                                          Shape{heads, key_channels, value_channels, vector != 0});   \
  }

#if WIDTHS & 1
STATE_KERNEL(32)
#endif
#if WIDTHS & 2
STATE_KERNEL(64)
#endif
OUTPUT_KERNEL(3)  // blocks per multiprocessor that there are registers for: with more the compiler spills
