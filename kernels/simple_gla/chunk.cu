// simple_gla.chunk, forward: linear attention in chunks of 64 tokens on tensor cores with one log decay per
// token and head, one per head, or none; two launches: simple_gla_chunk_state (states at chunk starts and the
// final state), then simple_gla_chunk_output. Built once per element format and gate:
// -DELEMENT=Bf16|Fp16|Fp32 (q, k, v, o) -DGATE=NoGate|HeadGate|TokenGate<Bf16|Fp16|Fp32>.
//   q, k [token, H, K]; v, o [token, H, V]
//   gates: TokenGate: g [token, H] log decays <= 0; HeadGate: [H], in units of log2; NoGate: null
//   initial_state (or null), final_state [N, H, K, V] fp32
//   states: workspace [chunk][H][ceil(V/16)][ceil(K/16)] blocks of 16 x 16 operands (bf16: 512 bytes, else
//   1024); sequences [N][3]: first token, tokens, first chunk; chunks [.][2]: first token, tokens
// Grids (x): N H ceil(K/64) ceil(V/32), chunks H; 128 threads. Any K and V of at least 1; `vector` != 0
// promises that K and V are multiples of 8 and all pointers 16-byte aligned.
#include "../scalar/chunk_product.cuh"

using Element = ELEMENT;
using Gate = GATE;

extern "C" __global__ void __launch_bounds__(128)
    simple_gla_chunk_state(const Element::Bits* k, const Element::Bits* v, const Gate::Bits* gates,
                           const float* initial_state, float* final_state, char* states, const i64* sequences,
                           int heads, int key_channels, int value_channels, int vector) {
  state_scan<Element, Gate, assay::scalar::scan_columns, false>(
      k, v, gates, initial_state, final_state, OperandStates<Element>{states}, sequences, 1.0f,
      Shape{heads, key_channels, value_channels, vector != 0});
}

extern "C" __global__ void __launch_bounds__(128)
    simple_gla_chunk_output(const Element::Bits* q, const Element::Bits* k, const Element::Bits* v,
                            const Gate::Bits* gates, const char* states, Element::Bits* o, const i64* chunks,
                            float scale, int heads, int key_channels, int value_channels, int vector) {
  chunk_product<Element, Gate>(q, k, v, gates, states, o, chunks, scale,
                               Shape{heads, key_channels, value_channels, vector != 0});
}
