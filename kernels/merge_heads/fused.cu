// merge_heads: the heads of a token side by side, times the projection: y = x W, and its gradients dx = dy
// W^T and dW = x^T dy. x [token, H, V] is [token, H V] as it lies in memory. Built once per format:
// -DELEMENT=Bf16|Fp16|Fp32.
//   x, dx [token, inner], weight, dweight [inner, outer], y, dy [token, outer]; inner = H V
// 128 threads; grid as in product.cuh.
#include "product.cuh"

using Element = ELEMENT;
using ByPlace = Side<Element, true>;
using ByRow = Side<Element, false>;

extern "C" __global__ void __launch_bounds__(128)
    merge_heads(const Element::Bits* x, const Element::Bits* weight, Element::Bits* y, i64 tokens, i64 inner,
                i64 outer) {
  product<Element>(ByPlace{x, inner, tokens, inner}, ByRow{weight, outer, outer, inner}, y);
}
extern "C" __global__ void __launch_bounds__(128)
    merge_heads_inputs(const Element::Bits* dy, const Element::Bits* weight, Element::Bits* dx, i64 tokens,
                       i64 inner, i64 outer) {
  product<Element>(ByPlace{dy, outer, tokens, outer}, ByPlace{weight, outer, inner, outer}, dx);
}
extern "C" __global__ void __launch_bounds__(128)
    merge_heads_weights(const Element::Bits* x, const Element::Bits* dy, Element::Bits* dweight, i64 tokens,
                        i64 inner, i64 outer) {
  product<Element>(ByRow{x, inner, inner, tokens}, ByRow{dy, outer, outer, tokens}, dweight);
}
