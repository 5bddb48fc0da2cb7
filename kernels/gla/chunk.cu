// gla.chunk, forward: gated linear attention in chunks of 64 tokens on tensor cores, two launches:
// gla_chunk_state_C (states at chunk starts and the final state), C value channels per block, then
// gla_chunk_output, or gla_chunk_output_64 for K, V <= 64.
// Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (q, k, v, o) -DGATE=Bf16|Fp16|Fp32 (g).
//   q, k [token, H, K]; v, o [token, H, V]; g [token, H, K] log decays <= 0, or null: no decay
//   initial_state (or null), final_state [N, H, K, V] fp32
//   states: workspace [chunk][H][ceil(V/16)][ceil(K/16)] blocks of 16 x 16 operands (512 or 1024 bytes:
//           ../device/tile_layout.h)
//   sequences [N][3]: first token, tokens, first chunk; chunks [.][2]: first token, tokens
// Grids (x): N H ceil(K/64) ceil(V/C) and chunks H, 128 threads; C, shared memory: ../channel/chunk_layout.h.
// Any K and V of at least 1; `vector` != 0 promises that K and V are multiples of 8 and all pointers 16-byte
// aligned.
#include "../channel/chunk_kernels.cuh"
#include "../channel/chunk_output.cuh"

using Element = ELEMENT;
using Decay = GATE;

#define STATE_KERNEL(columns) CHUNK_STATE_KERNEL(gla, columns)
FOR_EACH_SCAN_WIDTH(STATE_KERNEL)

#define OUTPUT_KERNEL(suffix, blocks, one_block)                                                         \
  extern "C" __global__ void __launch_bounds__(128, blocks) gla_chunk_output##suffix(                    \
      const Element::Bits* q, const Element::Bits* k, const Element::Bits* v, const Decay::Bits* g,      \
      const char* states, Element::Bits* o, const i64* chunks, float scale, int heads, int key_channels, \
      int value_channels, int vector) {                                                                  \
    chunk_output<Element, Decay, Forward, Element, Element, one_block>(                                  \
        q, k, v, g, nullptr, states, o, chunks, scale,                                                   \
        Shape{heads, key_channels, value_channels, vector != 0});                                        \
  }
FOR_EACH_OUTPUT_SIZE(OUTPUT_KERNEL)
