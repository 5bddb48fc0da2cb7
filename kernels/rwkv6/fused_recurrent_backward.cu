// rwkv6.fused_recurrent, backward: the scans of gla.fused_recurrent (../gla/fused_recurrent_backward.cu) with
// an exclusive readout, then the sum of du over chunks. Built once per pair of formats:
// -DELEMENT=Bf16|Fp16|Fp32 (r, k, v, u, do, dr, dk, dv, du) -DGATE=... (w, dw).
//   r, k, w, dr, dk, dw [token, H, K]; v, do, dv [token, H, V]; u, du [H, K]
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, H, K, V] fp32
//   states as there; bonus_sums: workspace [chunk][H][K] fp32; sequences, grids and capacities as there
// rwkv6_bonus_total: bonus_total.cuh.
#include "../channel/recurrent_keys.cuh"
#include "../channel/recurrent_values.cuh"
#include "bonus_total.cuh"

using Element = ELEMENT;
using Decay = GATE;

#define RECURRENT_KERNELS(capacity)                                                                          \
  extern "C" __global__ void __launch_bounds__(128) rwkv6_fused_recurrent_queries_##capacity(                \
      const Element::Bits* k, const Element::Bits* v, const Decay::Bits* w, const Element::Bits* u,          \
      const Element::Bits* d_o, const float* initial_state, Element::Bits* dr, float* states,                \
      const i64* sequences, float scale, int heads, int key_channels, int value_channels) {                  \
    queries<Element, Decay, capacity, true>(k, v, w, u, d_o, initial_state, dr, states, sequences, scale,    \
                                            heads, key_channels, value_channels);                            \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(128) rwkv6_fused_recurrent_values_##capacity(                 \
      const Element::Bits* r, const Element::Bits* k, const Decay::Bits* w, const Element::Bits* u,          \
      const Element::Bits* d_o, const float* dfinal_state, Element::Bits* dv, const i64* sequences,          \
      float scale, int heads, int key_channels, int value_channels) {                                        \
    values<Element, Decay, capacity, true>(r, k, w, u, d_o, dfinal_state, dv, sequences, scale, heads,       \
                                           key_channels, value_channels);                                    \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(128) rwkv6_fused_recurrent_keys_##capacity(                   \
      const Element::Bits* r, const Element::Bits* k, const Element::Bits* v, const Decay::Bits* w,          \
      const Element::Bits* u, const Element::Bits* d_o, const float* dfinal_state, const float* states,      \
      Element::Bits* dk, Decay::Bits* dw, float* dinitial_state, float* bonus_sums, const i64* sequences,    \
      float scale, int heads, int key_channels, int value_channels) {                                        \
    keys<Element, Decay, capacity, true>(r, k, v, w, u, d_o, dfinal_state, states, dk, dw, dinitial_state,   \
                                         bonus_sums, sequences, scale, heads, key_channels, value_channels); \
  }

FOR_EACH_CAPACITY(RECURRENT_KERNELS)

extern "C" __global__ void __launch_bounds__(128)
    rwkv6_bonus_total(const float* bonus_sums, Element::Bits* du, i64 chunks, int heads, int key_channels) {
  bonus_total<Element>(bonus_sums, du, chunks, heads * key_channels);
}
