// comba.fused_recurrent, backward: fp32 throughout, four scans, token by token; sums of their parts follow
// (delta/sums.cu).
//   residuals  S_t again; r_t = v_t - S_{t-1}^T p_t and u_t = beta_t r_t
//   values     G_t = dL/dS_t, last token first; du_t = G_t^T k_t, dv_t = dr_t = beta_t du_t, du_t (.) r_t
//   queries    S_t by rows; dq_t = scale S_t do_t; S at every 32nd token is kept
//   keys       G_t and S_t by rows, last token first; dk, dp, dg, dinitial_state
// Built once per pair of formats, as fused_recurrent.cu (do and gradients: ELEMENT; dg here fp32).
//   q, k, p [token, key heads, K]; v, do, dv [token, heads, V]; beta (or null: 1), g [token, heads]
//   dq, dk, dp [token, key heads, K]; or null, where value heads share keys: then dqs, dks, dps [token,
//   heads, K] fp32; dg [token, heads, K] fp32, each channel's part
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, heads, K, V] fp32
//   workspaces, fp32: residuals, updates, pulls [token, heads, V]; products (or null) the same, what beta's
//   gradient sums; states [chunk][heads][K][capacity], S at each chunk's start
//   sequences [N][3]: first token, tokens, first chunk of 32 tokens
// Grids (x), 128 threads: residuals, values: N heads ceil(V/32), *_C serves K <= C; queries, keys: N heads
// ceil(K/rows), *_C serves V <= C with 128 / (C / 8) rows per block (C = 16: 16 rows).
#include "columns.cuh"
#include "rows.cuh"

using Element = ELEMENT;
using Decay = GATE;

#define RECURRENT_KERNELS(capacity)                                                                          \
  extern "C" __global__ void __launch_bounds__(128) comba_fused_recurrent_residuals_##capacity(              \
      const Element::Bits* k, const Element::Bits* v, const Element::Bits* p, const Element::Bits* beta,     \
      const Decay::Bits* g, const float* initial_state, float* residuals, float* updates,                    \
      const i64* sequences, float scale, int key_heads, int heads, int key_channels, int value_channels) {   \
    comba::scan<Element, Decay, capacity, false>(                                                            \
        {nullptr, k, v, p, beta, g, nullptr, key_heads, heads, key_channels, value_channels}, initial_state, \
        nullptr, residuals, updates, nullptr, sequences, scale);                                             \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(128) comba_fused_recurrent_values_##capacity(                 \
      const Element::Bits* q, const Element::Bits* k, const Element::Bits* p, const Element::Bits* beta,     \
      const Decay::Bits* g, const Element::Bits* d_o, const float* dfinal_state, const float* residuals,     \
      Element::Bits* dv, float* pulls, float* products, const i64* sequences, float scale, int key_heads,    \
      int heads, int key_channels, int value_channels) {                                                     \
    comba::scan_back<Element, Decay, capacity>(                                                              \
        {q, k, d_o, p, beta, g, residuals, key_heads, heads, key_channels, value_channels}, dfinal_state,    \
        dv, pulls, products, sequences, scale);                                                              \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(128) comba_fused_recurrent_queries_##capacity(                \
      const Element::Bits* k, const Decay::Bits* g, const Element::Bits* d_o, const float* initial_state,    \
      const float* updates, Element::Bits* dq, float* dqs, float* states, const i64* sequences, float scale, \
      int key_heads, int heads, int key_channels, int value_channels) {                                      \
    rule::queries<Element, Decay, capacity>(                                                                 \
        {nullptr, k, d_o, g, updates, nullptr, key_heads, heads, key_channels, value_channels},              \
        initial_state, {dq, dqs}, states, sequences, scale);                                                 \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(128) comba_fused_recurrent_keys_##capacity(                   \
      const Element::Bits* q, const Element::Bits* k, const Element::Bits* p, const Decay::Bits* g,          \
      const Element::Bits* d_o, const float* dfinal_state, const float* updates, const float* pulls,         \
      const float* states, Element::Bits* dk, float* dks, Element::Bits* dp, float* dps, float* dg,          \
      float* dinitial_state, const i64* sequences, float scale, int key_heads, int heads, int key_channels,  \
      int value_channels) {                                                                                  \
    comba::keys<Element, Decay, capacity>(                                                                   \
        {{q, k, d_o, g, updates, pulls, key_heads, heads, key_channels, value_channels}, p}, dfinal_state,   \
        states, {{dk, dks}, {dp, dps}, dg}, dinitial_state, sequences, scale);                               \
  }

RECURRENT_KERNELS(16)
RECURRENT_KERNELS(64)
RECURRENT_KERNELS(128)
RECURRENT_KERNELS(256)
