// The plan of gla.fused_recurrent and the arithmetic it declares.
#include "kernels/device/recurrent_plan.h"
#include "kernels/gla/plans.h"
#include "kernels/launch_tables.h"
#include "kernels/module_text.h"

namespace assay {
namespace {

KernelLimits gla_fused_recurrent_limits() {
  KernelLimits limits;
  limits.dtypes = limits.gate_dtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  return limits;
}

Program gla_fused_recurrent_plan(const ResolvedCase& c, const TensorMap& inputs) {
  gated::require_within(gla_fused_recurrent_limits(), c, "gla.fused_recurrent");
  Program plan;
  plan.name = "gla.fused_recurrent";
  plan.outputs = gated::plan_outputs(c);
  const gated::Sequences sequences = gated::sequences_of(c, device::kept_tokens);
  plan.constants = {sequences.table};
  if (c.backward() && sequences.chunks > 0) plan.constants.push_back(sequences.chunk_table);
  if (c.forward())
    gated::add_recurrent(plan,
                         {.name = plan.name,
                          .module = gla_module("fused_recurrent", c.dtype, c.gate_dtype),
                          .function = "gla_fused_recurrent_",
                          .gates = gated::input_or_null(inputs, "g")},
                         c, inputs);
  if (c.backward())
    gla::add_recurrent_backward(plan,
                                {.name = plan.name,
                                 .module = gla_module("fused_recurrent_backward", c.dtype, c.gate_dtype),
                                 .function = "gla_fused_recurrent_",
                                 .query = "q",
                                 .gate = "g"},
                                c, inputs);
  return plan;
}

}  // namespace

Kernel gla_fused_recurrent() {
  Kernel kernel;
  kernel.name = "gla.fused_recurrent";
  kernel.operator_name = "gla";
  kernel.summary = "one token after the other, the state in registers";
  kernel.arithmetic_text = "fp32 throughout: exponential, product and fused multiply-add once per token";
  kernel.limits = gla_fused_recurrent_limits();
  kernel.resume_granularity = 1;
  kernel.exponents_nonpositive = true;
  kernel.plan = gla_fused_recurrent_plan;
  kernel.arithmetic = gated::recurrent_arithmetic;
  kernel.adjoint_arithmetic = [](const ResolvedCase& c) {
    return gla::recurrent_adjoint_arithmetic(c, false);
  };
  return kernel;
}

}  // namespace assay
