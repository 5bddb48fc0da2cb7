// gate_logsigmoid.fused: g = scale log sigmoid(x), forward and backward, fp32 between one load and one store.
// Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (x, dg, dx) -DGATE=Bf16|Fp16|Fp32 (g).
// 256 threads. Grid (x): ceil(count / 2048); every tensor [count].
#include "../elementwise/each.cuh"
#include "../elementwise/logistic.cuh"

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
