// The plans of simple_gla.fused_recurrent and of the operators it serves.
#include "kernels/device/recurrent_plan.h"
#include "kernels/simple_gla/recurrent_gradients.h"

namespace assay {
namespace {

using namespace gated;

Plan plan_of(const std::string& name, const Case& c, const Operator& op, const TensorMap& inputs) {
  ScalarPlan p(name, kept_every, c, op, inputs);
  if (runs_forward(c))
    add_recurrent(p.plan,
                  {.name = name,
                   .module = scalar_module("fused_recurrent", c, p.gates),
                   .function = "simple_gla_fused_recurrent_",
                   .gates = p.gates.pointer},
                  c, op, inputs);
  if (runs_backward(c)) add_recurrent_gradients(p);
  return p.plan;
}

Kernel recurrent_kernel(const char* operator_name) {
  Kernel kernel = scalar_kernel(operator_name, "fused_recurrent");
  kernel.summary = "one token after the other, the state in registers";
  kernel.arithmetic_text = "fp32 throughout: exponential, product and fused multiply-add once per token";
  kernel.resume_granularity = 1;
  kernel.plan = [name = kernel.name](const Case& c, const Operator& op, const TensorMap& inputs) {
    return plan_of(name, c, op, inputs);
  };
  kernel.arithmetic = recurrent_arithmetic;
  kernel.adjoint_arithmetic = scalar_recurrent_adjoint_arithmetic;
  return kernel;
}

}  // namespace

Kernel simple_gla_fused_recurrent() {
  return recurrent_kernel("simple_gla");
}
Kernel linear_attn_fused_recurrent() {
  return recurrent_kernel("linear_attn");
}
Kernel retention_fused_recurrent() {
  return recurrent_kernel("retention");
}
Kernel lightning_attn_fused_recurrent() {
  return recurrent_kernel("lightning_attn");
}

}  // namespace assay
