// The plans of simple_gla.fused_recurrent and of other operators of the family.
#include "kernels/device/recurrent_plan.h"
#include "kernels/device/scan_layout.h"
#include "kernels/scalar/recurrent_gradients.h"

namespace assay::scalar {
namespace {

Program plan_of(const Member& member, const ResolvedCase& c, const TensorMap& inputs) {
  ScalarPlan p(member, "fused_recurrent", device::kept_tokens, c, inputs);
  if (c.forward())
    add_recurrent(p.plan,
                  {.name = p.plan.name,
                   .module = scalar_module("fused_recurrent", c, p.gates),
                   .function = "simple_gla_fused_recurrent_",
                   .gates = p.gates.pointer},
                  c, inputs);
  if (c.backward()) add_recurrent_gradients(p);
  return p.plan;
}

}  // namespace

Kernel recurrent_kernel(const Member& member) {
  Kernel kernel = scalar_kernel(member, "fused_recurrent");
  kernel.summary = "one token after the other, the state in registers";
  kernel.arithmetic_text = "fp32 throughout: exponential, product and fused multiply-add once per token";
  kernel.resume_granularity = 1;
  kernel.plan = [member](const ResolvedCase& c, const TensorMap& inputs) {
    return plan_of(member, c, inputs);
  };
  kernel.arithmetic = recurrent_arithmetic;
  kernel.adjoint_arithmetic = scalar_recurrent_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay::scalar
