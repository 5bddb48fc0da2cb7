// rwkv6.chunk, backward: the launches of gla.chunk (../gla/chunk_backward.cu) with an exclusive readout, then
// the sum of du over chunks: rwkv6_chunk_scans_C, rwkv6_chunk_values, rwkv6_chunk_keys, rwkv6_bonus_total
// (bonus_total.cuh). Built once per pair of formats:
// -DELEMENT=Bf16|Fp16|Fp32 (r, k, v, u, do, dr, dk, dv, du) -DGATE=Bf16|Fp16|Fp32 (w, dw).
//   r, k, w, dr, dk, dw [token, H, K]; v, do, dv [token, H, V]; u, du [H, K]
//   bonus_sums: workspace [chunk][H][K] fp32; all else, grids and `vector` as there
#include "../channel/chunk_kernels.cuh"
#include "../channel/chunk_keys.cuh"
#include "../channel/chunk_output.cuh"
#include "bonus_total.cuh"

using Element = ELEMENT;
using Decay = GATE;
using Kept = StateOf<Element>::Type;

#define SCAN_KERNEL(columns) CHUNK_SCAN_KERNEL(rwkv6, ExclusiveBackward, columns)
FOR_EACH_SCAN_WIDTH(SCAN_KERNEL)

#define VALUES_KERNEL(suffix, blocks, one_block)                                                      \
  extern "C" __global__ void __launch_bounds__(128, blocks) rwkv6_chunk_values##suffix(               \
      const Element::Bits* r, const Element::Bits* k, const Element::Bits* d_o, const Decay::Bits* w, \
      const Element::Bits* u, const char* adjoint_operands, Element::Bits* dv, const i64* chunks,     \
      float scale, int heads, int key_channels, int value_channels, int vector) {                     \
    chunk_output<Element, Decay, ExclusiveBackward, Element, Element, one_block>(                     \
        k, r, d_o, w, u, adjoint_operands, dv, chunks, scale,                                         \
        Shape{heads, key_channels, value_channels, vector != 0});                                     \
  }
FOR_EACH_OUTPUT_SIZE(VALUES_KERNEL)

extern "C" __global__ void __launch_bounds__(key_threads<Element, ExclusiveForward>, 2)
    rwkv6_chunk_keys(const Element::Bits* r, const Element::Bits* k, const Element::Bits* v,
                     const Decay::Bits* w, const Element::Bits* u, const Element::Bits* d_o,
                     const Kept::Bits* states, const Kept::Bits* adjoints, Element::Bits* dr,
                     Element::Bits* dk, Decay::Bits* dw, float* bonus_sums, const i64* chunks, float scale,
                     int heads, int key_channels, int value_channels, int vector) {
  chunk_keys<Element, Decay, ExclusiveForward>(
      r, k, v, w, u, d_o, states, adjoints,
      GradientTensors<Element, Decay, key_threads<Element, ExclusiveForward>>{dr, dk, dw}, bonus_sums, chunks,
      scale, Shape{heads, key_channels, value_channels, vector != 0});
}

extern "C" __global__ void __launch_bounds__(128)
    rwkv6_bonus_total(const float* bonus_sums, Element::Bits* du, i64 chunks, int heads, int key_channels) {
  bonus_total<Element>(bonus_sums, du, chunks, heads * key_channels);
}
