// rwkv7_log_decay.fused: w = -e^{-1/2} sigmoid(x), forward and backward, fp32 between one load and one store.
// Built once per pair of formats: -DELEMENT=Bf16|Fp16|Fp32 (x, dw, dx) -DGATE=Bf16|Fp16|Fp32 (w).
// 256 threads. Grid (x): ceil(count / 2048); every tensor [count].
#include "../elementwise/each.cuh"
#include "../elementwise/logistic.cuh"

using Element = ELEMENT;
using Gate = GATE;

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
