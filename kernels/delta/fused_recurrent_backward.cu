// delta_rule, gated_delta_rule and kda, fused_recurrent, backward: fp32 throughout, four scans, token by
// token; sums of their parts follow (sums.cu).
//   residuals  S_t again; r_t = v_t - S'^T k_t and u_t = beta_t r_t
//   values     G_t = dL/dS_t, last token first; du_t = G_t^T k_t, dv_t = dr_t = beta_t du_t, du_t (.) r_t
//   queries    S_t by rows; dq_t = scale S_t do_t; S at every 32nd token is kept
//   keys       G_t and S_t by rows, last token first; dk, dg, dinitial_state
// Built once per element format (q, k, v, beta, do and their gradients) and gate, as fused_recurrent.cu.
//   q, k [token, key heads, K]; v, betas, do, dv, dbetas [token, heads, V]; beta [token, heads]
//   gates as in fused_recurrent.cu; dg: ChannelGate [token, heads, K]; TokenGate: the same in fp32, each
//   channel's part; NoGate: null
//   dq, dk [token, key heads, K]; or null, where value heads share keys: then dqs, dks [token, heads, K] fp32
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, heads, K, V] fp32
//   workspaces, fp32: residuals, updates, pulls [token, heads, V]; products (or null) the same, what beta's
//   gradient sums; states [chunk][heads][K][capacity], S at each chunk's start
//   sequences [N][3]: first token, tokens, first chunk of 32 tokens
// Grids (x), 128 threads: residuals, values: N heads ceil(V/32), *_C serves K <= C; queries, keys: N heads
// ceil(K/rows), *_C serves V <= C with 128 / (C / 8) rows per block (C = 16: 16 rows).
#include "rule_columns.cuh"
#include "rule_rows.cuh"

using Element = ELEMENT;
using Decay = GATE;

// What a row's thread does with its part of a gate's gradient.
struct GateGradient {
  Decay::Bits* stored;
  float* of_channels;
  __device__ __forceinline__ void operator()(i64 at, float x) const {
    if constexpr (Decay::width == GateWidth::channel)
      stored[at] = Decay::encode(x);
    else
      of_channels[at] = x;
  }
};

// Blocks of `keys` on a multiprocessor of sm_90: a third is worth the few registers that are spilled for it.
constexpr int keys_at_once(int capacity) {
  return capacity <= 128 ? 3 : 1;
}

#define RECURRENT_KERNELS(capacity)                                                                          \
  extern "C" __global__ void __launch_bounds__(128) delta_fused_recurrent_residuals_##capacity(              \
      const Element::Bits* k, const Element::Bits* v, const Element::Bits* beta, const Element::Bits* betas, \
      const Decay::Bits* gates, const float* initial_state, float* residuals, float* updates,                \
      const i64* sequences, float scale, int key_heads, int heads, int key_channels, int value_channels) {   \
    rule_columns<Element, Decay, capacity, false>(                                                           \
        {nullptr, k, v, beta, betas, gates, nullptr, 0, key_heads, heads, key_channels, value_channels, 0},  \
        initial_state, nullptr, residuals, updates, nullptr, sequences, scale);                              \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(128) delta_fused_recurrent_values_##capacity(                 \
      const Element::Bits* q, const Element::Bits* k, const Element::Bits* beta, const Element::Bits* betas, \
      const Decay::Bits* gates, const Element::Bits* d_o, const float* dfinal_state, const float* residuals, \
      Element::Bits* dv, Element::Bits* dbetas, float* pulls, float* products, const i64* sequences,         \
      float scale, int key_heads, int heads, int key_channels, int value_channels) {                         \
    rule_columns_back<Element, Decay, capacity>(                                                             \
        {q, k, d_o, beta, betas, gates, residuals, 0, key_heads, heads, key_channels, value_channels, 0},    \
        dfinal_state, dv, dbetas, pulls, products, sequences, scale);                                        \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(128) delta_fused_recurrent_queries_##capacity(                \
      const Element::Bits* k, const Decay::Bits* gates, const Element::Bits* d_o,                            \
      const float* initial_state, const float* updates, Element::Bits* dq, float* dqs, float* states,        \
      const i64* sequences, float scale, int key_heads, int heads, int key_channels, int value_channels) {   \
    rule::queries<Element, Decay, capacity>(                                                                 \
        {nullptr, k, d_o, gates, updates, nullptr, key_heads, heads, key_channels, value_channels},          \
        initial_state, {dq, dqs}, states, sequences, scale);                                                 \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(128, keys_at_once(capacity))                                  \
      delta_fused_recurrent_keys_##capacity(                                                                 \
          const Element::Bits* q, const Element::Bits* k, const Decay::Bits* gates,                          \
          const Element::Bits* d_o, const float* dfinal_state, const float* updates, const float* pulls,     \
          const float* states, Element::Bits* dk, float* dks, void* dg, float* dinitial_state,               \
          const i64* sequences, float scale, int key_heads, int heads, int key_channels,                     \
          int value_channels) {                                                                              \
    rule::keys<Element, Decay, capacity>(                                                                    \
        {q, k, d_o, gates, updates, pulls, key_heads, heads, key_channels, value_channels}, dfinal_state,    \
        states, {dk, dks}, GateGradient{static_cast<Decay::Bits*>(dg), static_cast<float*>(dg)},             \
        dinitial_state, sequences, scale);                                                                   \
  }

RECURRENT_KERNELS(16)
RECURRENT_KERNELS(64)
RECURRENT_KERNELS(128)
RECURRENT_KERNELS(256)
