// The plan of rwkv6.fused_recurrent and the arithmetic it declares.
#include <fmt/format.h>

#include "kernels/device/product_arithmetic.h"
#include "kernels/device/recurrent_plan.h"
#include "kernels/gla/plans.h"
#include "kernels/launch_tables.h"
#include "kernels/module_text.h"
#include "kernels/rwkv6/bonus_total.h"

namespace assay {
namespace {

Program rwkv6_fused_recurrent_plan(const ResolvedCase& c, const TensorMap& inputs) {
  gated::require_within(gla::channel_limits(), c, "rwkv6.fused_recurrent");
  Program plan;
  plan.name = "rwkv6.fused_recurrent";
  plan.outputs = gated::plan_outputs(c);
  const gated::Sequences sequences = gated::sequences_of(c, device::kept_tokens);
  plan.constants = {sequences.table};
  if (c.backward() && sequences.chunks > 0) plan.constants.push_back(sequences.chunk_table);
  const auto module = [&](const char* source) {
    return kernel_module(
        fmt::format("rwkv6/{}.{}.{}", source, format(c.dtype).name, format(c.gate_dtype).name));
  };
  const char* function = "rwkv6_fused_recurrent_";
  if (c.forward())
    gated::add_recurrent(plan,
                         {.name = plan.name,
                          .module = module("fused_recurrent"),
                          .function = function,
                          .query = "r",
                          .gates = gated::input_or_null(inputs, "w"),
                          .bonus = "u"},
                         c, inputs);
  if (c.backward()) {
    const Module backward = module("fused_recurrent_backward");
    gla::add_recurrent_backward(plan, {plan.name, backward, function, "r", "w", "u"}, c, inputs);
    rwkv6::add_bonus_total(plan, backward.name, c, sequences.chunks);
  }
  return plan;
}

/// One rounding more on the way of S to o: fma(u, k v, S).
Arithmetic rwkv6_fused_recurrent_arithmetic(const ResolvedCase& c) {
  Arithmetic a = gated::recurrent_arithmetic(c);
  a.readout = gated::compounded({a.readout, gated::gamma(1)});
  return a;
}

AdjointArithmetic rwkv6_fused_recurrent_adjoint_arithmetic(const ResolvedCase& c) {
  return rwkv6::with_bonus_total(gla::recurrent_adjoint_arithmetic(c, true), c, device::kept_tokens);
}

}  // namespace

Kernel rwkv6_fused_recurrent() {
  Kernel kernel;
  kernel.name = "rwkv6.fused_recurrent";
  kernel.operator_name = "rwkv6";
  kernel.summary = "one token after the other, the state in registers";
  kernel.arithmetic_text = "fp32 throughout: exponential, product and fused multiply-adds once per token";
  kernel.limits = gla::channel_limits();
  kernel.resume_granularity = 1;
  kernel.exponents_nonpositive = true;
  kernel.plan = rwkv6_fused_recurrent_plan;
  kernel.arithmetic = rwkv6_fused_recurrent_arithmetic;
  kernel.adjoint_arithmetic = rwkv6_fused_recurrent_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay
