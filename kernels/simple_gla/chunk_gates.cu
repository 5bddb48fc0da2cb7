// simple_gla.chunk_hopper, backward, where gates are learned: their gradient, after chunk_backward_hopper.cu
// has left its terms (../scalar/chunk_gates.cuh). Built once per gate: -DELEMENT=Bf16 (q, k, v, do)
// -DGATE=HeadGate|TokenGate<Bf16|Fp16|Fp32>. Arguments as in chunk_backward.cu, but for
//   states, adjoints [chunk][H][ceil(K/64)][ceil(V/64)] of 8 KiB: S at a chunk's start and D at its end
//   query_dots, key_dots [H][ceil(K/64)][tokens] fp32: q . dq and k . dk of other chunks; tokens: of all
//   sequences
// Grid (x): chunks H; 128 threads. `vector` != 0 promises that K and V are multiples of 8 and all pointers
// 16-byte aligned.
#include "../scalar/chunk_gates.cuh"

using Element = ELEMENT;
using Gate = GATE;

extern "C" __global__ void __launch_bounds__(128, 5)
    simple_gla_chunk_gates(const Element::Bits* q, const Element::Bits* k, const Element::Bits* v,
                           const Gate::Bits* gates, const Element::Bits* d_o, const uint4* states,
                           const uint4* adjoints, const float* query_dots, const float* key_dots,
                           Gate::Bits* gate_gradients, const i64* chunks, i64 tokens, float scale, int heads,
                           int key_channels, int value_channels, int vector) {
  chunk_gates<Gate>(q, k, v, gates, d_o, states, adjoints, query_dots, key_dots, gate_gradients, chunks,
                    tokens, scale, Shape{heads, key_channels, value_channels, vector != 0});
}
