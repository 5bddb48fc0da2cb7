// The plans of simple_gla.fused_recurrent and of the operators it serves.
#include <algorithm>

#include "kernels/gated/launch_tables.h"
#include "kernels/gated/recurrent_plan.h"
#include "kernels/simple_gla/gates.h"

namespace assay {
namespace {

using namespace gated;

Plan plan_of(const std::string& name, const Case& c, const Operator& op, const TensorMap& inputs) {
  const Sizes s = sizes_of(c);
  require_within(scalar_limits(), c, s, name);
  const ScalarGates gates = scalar_gates(c, op, inputs);
  Plan plan;
  plan.kernel = name;
  plan.outputs = plan_outputs(c, op);
  plan.constants = {sequences_of(c, s, std::max<int64_t>(s.T, 1)).table};
  if (gates.constant) plan.constants.push_back(*gates.constant);
  add_recurrent(plan,
                {.name = name,
                 .module = scalar_module("fused_recurrent", c, gates),
                 .function = "simple_gla_fused_recurrent_",
                 .gates = gates.pointer},
                c, op, inputs);
  return plan;
}

Kernel recurrent_kernel(const char* operator_name) {
  Kernel kernel;
  kernel.name = std::string(operator_name) + ".fused_recurrent";
  kernel.operator_name = operator_name;
  kernel.summary = "one token after the other, the state in registers";
  kernel.arithmetic_text = "fp32 throughout: exponential, product and fused multiply-add once per token";
  kernel.limits = scalar_limits();
  kernel.resume_granularity = 1;
  kernel.exponents_nonpositive = true;
  kernel.plan = [name = kernel.name](const Case& c, const Operator& op, const TensorMap& inputs) {
    return plan_of(name, c, op, inputs);
  };
  kernel.arithmetic = recurrent_arithmetic;
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
