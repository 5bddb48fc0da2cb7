// gla.chunk, backward, in chunks of 64 tokens on tensor cores, three launches or four: gla_chunk_scans_C (S
// at chunk starts; D = dL/dS at chunk ends and dinitial_state, last chunk first; C value channels per block),
// both side by side or one after the other, gla_chunk_values (dv; gla_chunk_values_64 for K, V <= 64),
// gla_chunk_keys (dq, dk, dg). Built once per pair of formats:
// -DELEMENT=Bf16|Fp16|Fp32 (q, k, v, do, dq, dk, dv) -DGATE=Bf16|Fp16|Fp32 (g, dg).
//   q, k, g, dq, dk, dg [token, H, K]; v, do, dv [token, H, V]; g null: no decay (and then dg is null)
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, H, K, V] fp32
//   workspaces: states, adjoints [chunk][H][V][K] of bf16 (fp16, fp32: fp32), V and K padded to multiples of
//   16; adjoint_operands [chunk][H][ceil(V/16)][ceil(K/16)] blocks of 16 x 16, as `states` in chunk.cu
//   sequences [N][3]: first token, tokens, first chunk; chunks [.][2]: first token, tokens
// Grids: scans (N H ceil(K/64) ceil(V/C), 1 or 2), values chunks H, keys chunks H ceil(K/64); 128 threads,
// keys key_threads; C as there. `vector` != 0 promises that K and V are multiples of 8, all pointers aligned.
#include "../channel/chunk_kernels.cuh"
#include "../channel/chunk_keys.cuh"
#include "../channel/chunk_output.cuh"

using Element = ELEMENT;
using Decay = GATE;
using Kept = StateOf<Element>::Type;

#define SCAN_KERNEL(columns) CHUNK_SCAN_KERNEL(gla, Backward, columns)
FOR_EACH_SCAN_WIDTH(SCAN_KERNEL)

#define VALUES_KERNEL(suffix, blocks, one_block)                                                      \
  extern "C" __global__ void __launch_bounds__(128, blocks) gla_chunk_values##suffix(                 \
      const Element::Bits* q, const Element::Bits* k, const Element::Bits* d_o, const Decay::Bits* g, \
      const char* adjoint_operands, Element::Bits* dv, const i64* chunks, float scale, int heads,     \
      int key_channels, int value_channels, int vector) {                                             \
    chunk_output<Element, Decay, Backward, Element, Element, one_block>(                              \
        k, q, d_o, g, nullptr, adjoint_operands, dv, chunks, scale,                                   \
        Shape{heads, key_channels, value_channels, vector != 0});                                     \
  }
FOR_EACH_OUTPUT_SIZE(VALUES_KERNEL)

extern "C" __global__ void __launch_bounds__(key_threads<Element, Forward>, 2)
    gla_chunk_keys(const Element::Bits* q, const Element::Bits* k, const Element::Bits* v,
                   const Decay::Bits* g, const Element::Bits* d_o, const Kept::Bits* states,
                   const Kept::Bits* adjoints, Element::Bits* dq, Element::Bits* dk, Decay::Bits* dg,
                   const i64* chunks, float scale, int heads, int key_channels, int value_channels,
                   int vector) {
  chunk_keys<Element, Decay, Forward>(
      q, k, v, g, nullptr, d_o, states, adjoints,
      GradientTensors<Element, Decay, key_threads<Element, Forward>>{dq, dk, dg}, nullptr, chunks, scale,
      Shape{heads, key_channels, value_channels, vector != 0});
}
