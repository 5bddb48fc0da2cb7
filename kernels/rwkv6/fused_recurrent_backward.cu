// rwkv6.fused_recurrent, backward: scans and chunks of gla.fused_recurrent
// (../gla/fused_recurrent_backward.cu) with an exclusive readout, then the sum of du over chunks. Built once
// per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (r, k, v, u, do, dr, dk, dv, du) -DGATE=... (w, dw).
//   r, k, w, dr, dk, dw [token, H, K]; v, do, dv [token, H, V]; u, du [H, K]
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, H, K, V] fp32
//   states, adjoints as there; bonus_sums: workspace [chunk][H][K] fp32; sequences, chunks, grids and
//   capacities as there
// rwkv6_bonus_total: bonus_total.cuh.
#include "../channel/recurrent_keys.cuh"
#include "../channel/recurrent_values.cuh"
#include "bonus_total.cuh"

using Element = ELEMENT;
using Decay = GATE;

#define RECURRENT_KERNELS(capacity)                                                                         \
  extern "C" __global__ void __launch_bounds__(256, blocks_of_scan(capacity))                               \
      rwkv6_fused_recurrent_scans_##capacity(                                                               \
          const Element::Bits* r, const Element::Bits* k, const Element::Bits* v, const Decay::Bits* w,     \
          const Element::Bits* u, const Element::Bits* d_o, const float* initial_state,                     \
          const float* dfinal_state, Element::Bits* dr, float* states, Element::Bits* dv, float* adjoints,  \
          float* dinitial_state, const i64* sequences, float scale, int heads, int key_channels,            \
          int value_channels, int width, int query_blocks) {                                                \
    const int block = int(blockIdx.x);                                                                      \
    if (block < query_blocks)                                                                               \
      queries<Element, Decay, capacity, true>(k, v, w, u, d_o, initial_state, dr, states, sequences, scale, \
                                              heads, key_channels, value_channels, nullptr, block);         \
    else                                                                                                    \
      values<Element, Decay, capacity, true>(r, k, w, u, d_o, dfinal_state, dv, adjoints, dinitial_state,   \
                                             sequences, scale, heads, key_channels, value_channels, width,  \
                                             block - query_blocks);                                         \
  }                                                                                                         \
  extern "C" __global__ void __launch_bounds__(128, blocks_of_keys(capacity, true))                         \
      rwkv6_fused_recurrent_keys_##capacity(                                                                \
          const Element::Bits* r, const Element::Bits* k, const Element::Bits* v, const Decay::Bits* w,     \
          const Element::Bits* u, const Element::Bits* d_o, const float* states, const float* adjoints,     \
          Element::Bits* dk, Decay::Bits* dw, float* bonus_sums, const i64* chunks, float scale, int heads, \
          int key_channels, int value_channels) {                                                           \
    keys<Element, Decay, capacity, true>(r, k, v, w, u, d_o, states, adjoints, dk, dw, bonus_sums, chunks,  \
                                         scale, heads, key_channels, value_channels);                       \
  }

FOR_EACH_CAPACITY(RECURRENT_KERNELS)

extern "C" __global__ void __launch_bounds__(128)
    rwkv6_bonus_total(const float* bonus_sums, Element::Bits* du, i64 chunks, int heads, int key_channels) {
  bonus_total<Element>(bonus_sums, du, chunks, heads * key_channels);
}
