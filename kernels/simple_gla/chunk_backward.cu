// simple_gla.chunk, backward, in chunks of 64 tokens on tensor cores, two launches: simple_gla_chunk_scans (S
// at every chunk's start, and at the same time D = dL/dS at every chunk's end and dinitial_state), then
// simple_gla_chunk_gradients. Built once per element format and gate: -DELEMENT=Bf16|Fp16|Fp32 (q, k, v, do,
// dq, dk, dv) -DGATE=NoGate|HeadGate|FixedHeadGate|TokenGate<Bf16|Fp16|Fp32>.
//   q, k, dq, dk [token, H, K]; v, do, dv [token, H, V]
//   gates: TokenGate: g [token, H] log decays <= 0; HeadGate: [H], in units of log2; NoGate: null
//   gate_gradients [token, H] or null: TokenGate: dg; HeadGate: fp32, what each token adds to its head's
//   initial_state, dfinal_state (or null: zero), dinitial_state (or null) [N, H, K, V] fp32
//   states, adjoints: workspaces [chunk][H][V][K] of bf16 (fp16, fp32: fp32), V and K padded to multiples of
//   16; sequences [N][3]: first token, tokens, first chunk; chunks [.][2]: first token, tokens
// Grids: scans (N H ceil(K/64) ceil(V/32), 2), gradients chunks H; 128 threads. Any K and V of at least 1;
// `vector` != 0 promises that K and V are multiples of 8 and all pointers 16-byte aligned.
#include "../scalar/chunk_gradients.cuh"

using Element = ELEMENT;
using Gate = GATE;
using State = StateOf<Element>::Type::Bits;
constexpr int columns = assay::scalar::scan_columns;

extern "C" __global__ void __launch_bounds__(128)
    simple_gla_chunk_scans(const Element::Bits* q, const Element::Bits* k, const Element::Bits* v,
                           const Gate::Bits* gates, const Element::Bits* d_o, const float* initial_state,
                           const float* dfinal_state, float* dinitial_state, State* states, State* adjoints,
                           const i64* sequences, float scale, int heads, int key_channels, int value_channels,
                           int vector) {
  const Shape shape{heads, key_channels, value_channels, vector != 0};
  if (blockIdx.y == 0)
    state_scan<Element, Gate, columns, false>(k, v, gates, initial_state, nullptr,
                                              PlainStates<Element, PairedKeys>{states}, sequences, 1.0f,
                                              shape);
  else
    state_scan<Element, Gate, columns, true>(q, d_o, gates, dfinal_state, dinitial_state,
                                             PlainStates<Element, PairedKeys>{adjoints}, sequences, scale,
                                             shape);
}

extern "C" __global__ void __launch_bounds__(128, sizeof(Element::Bits) == 2 ? 3 : 2)
    simple_gla_chunk_gradients(const Element::Bits* q, const Element::Bits* k, const Element::Bits* v,
                               const Gate::Bits* gates, const Element::Bits* d_o, const State* states,
                               const State* adjoints, Element::Bits* dq, Element::Bits* dk, Element::Bits* dv,
                               Gate::Bits* gate_gradients, const i64* chunks, float scale, int heads,
                               int key_channels, int value_channels, int vector) {
  chunk_gradients<Element, Gate>(q, k, v, gates, d_o, states, adjoints, dq, dk, dv, gate_gradients, chunks,
                                 scale, Shape{heads, key_channels, value_channels, vector != 0});
}
