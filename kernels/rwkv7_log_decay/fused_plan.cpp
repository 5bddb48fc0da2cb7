// The plan of rwkv7_log_decay.fused and the arithmetic it declares.
#include "kernels/device/product_arithmetic.h"
#include "kernels/elementwise/gate_plan.h"

namespace assay {

Kernel rwkv7_log_decay_fused() {
  Kernel kernel = elementwise::gate_kernel("rwkv7_log_decay");
  kernel.arithmetic_text = "fp32: sigmoid 5 u, as e / (1 + e) or 1 / (1 + e) without cancellation";
  kernel.plan = [](const ResolvedCase& c, const TensorMap&) {
    return elementwise::mapped_plan("rwkv7_log_decay", "w", c, {});
  };
  // sigmoid 5 u, e^{-1/2} 0.19 u, their product. sigmoid (1 - sigmoid): both hold the same e, whose 2 u count
  // once as |d log / d log e| <= 1, and the same 1 / (1 + e), twice 2 u; u of e / (1 + e), then three
  // products and the constant.
  kernel.arithmetic = [](const ResolvedCase& c) {
    return elementwise::gate_arithmetic(c, gated::gamma(6.2));
  };
  kernel.adjoint_arithmetic = [](const ResolvedCase& c) {
    return elementwise::gate_adjoint_arithmetic(c, gated::gamma(10.2));
  };
  return kernel;
}

}  // namespace assay
