// gla.fused_recurrent, backward: fp32 throughout, two scans, one token after the other, then all chunks of 64
// tokens side by side.
//   queries  S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T;  dq_t = scale S_t do_t; S at each chunk's start is kept
//   values   G_t = diag(e^{g_{t+1}}) G_{t+1} + scale q_t do_t^T, last token first;  dv_t = G_t^T k_t; G at
//            each chunk's end is kept; dinitial_state = e^{g_1} G_1
//   keys     both again from what was kept;  dk_t = G_t v_t,  dg_t = e^{g_t} rowsum(S_{t-1} (.) G_t)
// Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (q, k, v, do, dq, dk, dv) -DGATE=... (g, dg).
//   q, k, g, dq, dk, dg [token, H, K]; v, do, dv [token, H, V]; g null: no decay (and then dg is null)
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, H, K, V] fp32
//   states, adjoints: workspaces [chunk][H][K][width] fp32, S at each chunk's start, G at its end
//   sequences [N][3]: first token, tokens, first chunk; chunks [chunk][2]: first token, tokens
// *_C holds C columns per row of the state: keys 128 / (C / 8) rows per block, scans four times as many (C =
// 16: both 16). Grids (x):
//   scans  256 threads; the first query_blocks = N H ceil(K/rows) blocks are those of the queries, V <= C;
//          the others, N H ceil(V/rows), those of the values, K <= C; either may be none
//   keys   128 threads; chunks H ceil(K/rows), V <= C = width
#include "../channel/recurrent_keys.cuh"
#include "../channel/recurrent_values.cuh"

using Element = ELEMENT;
using Decay = GATE;

#define RECURRENT_KERNELS(capacity)                                                                         \
  extern "C" __global__ void __launch_bounds__(256, blocks_of_scan(capacity))                               \
      gla_fused_recurrent_scans_##capacity(                                                                 \
          const Element::Bits* q, const Element::Bits* k, const Element::Bits* v, const Decay::Bits* g,     \
          const Element::Bits* d_o, const float* initial_state, const float* dfinal_state,                  \
          Element::Bits* dq, float* states, Element::Bits* dv, float* adjoints, float* dinitial_state,      \
          const i64* sequences, float scale, int heads, int key_channels, int value_channels, int width,    \
          int query_blocks) {                                                                               \
    const int block = int(blockIdx.x);                                                                      \
    if (block < query_blocks)                                                                               \
      queries<Element, Decay, capacity, false>(k, v, g, nullptr, d_o, initial_state, dq, states, sequences, \
                                               scale, heads, key_channels, value_channels, nullptr, block); \
    else                                                                                                    \
      values<Element, Decay, capacity, false>(q, k, g, nullptr, d_o, dfinal_state, dv, adjoints,            \
                                              dinitial_state, sequences, scale, heads, key_channels,        \
                                              value_channels, width, block - query_blocks);                 \
  }                                                                                                         \
  extern "C" __global__ void __launch_bounds__(128, blocks_of_keys(capacity, false))                        \
      gla_fused_recurrent_keys_##capacity(                                                                  \
          const Element::Bits* q, const Element::Bits* k, const Element::Bits* v, const Decay::Bits* g,     \
          const Element::Bits* d_o, const float* states, const float* adjoints, Element::Bits* dk,          \
          Decay::Bits* dg, const i64* chunks, float scale, int heads, int key_channels,                     \
          int value_channels) {                                                                             \
    keys<Element, Decay, capacity, false>(q, k, v, g, nullptr, d_o, states, adjoints, dk, dg, nullptr,      \
                                          chunks, scale, heads, key_channels, value_channels);              \
  }

FOR_EACH_CAPACITY(RECURRENT_KERNELS)
