// simple_gla.fused_recurrent, backward: three scans (recurrent_gradients.cuh), then, where gates have a
// gradient, dg_t = e^{g_t} sum of the blocks' <S_{t-1}, G_t>. Built once per element format and gate:
// -DELEMENT=Bf16|Fp16|Fp32 (q, k, v, do, dq, dk, dv)
// -DGATE=NoGate|HeadGate|FixedHeadGate|TokenGate<Bf16|Fp16|Fp32>.
//   q, k, dq, dk [token, H, K]; v, do, dv [token, H, V]
//   gates: TokenGate: g [token, H] log decays <= 0; HeadGate: [H], in units of log2; NoGate: null
//   gate_gradients [token, H]: TokenGate: dg; HeadGate: fp32, what each token adds to its head's
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, H, K, V] fp32
//   states: workspace [chunk][H][K][capacity] fp32, S at each chunk's start
//   products: workspace [token][H][key blocks] fp32; both null where no gate is learned
//   sequences [N][3]: first token, tokens, first chunk of 64 tokens
// Grids (x): N H ceil(K/rows), values: N H ceil(V/rows), 128 threads; *_C serves V <= C (values: K <= C) with
// 128 / (C / 8) rows per block (C = 16: 16 rows). Gates: ceil(tokens H / 128).
#include "../scalar/recurrent_gradients.cuh"

using Element = ELEMENT;
using Decay = GATE;

#define GRADIENT_KERNELS(capacity)                                                                           \
  extern "C" __global__ void __launch_bounds__(128) simple_gla_fused_recurrent_queries_##capacity(           \
      const Element::Bits* k, const Element::Bits* v, const Decay::Bits* gates, const Element::Bits* d_o,    \
      const float* initial_state, Element::Bits* dq, float* states, const i64* sequences, float scale,       \
      int heads, int key_channels, int value_channels) {                                                     \
    query_gradients<Element, Decay, capacity>(k, v, gates, d_o, initial_state, dq, states, sequences, scale, \
                                              heads, key_channels, value_channels);                          \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(128) simple_gla_fused_recurrent_values_##capacity(            \
      const Element::Bits* q, const Element::Bits* k, const Decay::Bits* gates, const Element::Bits* d_o,    \
      const float* dfinal_state, Element::Bits* dv, const i64* sequences, float scale, int heads,            \
      int key_channels, int value_channels) {                                                                \
    value_gradients<Element, Decay, capacity>(q, k, gates, d_o, dfinal_state, dv, sequences, scale, heads,   \
                                              key_channels, value_channels);                                 \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(128) simple_gla_fused_recurrent_keys_##capacity(              \
      const Element::Bits* q, const Element::Bits* k, const Element::Bits* v, const Decay::Bits* gates,      \
      const Element::Bits* d_o, const float* dfinal_state, const float* states, Element::Bits* dk,           \
      float* products, float* dinitial_state, const i64* sequences, float scale, int heads,                  \
      int key_channels, int value_channels) {                                                                \
    key_gradients<Element, Decay, capacity>(q, k, v, gates, d_o, dfinal_state, states, dk, products,         \
                                            dinitial_state, sequences, scale, heads, key_channels,           \
                                            value_channels);                                                 \
  }

FOR_EACH_CAPACITY(GRADIENT_KERNELS)

extern "C" __global__ void __launch_bounds__(128)
    simple_gla_fused_recurrent_gates(const Decay::Bits* gates, const float* products,
                                     Decay::Bits* gate_gradients, i64 rows, int heads, int key_blocks) {
  const i64 row = i64(blockIdx.x) * assay::device::block_threads + int(threadIdx.x);
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = 0; i < key_blocks; ++i) sum = sum + products[row * key_blocks + i];
  float e = 1.0f;
  if constexpr (has_decay<Decay>)
    e = decay_factor(Decay::decode(gates[Decay::width == GateWidth::head ? row % heads : row]));
  gate_gradients[row] = Decay::encode(e * sum);
}
