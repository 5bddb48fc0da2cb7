// simple_gla.parallel, forward and backward: the T x T form (parallel_rows.cuh), without states between
// chunks. Built once per element format and gate: -DELEMENT=Bf16|Fp16|Fp32
// -DGATE=NoGate|HeadGate|FixedHeadGate|TokenGate<Bf16|Fp16| Fp32>.
//   q, k, dq, dk [token, H, K]; v, o, do, dv [token, H, V]
//   gates: TokenGate: g [token, H] log decays <= 0; HeadGate: [H], in units of log2; NoGate: null
//   gate_gradients [token, H]: TokenGate: dg; HeadGate: fp32, what each token adds to its head's
//   initial_state, dfinal_state (or null: zero), final_state, dinitial_state [N, H, K, V] fp32
//   workspaces of ParallelTerms (or null: no gradient of the gate): rows [token][H][ceil(K/64)], own
//   [token][H], blocks [block][H][ceil(K/64)][stride] fp32; blocks [.][2]: of 64 tokens: sequence, number in
//   it; sequences [N][3]: first token, tokens, (unused)
// Grids (x): rows blocks H ceil(channels of the result/64), states N H ceil(K/64) ceil(V/32), gates blocks H;
// 128 threads. `vector` != 0 promises that K and V are multiples of 8 and all pointers 16-byte aligned.
#include "../scalar/parallel_gates.cuh"
#include "../scalar/parallel_state.cuh"

using Element = ELEMENT;
using Gate = GATE;

extern "C" __global__ void __launch_bounds__(128)
    simple_gla_parallel_output(const Element::Bits* q, const Element::Bits* k, const Element::Bits* v,
                               const Gate::Bits* gates, const float* initial_state, Element::Bits* o,
                               const i64* blocks, const i64* sequences, float scale, int heads,
                               int key_channels, int value_channels, int vector) {
  parallel_rows<Element, Gate, false, true>(q, k, v, nullptr, gates, initial_state, o, ParallelTerms{},
                                            blocks, sequences, scale,
                                            Shape{heads, key_channels, value_channels, vector != 0});
}

extern "C" __global__ void __launch_bounds__(128)
    simple_gla_parallel_state(const Element::Bits* k, const Element::Bits* v, const Gate::Bits* gates,
                              const float* initial_state, float* final_state, const i64* sequences, int heads,
                              int key_channels, int value_channels, int vector) {
  parallel_state<Element, Gate, false>(k, v, gates, initial_state, final_state, sequences, 1.0f,
                                       Shape{heads, key_channels, value_channels, vector != 0});
}

// `partner`: q where gates are learned, else null; so k below.
extern "C" __global__ void __launch_bounds__(128)
    simple_gla_parallel_queries(const Element::Bits* k, const Element::Bits* v, const Element::Bits* d_o,
                                const Element::Bits* partner, const Gate::Bits* gates,
                                const float* initial_state, Element::Bits* dq, float* term_rows,
                                float* term_blocks, int stride, const i64* blocks, const i64* sequences,
                                float scale, int heads, int key_channels, int value_channels, int vector) {
  parallel_rows<Element, Gate, false, false>(
      d_o, v, k, partner, gates, initial_state, dq, ParallelTerms{term_rows, nullptr, term_blocks, stride},
      blocks, sequences, scale, Shape{heads, key_channels, value_channels, vector != 0});
}

extern "C" __global__ void __launch_bounds__(128)
    simple_gla_parallel_keys(const Element::Bits* q, const Element::Bits* v, const Element::Bits* d_o,
                             const Element::Bits* partner, const Gate::Bits* gates, const float* dfinal_state,
                             Element::Bits* dk, float* term_rows, float* term_own, float* term_blocks,
                             const i64* blocks, const i64* sequences, float scale, int heads,
                             int key_channels, int value_channels, int vector) {
  parallel_rows<Element, Gate, true, false>(
      v, d_o, q, partner, gates, dfinal_state, dk, ParallelTerms{term_rows, term_own, term_blocks, 1}, blocks,
      sequences, scale, Shape{heads, key_channels, value_channels, vector != 0});
}

extern "C" __global__ void __launch_bounds__(128)
    simple_gla_parallel_values(const Element::Bits* q, const Element::Bits* k, const Element::Bits* d_o,
                               const Gate::Bits* gates, const float* dfinal_state, Element::Bits* dv,
                               const i64* blocks, const i64* sequences, float scale, int heads,
                               int key_channels, int value_channels, int vector) {
  parallel_rows<Element, Gate, true, true>(k, q, d_o, nullptr, gates, dfinal_state, dv, ParallelTerms{},
                                           blocks, sequences, scale,
                                           Shape{heads, key_channels, value_channels, vector != 0});
}

extern "C" __global__ void __launch_bounds__(128)
    simple_gla_parallel_adjoint(const Element::Bits* q, const Element::Bits* d_o, const Gate::Bits* gates,
                                const float* dfinal_state, float* dinitial_state, const i64* sequences,
                                float scale, int heads, int key_channels, int value_channels, int vector) {
  parallel_state<Element, Gate, true>(q, d_o, gates, dfinal_state, dinitial_state, sequences, scale,
                                      Shape{heads, key_channels, value_channels, vector != 0});
}

extern "C" __global__ void __launch_bounds__(128)
    simple_gla_parallel_gates(const Gate::Bits* gates, const float* initial_state, const float* dfinal_state,
                              float* query_rows, float* query_blocks, int stride, float* key_rows,
                              float* key_own, float* key_blocks, Gate::Bits* gate_gradients,
                              const i64* blocks, const i64* sequences, int heads, int key_channels,
                              int value_channels) {
  parallel_gates<Gate>(gates, initial_state, dfinal_state,
                       ParallelTerms{query_rows, nullptr, query_blocks, stride},
                       ParallelTerms{key_rows, key_own, key_blocks, 1}, gate_gradients, blocks, sequences,
                       Shape{heads, key_channels, value_channels, false});
}
