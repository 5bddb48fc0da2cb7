// gate_softplus.fused: g = -e^A softplus(x + bias), forward and backward, fp32 between one load and one
// store. Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (x, A, bias, and all gradients)
// -DGATE=Bf16|Fp16|Fp32 (g).
// 256 threads. Grid (x): column_blocks x ceil(tokens / 128), then H.
#include "softplus.cuh"

using Element = ELEMENT;
using Gate = GATE;

extern "C" __global__ void __launch_bounds__(256)
    gate_softplus(const Element::Bits* x, const Element::Bits* A, const Element::Bits* bias, Gate::Bits* g,
                  i64 tokens, int columns, int K, int quads, int column_blocks) {
  softplus_gates<Element, Gate>(x, A, bias, g, {tokens, columns, K, quads, column_blocks});
}
extern "C" __global__ void __launch_bounds__(256)
    gate_softplus_backward(const Element::Bits* x, const Element::Bits* A, const Element::Bits* bias,
                           const Element::Bits* dg, Element::Bits* dx, SoftplusSums* partial, i64 tokens,
                           int columns, int K, int quads, int column_blocks) {
  softplus_gradients<Element>(x, A, bias, dg, dx, partial, {tokens, columns, K, quads, column_blocks});
}
extern "C" __global__ void __launch_bounds__(256)
    gate_softplus_totals(const SoftplusSums* partial, Element::Bits* dA, Element::Bits* dbias,
                         int token_blocks, int columns, int K) {
  softplus_totals<Element>(partial, dA, dbias, token_blocks, columns, K);
}
