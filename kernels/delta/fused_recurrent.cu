// delta_rule, gated_delta_rule and kda, fused_recurrent, forward: S' = e_t S_{t-1}, u_t = beta_t (v_t - S'^T
// k_t), S_t = S' + k_t u_t^T, o_t = scale S_t^T q_t, one token after the other (rule_columns.cuh). Built once
// per element format and gate: -DELEMENT=Bf16|Fp16|Fp32 (q, k, v, beta, o)
// -DGATE=NoGate|TokenGate<Bf16|Fp16|Fp32>|ChannelGate<Bf16|Fp16|Fp32>.
//   q, k [token, key heads, K]; v, betas, o [token, heads, V]; beta [token, heads]; of beta and betas at most
//   one, both null: 1
//   gates: TokenGate: g [token, heads] log decays <= 0; ChannelGate: [token, heads, K]; NoGate: null
//   initial_state (or null), final_state [N, heads, K, V] fp32
//   sequences [N][3]: first token, tokens, (unused)
// Grid (x): N heads ceil(V/32), 128 threads. delta_fused_recurrent_C serves K <= C. Head h reads key head
// h / (heads / key heads).
#include "rule_columns.cuh"

using Element = ELEMENT;
using Decay = GATE;

#define RECURRENT_KERNEL(channels)                                                                        \
  extern "C" __global__ void __launch_bounds__(128) delta_fused_recurrent_##channels(                     \
      const Element::Bits* q, const Element::Bits* k, const Element::Bits* v, const Element::Bits* beta,  \
      const Element::Bits* betas, const Decay::Bits* gates, const float* initial_state, Element::Bits* o, \
      float* final_state, const i64* sequences, float scale, int key_heads, int heads, int key_channels,  \
      int value_channels) {                                                                               \
    rule_columns<Element, Decay, channels, true>(                                                         \
        {q, k, v, beta, betas, gates, nullptr, 0, key_heads, heads, key_channels, value_channels, 0},     \
        initial_state, o, nullptr, nullptr, final_state, sequences, scale);                               \
  }

RECURRENT_KERNEL(16)
RECURRENT_KERNEL(64)
RECURRENT_KERNEL(128)
RECURRENT_KERNEL(256)
