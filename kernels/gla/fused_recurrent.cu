// gla.fused_recurrent, forward: S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T, o_t = scale S_t^T q_t, one token
// after the other (device/recurrent.cuh). Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (q, k, v,
// o) -DGATE=Bf16|Fp16|Fp32 (g).
//   q, k [token, H, K]; v, o [token, H, V]; g [token, H, K] log decays <= 0, or null: no decay
//   initial_state (or null), final_state [N, H, K, V] fp32; sequences [N][3]: first token, tokens, (unused)
// Grid (x): N H ceil(V/32), 256 threads. gla_fused_recurrent_C serves K <= C.
#include "../device/recurrent.cuh"

using Element = ELEMENT;
using Decay = ChannelGate<GATE>;

#define RECURRENT_KERNEL(channels)                                                                           \
  extern "C" __global__ void __launch_bounds__(256, blocks_of_scan(channels))                                \
      gla_fused_recurrent_##channels(const Element::Bits* q, const Element::Bits* k, const Element::Bits* v, \
                                     const Decay::Bits* g, const float* initial_state, Element::Bits* o,     \
                                     float* final_state, const i64* sequences, float scale, int heads,       \
                                     int key_channels, int value_channels) {                                 \
    recurrent<Element, Decay, channels, false>(q, k, v, g, nullptr, initial_state, o, final_state,           \
                                               sequences, scale, heads, key_channels, value_channels);       \
  }

FOR_EACH_CAPACITY(RECURRENT_KERNEL)
