// rwkv7.fused_recurrent, backward: one token after the other, fp32 throughout, four scans.
//   reads    S_t again; what every token read, S_{t-1}^T a_t
//   values   G_t = dL/dS_t, last token first; dv_t = G_t^T k_t; what every token pulls, G_t^T b_t
//   queries  S_t by rows; dr_t = scale S_t do_t; S at every 32nd token is kept
//   factors  G_t and S_t by rows, last token first; dk, dw, da, db, dinitial_state
// Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (r, k, v, a, b, do and their gradients)
// -DGATE=Bf16|Fp16|Fp32 (w, dw).
//   r, w, k, a, b, dr, dw, dk, da, db [token, H, K]; v, do, dv [token, H, V]
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, H, K, V] fp32
//   workspaces: reads, pulls [token, H, V] fp32; states [chunk][H][K][capacity] fp32, S at each chunk's start
//   sequences [N][3]: first token, tokens, first chunk of 32 tokens
// Grids (x), 128 threads: reads, values: N H ceil(V/32), *_C serves K <= C; queries, factors: N H
// ceil(K/rows), *_C serves V <= C with 128 / (C / 8) rows per block (C = 16: 16 rows).
#include "../delta/columns.cuh"
#include "../delta/rows.cuh"

using Element = ELEMENT;
using Decay = GATE;
using Transition = GeneralTransition<Element, Decay>;

#define RECURRENT_KERNELS(capacity)                                                                          \
  extern "C" __global__ void __launch_bounds__(128) rwkv7_fused_recurrent_reads_##capacity(                  \
      const Decay::Bits* w, const Element::Bits* k, const Element::Bits* v, const Element::Bits* a,          \
      const Element::Bits* b, const float* initial_state, float* reads, const i64* sequences, float scale,   \
      int heads, int key_channels, int value_channels) {                                                     \
    scan_columns<Transition, capacity, false>({k, a, b, w}, nullptr, v, initial_state, nullptr, reads,       \
                                              nullptr, sequences, scale, heads, key_channels,                \
                                              value_channels);                                               \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(128) rwkv7_fused_recurrent_values_##capacity(                 \
      const Element::Bits* r, const Decay::Bits* w, const Element::Bits* k, const Element::Bits* a,          \
      const Element::Bits* b, const Element::Bits* d_o, const float* dfinal_state, Element::Bits* dv,        \
      float* pulls, const i64* sequences, float scale, int heads, int key_channels, int value_channels) {    \
    scan_columns_back<Transition, capacity>({k, a, b, w}, r, d_o, dfinal_state, dv, pulls, sequences, scale, \
                                            heads, key_channels, value_channels);                            \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(128) rwkv7_fused_recurrent_queries_##capacity(                \
      const Decay::Bits* w, const Element::Bits* k, const Element::Bits* v, const Element::Bits* a,          \
      const Element::Bits* b, const Element::Bits* d_o, const float* initial_state, const float* reads,      \
      Element::Bits* dr, float* states, const i64* sequences, float scale, int heads, int key_channels,      \
      int value_channels) {                                                                                  \
    rows::queries<Transition, capacity>({k, a, b, w}, v, reads, d_o, initial_state, dr, states, sequences,   \
                                        scale, heads, key_channels, value_channels);                         \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(128) rwkv7_fused_recurrent_factors_##capacity(                \
      const Element::Bits* r, const Decay::Bits* w, const Element::Bits* k, const Element::Bits* v,          \
      const Element::Bits* a, const Element::Bits* b, const Element::Bits* d_o, const float* dfinal_state,   \
      const float* reads, const float* pulls, const float* states, Decay::Bits* dw, Element::Bits* dk,       \
      Element::Bits* da, Element::Bits* db, float* dinitial_state, const i64* sequences, float scale,        \
      int heads, int key_channels, int value_channels) {                                                     \
    rows::factors<Transition, capacity>({k, a, b, w}, r, v, reads, d_o, pulls, dfinal_state, states, dk, dw, \
                                        da, db, dinitial_state, sequences, scale, heads, key_channels,       \
                                        value_channels);                                                     \
  }

RECURRENT_KERNELS(16)
RECURRENT_KERNELS(64)
RECURRENT_KERNELS(128)
RECURRENT_KERNELS(256)
