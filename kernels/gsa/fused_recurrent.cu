// gsa.fused_recurrent: both passes one token after the other, in fp32. The first pass is a recurrence of M x
// K, the transpose Hk^T, with s for keys and k for values, read out along its rows; the second is gla's, with
// p for queries and s for keys. Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (q, k, v, s, o)
// -DGATE=Bf16|Fp16|Fp32 (g).
//   gsa_transpose        states [N, H, K, M] to [N, H, M, K], or back
//   gsa_readout_C        x = scale S d of the state S_t = diag(e^{g_t}) S_{t-1} + s_t c_t^T of M x C';
//                        C' <= C; (c, d, x) = (k, q, y), and backward (v, do, dp)
//   gsa_softmax          p from y
//   gsa_fused_recurrent_C  o = scale S^T w of the same state, M <= C;
//                        (c, w, o) = (v, p, o), backward (k, dy, dq)
//   s, g [token, H, M]; c, d, o [token, H, C']; x, w [token, H, M] fp32; states [N, H, M, C'] fp32
//   kept: [chunk][H][M][C], the states at the start of every 64 tokens, or null
//   sequences [N][3]: first token, tokens, first chunk of 64 tokens
// Grids (x): readout N H ceil(M/rows), rows = 512 / (C / 8) (C = 16: 16); recurrence N H ceil(C'/32), both
// 256 threads; softmax ceil(rows/4); transpose ceil(count/128), both 128 threads.
#include "../channel/recurrent_queries.cuh"
#include "../device/recurrent.cuh"
#include "slots.cuh"

using Element = ELEMENT;
using Decay = GATE;

extern "C" __global__ void __launch_bounds__(128)
    gsa_transpose(const float* from, float* to, i64 count, int rows, int columns) {
  transpose(from, to, count, rows, columns);
}

extern "C" __global__ void __launch_bounds__(128) gsa_softmax(const float* y, float* p, i64 rows, int slots) {
  softmax<Fp32>(y, p, rows, slots);
}

#define READOUT_KERNEL(capacity)                                                                           \
  extern "C" __global__ void __launch_bounds__(256, blocks_of_scan(capacity)) gsa_readout_##capacity(      \
      const Element::Bits* s, const Element::Bits* c, const Decay::Bits* g, const Element::Bits* d,        \
      const float* initial_state, float* x, float* kept, float* final_state, const i64* sequences,         \
      float scale, int heads, int slots, int channels) {                                                   \
    queries<Element, Decay, capacity, false, Fp32>(s, c, g, nullptr, d, initial_state, x, kept, sequences, \
                                                   scale, heads, slots, channels, final_state);            \
  }
#define RECURRENT_KERNEL(capacity)                                                                       \
  extern "C" __global__ void __launch_bounds__(256, blocks_of_scan(capacity))                            \
      gsa_fused_recurrent_##capacity(const float* w, const Element::Bits* s, const Element::Bits* c,     \
                                     const Decay::Bits* g, const float* initial_state, Element::Bits* o, \
                                     float* final_state, const i64* sequences, float scale, int heads,   \
                                     int slots, int channels) {                                          \
    recurrent<Element, ChannelGate<Decay>, capacity, false, Fp32>(                                       \
        w, s, c, g, nullptr, initial_state, o, final_state, sequences, scale, heads, slots, channels);   \
  }

FOR_EACH_CAPACITY(READOUT_KERNEL)
FOR_EACH_CAPACITY_TO_128(RECURRENT_KERNEL)
