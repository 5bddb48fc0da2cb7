// rwkv7.fused_recurrent, forward: S_t = diag(e^{w_t}) S_{t-1} + b_t (a_t^T S_{t-1}) + k_t v_t^T, o_t = scale
// S_t^T r_t, one token after the other (delta/columns.cuh). Built once per pair of formats:
// -DELEMENT=Bf16|Fp16|Fp32 (r, k, v, a, b, o) -DGATE=Bf16|Fp16|Fp32 (w).
//   r, k, a, b [token, H, K]; v, o [token, H, V]; w [token, H, K] log decays <= 0
//   initial_state (or null), final_state [N, H, K, V] fp32; sequences [N][3]: first token, tokens, (unused)
// Grid (x): N H ceil(V/32), 128 threads. rwkv7_fused_recurrent_C serves K <= C.
#include "../delta/columns.cuh"

using Element = ELEMENT;
using Decay = GATE;

#define RECURRENT_KERNEL(channels)                                                                          \
  extern "C" __global__ void __launch_bounds__(128) rwkv7_fused_recurrent_##channels(                       \
      const Element::Bits* r, const Decay::Bits* w, const Element::Bits* k, const Element::Bits* v,         \
      const Element::Bits* a, const Element::Bits* b, const float* initial_state, Element::Bits* o,         \
      float* final_state, const i64* sequences, float scale, int heads, int key_channels,                   \
      int value_channels) {                                                                                 \
    scan_columns<GeneralTransition<Element, Decay>, channels, true>({k, a, b, w}, r, v, initial_state, o,   \
                                                                    nullptr, final_state, sequences, scale, \
                                                                    heads, key_channels, value_channels);   \
  }

RECURRENT_KERNEL(16)
RECURRENT_KERNEL(64)
RECURRENT_KERNEL(128)
RECURRENT_KERNEL(256)
