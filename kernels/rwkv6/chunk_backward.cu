// rwkv6.chunk, backward: the launches of gla.chunk (../gla/chunk_backward.cu) with an exclusive readout, then
// the sum of du over chunks: rwkv6_chunk_states_V, rwkv6_chunk_adjoints_V, rwkv6_chunk_values,
// rwkv6_chunk_keys, rwkv6_bonus_total (bonus_total.cuh). Built once per pair of formats:
// -DELEMENT=Bf16|Fp16|Fp32 (r, k, v, u, do, dr, dk, dv, du) -DGATE=Bf16|Fp16|Fp32 (w, dw).
//   r, k, w, dr, dk, dw [token, H, K]; v, do, dv [token, H, V]; u, du [H, K]
//   bonus_sums: workspace [chunk][H][K] fp32; all else, WIDTHS, grids and `vector` as there
#include "../channel/chunk_keys.cuh"
#include "../channel/chunk_output.cuh"
#include "bonus_total.cuh"

using Element = ELEMENT;
using Decay = GATE;

#define SCAN_KERNELS(columns)                                                                               \
  extern "C" __global__ void __launch_bounds__(128) rwkv6_chunk_states_##columns(                           \
      const Element::Bits* k, const Element::Bits* v, const Decay::Bits* w, const float* initial_state,     \
      char* states, const i64* sequences, int heads, int key_channels, int value_channels, int vector) {    \
    chunk_state<Element, Decay, columns, Forward>(k, v, w, initial_state, nullptr,                          \
                                                  PlainStates<Element>{states}, sequences, 1.0f,            \
                                                  Shape{heads, key_channels, value_channels, vector != 0}); \
  }                                                                                                         \
  extern "C" __global__ void __launch_bounds__(128) rwkv6_chunk_adjoints_##columns(                         \
      const Element::Bits* r, const Element::Bits* d_o, const Decay::Bits* w, const float* dfinal_state,    \
      float* dinitial_state, char* adjoint_operands, char* adjoints, const i64* sequences, float scale,     \
      int heads, int key_channels, int value_channels, int vector) {                                        \
    chunk_state<Element, Decay, columns, ExclusiveBackward>(                                                \
        r, d_o, w, dfinal_state, dinitial_state, BothStates<Element>{{adjoint_operands}, {adjoints}},       \
        sequences, scale, Shape{heads, key_channels, value_channels, vector != 0});                         \
  }

#if WIDTHS & 1
SCAN_KERNELS(32)
#endif
#if WIDTHS & 2
SCAN_KERNELS(64)
#endif

extern "C" __global__ void __launch_bounds__(128, 3)
    rwkv6_chunk_values(const Element::Bits* r, const Element::Bits* k, const Element::Bits* d_o,
                       const Decay::Bits* w, const Element::Bits* u, const char* adjoint_operands,
                       Element::Bits* dv, const i64* chunks, float scale, int heads, int key_channels,
                       int value_channels, int vector) {
  chunk_output<Element, Decay, ExclusiveBackward>(k, r, d_o, w, u, adjoint_operands, dv, chunks, scale,
                                                  Shape{heads, key_channels, value_channels, vector != 0});
}

extern "C" __global__ void __launch_bounds__(128, 2)
    rwkv6_chunk_keys(const Element::Bits* r, const Element::Bits* k, const Element::Bits* v,
                     const Decay::Bits* w, const Element::Bits* u, const Element::Bits* d_o,
                     const char* states, const char* adjoints, Element::Bits* dr, Element::Bits* dk,
                     Decay::Bits* dw, float* bonus_sums, const i64* chunks, float scale, int heads,
                     int key_channels, int value_channels, int vector) {
  chunk_keys<Element, Decay, ExclusiveForward>(
      r, k, v, w, u, d_o, states, adjoints, GradientTensors<Element, Decay>{dr, dk, dw}, bonus_sums, chunks,
      scale, Shape{heads, key_channels, value_channels, vector != 0});
}

extern "C" __global__ void __launch_bounds__(128)
    rwkv6_bonus_total(const float* bonus_sums, Element::Bits* du, i64 chunks, int heads, int key_channels) {
  bonus_total<Element>(bonus_sums, du, chunks, heads * key_channels);
}
