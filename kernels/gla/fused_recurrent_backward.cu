// gla.fused_recurrent, backward: one token after the other, fp32 throughout, three scans.
//   queries  S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T;  dq_t = scale S_t do_t; S at every 64th token is kept
//   values   G_t = diag(e^{g_{t+1}}) G_{t+1} + scale q_t do_t^T, last token first;  dv_t = G_t^T k_t
//   keys     G_t again, and S_t again from what was kept;  dk_t = G_t v_t,  dg_t = e^{g_t} rowsum(S_{t-1} (.)
//            G_t),  dinitial_state = e^{g_1} G_1
// Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (q, k, v, do, dq, dk, dv) -DGATE=... (g, dg).
//   q, k, g, dq, dk, dg [token, H, K]; v, do, dv [token, H, V]; g null: no decay (and then dg is null)
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, H, K, V] fp32
//   states: workspace [chunk][H][K][capacity] fp32, S at each chunk's start
//   sequences [N][3]: first token, tokens, first chunk of 64 tokens
// Grids (x): N H ceil(K/rows), values: N H ceil(V/rows), 128 threads; *_C serves V <= C (values: K <= C) with
// 128 / (C / 8) rows per block (C = 16: 16 rows).
#include "../channel/recurrent_keys.cuh"
#include "../channel/recurrent_values.cuh"

using Element = ELEMENT;
using Decay = GATE;

#define RECURRENT_KERNELS(capacity)                                                                       \
  extern "C" __global__ void __launch_bounds__(128) gla_fused_recurrent_queries_##capacity(               \
      const Element::Bits* k, const Element::Bits* v, const Decay::Bits* g, const Element::Bits* d_o,     \
      const float* initial_state, Element::Bits* dq, float* states, const i64* sequences, float scale,    \
      int heads, int key_channels, int value_channels) {                                                  \
    queries<Element, Decay, capacity, false>(k, v, g, nullptr, d_o, initial_state, dq, states, sequences, \
                                             scale, heads, key_channels, value_channels);                 \
  }                                                                                                       \
  extern "C" __global__ void __launch_bounds__(128) gla_fused_recurrent_values_##capacity(                \
      const Element::Bits* q, const Element::Bits* k, const Decay::Bits* g, const Element::Bits* d_o,     \
      const float* dfinal_state, Element::Bits* dv, const i64* sequences, float scale, int heads,         \
      int key_channels, int value_channels) {                                                             \
    values<Element, Decay, capacity, false>(q, k, g, nullptr, d_o, dfinal_state, dv, sequences, scale,    \
                                            heads, key_channels, value_channels);                         \
  }                                                                                                       \
  extern "C" __global__ void __launch_bounds__(128) gla_fused_recurrent_keys_##capacity(                  \
      const Element::Bits* q, const Element::Bits* k, const Element::Bits* v, const Decay::Bits* g,       \
      const Element::Bits* d_o, const float* dfinal_state, const float* states, Element::Bits* dk,        \
      Decay::Bits* dg, float* dinitial_state, const i64* sequences, float scale, int heads,               \
      int key_channels, int value_channels) {                                                             \
    keys<Element, Decay, capacity, false>(q, k, v, g, nullptr, d_o, dfinal_state, states, dk, dg,         \
                                          dinitial_state, nullptr, sequences, scale, heads, key_channels, \
                                          value_channels);                                                \
  }

FOR_EACH_CAPACITY(RECURRENT_KERNELS)
