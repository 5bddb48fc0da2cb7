// gsa.fused_recurrent, backward: what is left beside the functions of fused_recurrent.cu. The adjoint of
// either pass is that of gla: S and G = dL/dS are M x C', with (c, d, w) = (v, do, p) for the second pass and
// (k, q, dy) for the first. Built once per pair of formats, as fused_recurrent.cu.
//   gsa_softmax_gradient  dy = p (dp - p . dp)
//   gsa_values_C          G_t = diag(e^{g_{t+1}}) G_{t+1} + scale w_t d_t^T, last token first;
//                         dc_t = G_t^T s_t, and the gradient of the initial state; M <= C
//   gsa_keys_C            G_t and S_t again from what was kept, each chunk by itself: ds = G_t c_t,
//                         dg = e^{g_t} rowsum(S_{t-1} (.) G_t), both fp32; C' <= C = width
//   adjoints [chunk][H][M][width] fp32, G at the end of every 64 tokens
//   gsa_add_slots, gsa_add_gates  ds and dg of both passes together
#include "../channel/recurrent_keys.cuh"
#include "../channel/recurrent_values.cuh"
#include "slots.cuh"

using Element = ELEMENT;
using Decay = GATE;

extern "C" __global__ void __launch_bounds__(128)
    gsa_softmax_gradient(const float* p, const float* dp, float* dy, i64 rows, int slots) {
  softmax_gradient<Fp32>(p, dp, dy, rows, slots);
}
#include "add_passes.cuh"

#define VALUES_KERNEL(capacity)                                                                             \
  extern "C" __global__ void __launch_bounds__(256, blocks_of_scan(capacity)) gsa_values_##capacity(        \
      const float* w, const Element::Bits* s, const Decay::Bits* g, const Element::Bits* d,                 \
      const float* dfinal_state, Element::Bits* dc, float* adjoints, float* dinitial_state,                 \
      const i64* sequences, float scale, int heads, int slots, int channels, int width) {                   \
    values<Element, Decay, capacity, false, Fp32>(w, s, g, nullptr, d, dfinal_state, dc, adjoints,          \
                                                  dinitial_state, sequences, scale, heads, slots, channels, \
                                                  width);                                                   \
  }
#define KEYS_KERNEL(capacity)                                                                                \
  extern "C" __global__ void __launch_bounds__(128, blocks_of_keys(capacity, false)) gsa_keys_##capacity(    \
      const float* w, const Element::Bits* s, const Element::Bits* c, const Decay::Bits* g,                  \
      const Element::Bits* d, const float* kept, const float* adjoints, float* ds, float* dg,                \
      const i64* chunks, float scale, int heads, int slots, int channels) {                                  \
    keys<Element, Decay, capacity, false, Fp32, Fp32, Fp32>(w, s, c, g, nullptr, d, kept, adjoints, ds, dg,  \
                                                            nullptr, chunks, scale, heads, slots, channels); \
  }

FOR_EACH_CAPACITY_TO_128(VALUES_KERNEL)
FOR_EACH_CAPACITY(KEYS_KERNEL)
