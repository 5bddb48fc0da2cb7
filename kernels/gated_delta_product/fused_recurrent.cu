// What gated_delta_product.fused_recurrent adds to the gated delta rule's kernels (delta/fused_recurrent.cu,
// fused_recurrent_backward.cu), which run on the writes of all tokens: of a token's writes the first has its
// decay, the last its query and cotangent, and there outputs and gradients are. Bits are copied, nothing
// rounds. Built once per format, of elements and of gates: -DELEMENT=Bf16|Fp16|Fp32.
//   gated_delta_product_spread   x [token, width] -> y [token, writes, width], at `place`; zeros elsewhere
//   gated_delta_product_gather   x [token, writes, width] -> y [token, width], from `place`
// 128 threads, an element of y each. Grid (x): ceil(elements of y / 128).
#include "../device/format.cuh"

using Element = ELEMENT;

extern "C" __global__ void __launch_bounds__(128)
    gated_delta_product_spread(const Element::Bits* x, Element::Bits* y, i64 elements, int writes, int place,
                               int width) {
  const i64 at = i64(blockIdx.x) * 128 + int(threadIdx.x);
  if (at >= elements) return;
  const i64 row = at / width, token = row / writes;
  y[at] = row % writes == place ? x[token * width + at % width] : Element::Bits(0);
}

extern "C" __global__ void __launch_bounds__(128)
    gated_delta_product_gather(const Element::Bits* x, Element::Bits* y, i64 elements, int writes, int place,
                               int width) {
  const i64 at = i64(blockIdx.x) * 128 + int(threadIdx.x);
  if (at >= elements) return;
  const i64 token = at / width;
  y[at] = x[(token * writes + place) * width + at % width];
}
