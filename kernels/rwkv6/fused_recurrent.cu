// rwkv6.fused_recurrent, forward: o_t = scale (S_{t-1} + diag(u) k_t v_t^T)^T r_t, S_t = diag(e^{w_t})
// S_{t-1} + k_t v_t^T, one token after the other (device/recurrent.cuh). Built once per pair of formats:
// -DELEMENT=Bf16|Fp16|Fp32 (r, k, v, u, o) -DGATE=Bf16|Fp16|Fp32 (w).
//   r, k [token, H, K]; v, o [token, H, V]; w [token, H, K] log decays <= 0; u [H, K]
//   initial_state (or null), final_state [N, H, K, V] fp32; sequences [N][3]: first token, tokens, (unused)
// Grid (x): N H ceil(V/32), 256 threads. rwkv6_fused_recurrent_C serves K <= C.
#include "../device/recurrent.cuh"

using Element = ELEMENT;
using Gate = ChannelGate<GATE>;

#define RECURRENT_KERNEL(channels)                                                                           \
  extern "C" __global__ void __launch_bounds__(256, blocks_of_scan(channels))                                \
      rwkv6_fused_recurrent_##channels(                                                                      \
          const Element::Bits* r, const Element::Bits* k, const Element::Bits* v, const Gate::Bits* w,       \
          const Element::Bits* u, const float* initial_state, Element::Bits* o, float* final_state,          \
          const i64* sequences, float scale, int heads, int key_channels, int value_channels) {              \
    recurrent<Element, Gate, channels, true>(r, k, v, w, u, initial_state, o, final_state, sequences, scale, \
                                             heads, key_channels, value_channels);                           \
  }

FOR_EACH_CAPACITY(RECURRENT_KERNEL)
