// The plan of gate_logsigmoid.fused and the arithmetic it declares.
#include "kernels/device/product_arithmetic.h"
#include "kernels/elementwise/gate_plan.h"

namespace assay {

Kernel gate_logsigmoid_fused() {
  Kernel kernel = elementwise::gate_kernel("gate_logsigmoid");
  kernel.arithmetic_text = "fp32: exponential 2 u, log(1 + e) 4.5 u, no cancellation, subnormal numbers kept";
  kernel.plan = [](const ResolvedCase& c, const TensorMap&) {
    return elementwise::mapped_plan("gate_logsigmoid", "g", c, {Argument::rounded(c.scale)});
  };
  // softplus 9 u, the scale's own rounding and the product with it; sigmoid 5 u, the same two and the product
  // with dg.
  kernel.arithmetic = [](const ResolvedCase& c) { return elementwise::gate_arithmetic(c, gated::gamma(11)); };
  kernel.adjoint_arithmetic = [](const ResolvedCase& c) {
    return elementwise::gate_adjoint_arithmetic(c, gated::gamma(8));
  };
  return kernel;
}

}  // namespace assay
