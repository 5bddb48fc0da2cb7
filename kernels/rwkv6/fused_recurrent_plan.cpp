// The plan of rwkv6.fused_recurrent and the arithmetic it declares.
#include <fmt/format.h>

#include "kernels/gated/launch_tables.h"
#include "kernels/gated/product_arithmetic.h"
#include "kernels/gated/recurrent_plan.h"
#include "kernels/gla/plans.h"
#include "kernels/module_text.h"

namespace assay {
namespace {

Plan plan(const Case& c, const Operator& op, const TensorMap& inputs) {
  const Sizes s = sizes_of(c);
  gated::require_within(gla::channel_limits(), c, s, "rwkv6.fused_recurrent");
  Plan plan;
  plan.kernel = "rwkv6.fused_recurrent";
  plan.outputs = gated::plan_outputs(c, op);
  plan.constants = {gated::sequences_of(c, s, gla::recurrent_chunk).table};
  gated::add_recurrent(plan,
                       {.name = plan.kernel,
                        .module = embedded_module(fmt::format(
                            "rwkv6/fused_recurrent.{}.{}", format(c.dtype).name, format(c.gate_dtype).name)),
                        .function = "rwkv6_fused_recurrent_",
                        .query = "r",
                        .gates = gated::input_or_null(inputs, "w"),
                        .bonus = "u"},
                       c, op, inputs);
  return plan;
}

/// One rounding more on the way of S to o: fma(u, k v, S).
GatedArithmetic arithmetic(const Case& c) {
  GatedArithmetic a = gated::recurrent_arithmetic(c);
  a.readout = gated::compounded({a.readout, gated::gamma(1)});
  return a;
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
  kernel.plan = plan;
  kernel.arithmetic = arithmetic;
  return kernel;
}

}  // namespace assay
