// The log decays that models make from their inputs, forward and backward, fp32 between one load and one
// store. Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (x, A, bias, and all gradients)
// -DGATE=Bf16|Fp16|Fp32 (g, w).
//   gate_logsigmoid  g = scale log sigmoid(x)
//   rwkv7_log_decay  w = -e^{-1/2} sigmoid(x)
//   gate_softplus    g = -e^A softplus(x + bias)
// 256 threads. Grid (x) of the first two: ceil(count / 2048), every tensor [count]; of gate_softplus:
// column_blocks x ceil(tokens / 128), then H.
#include "each.cuh"
#include "gate_softplus.cuh"
#include "logistic.cuh"

using Element = ELEMENT;
using Gate = GATE;

// log sigmoid(x) = -softplus(-x).
extern "C" __global__ void __launch_bounds__(256)
    gate_logsigmoid(const Element::Bits* x, Gate::Bits* g, float scale, i64 count) {
  map_elements<Element, Gate>({x}, g, count, [&](float z) { return -(softplus(-z) * scale); });
}
extern "C" __global__ void __launch_bounds__(256)
    gate_logsigmoid_backward(const Element::Bits* x, const Element::Bits* dg, Element::Bits* dx, float scale,
                             i64 count) {
  map_elements<Element, Element>({x, dg}, dx, count,
                                 [&](float z, float d) { return Logistic::of(z).complement * scale * d; });
}

constexpr float largest_decay = 0x1.368b3p-1f;  // e^{-1/2}, 0.19 u above it

extern "C" __global__ void __launch_bounds__(256)
    rwkv7_log_decay(const Element::Bits* x, Gate::Bits* w, i64 count) {
  map_elements<Element, Gate>({x}, w, count, [](float z) { return -(largest_decay * Logistic::of(z).at); });
}
// dx = dw w (1 - sigmoid(x)).
extern "C" __global__ void __launch_bounds__(256)
    rwkv7_log_decay_backward(const Element::Bits* x, const Element::Bits* dw, Element::Bits* dx, i64 count) {
  map_elements<Element, Element>({x, dw}, dx, count,
                                 [](float z, float d) { return -(largest_decay * Logistic::slope(z) * d); });
}

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
