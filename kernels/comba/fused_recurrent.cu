// comba.fused_recurrent, forward: u_t = beta_t (v_t - S_{t-1}^T p_t), S_t = e^{g_t} S_{t-1} + k_t u_t^T,
// o_t = scale S_t^T q_t, one token after the other (columns.cuh). Built once per pair of formats:
// -DELEMENT=Bf16|Fp16|Fp32 (q, k, v, p, beta, o) -DGATE=TokenGate<Bf16|Fp16|Fp32> (g).
//   q, k, p [token, key heads, K]; v, o [token, heads, V]; beta (or null: 1) [token, heads]
//   g [token, heads] log decays <= 0
//   initial_state (or null), final_state [N, heads, K, V] fp32
//   sequences [N][3]: first token, tokens, (unused)
// Grid (x): N heads ceil(V/32), 128 threads. comba_fused_recurrent_C serves K <= C. Head h reads key head
// h / (heads / key heads).
#include "columns.cuh"

using Element = ELEMENT;
using Decay = GATE;

#define RECURRENT_KERNEL(channels)                                                                        \
  extern "C" __global__ void __launch_bounds__(128) comba_fused_recurrent_##channels(                     \
      const Element::Bits* q, const Element::Bits* k, const Element::Bits* v, const Element::Bits* p,     \
      const Element::Bits* beta, const Decay::Bits* g, const float* initial_state, Element::Bits* o,      \
      float* final_state, const i64* sequences, float scale, int key_heads, int heads, int key_channels,  \
      int value_channels) {                                                                               \
    comba::scan<Element, Decay, channels, true>(                                                          \
        {q, k, v, p, beta, g, nullptr, key_heads, heads, key_channels, value_channels}, initial_state, o, \
        nullptr, nullptr, final_state, sequences, scale);                                                 \
  }

RECURRENT_KERNEL(16)
RECURRENT_KERNEL(64)
RECURRENT_KERNEL(128)
RECURRENT_KERNEL(256)
