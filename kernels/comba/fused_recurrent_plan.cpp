// The plan of comba.fused_recurrent and the arithmetic it declares.
#include <algorithm>

#include "kernels/delta/delta_layout.h"
#include "kernels/delta/rule_plan.h"
#include "kernels/device/product_arithmetic.h"
#include "kernels/device/recurrent_capacity.h"

namespace assay {
namespace comba {
namespace {

using delta::RulePlan;
using gated::gamma;  // not libm's

const delta::Member member{"comba", delta::Gates::token, "comba"};

void add_forward(RulePlan& p) {
  p.use("fused_recurrent");
  p.scan_columns("", {p.input("q"), p.input("k"), p.input("v"), p.input("p"), p.input("beta"), p.gates,
                      p.input("initial_state"), p.output("o"), PointerArgument{"final_state", 0}});
}

void add_backward(RulePlan& p) {
  const RulePlan::Kept kept = p.keep();
  p.use("fused_recurrent_backward");
  p.scan_columns("residuals_", {p.input("k"), p.input("v"), p.input("p"), p.input("beta"), p.gates,
                                p.input("initial_state"), kept.residuals, kept.updates});
  p.scan_columns("values_",
                 {p.input("q"), p.input("k"), p.input("p"), p.input("beta"), p.gates, p.input("do"),
                  p.input("dfinal_state"), kept.residuals, p.output("dv"), kept.pulls, kept.products});
  const RulePlan::KeyGradient dq = p.key_gradient("dq"), dk = p.key_gradient("dk"), dp = p.key_gradient("dp");
  p.scan_rows("queries", {p.input("k"), p.gates, p.input("do"), p.input("initial_state"), kept.updates,
                          dq.stored, dq.of_value_heads, kept.states});
  p.scan_rows("keys",
              {p.input("q"), p.input("k"), p.input("p"), p.gates, p.input("do"), p.input("dfinal_state"),
               kept.updates, kept.pulls, kept.states, dk.stored, dk.of_value_heads, dp.stored,
               dp.of_value_heads, p.gate_gradient(), p.output("dinitial_state")});
  p.add_sums(kept.products);
}

Program plan_of(const ResolvedCase& c, const TensorMap& inputs) {
  RulePlan p(member, "fused_recurrent", delta::kept_tokens, c, inputs);
  if (c.forward()) add_forward(p);
  if (c.backward()) add_backward(p);
  return std::move(p.plan);
}

/// S as the delta rules' (delta::recurrent_arithmetic). G: fma(fl(scale q), do, G), then fma(-p, fl(beta
/// (k^T G)), fl(e G)). Sums over value channels round once per fused addition of a lane and once per halving
/// of the lanes; dq has the scale and its rounding, dg the product with e. Then come the sums of
/// delta/sums.cu: over a group's value heads, over key channels (dg), and over value channels (dbeta).
AdjointArithmetic adjoint_arithmetic(const ResolvedCase& c) {
  const Sizes& s = c.sizes;
  const double over_keys = delta::roundings_over_keys(s), over_values = device::Capacity(s.V).roundings();
  AdjointArithmetic a;
  a.state = a.adjoint = delta::recurrent_arithmetic(c);
  a.state.readout = gamma(over_values + 2);
  a.adjoint.readout = gamma(over_values);
  a.value_readout = gamma(over_keys + 1);
  a.gate_readout = gamma(over_values + 1 + delta::roundings_over_channels(s.K));
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  a.inner = gamma(std::max({over_keys + 2, over_values, 1 + delta::roundings_over_channels(s.V)}));
  a.total = gamma(delta::roundings_over_group(s.HV / s.H));
  return a;
}

}  // namespace
}  // namespace comba

Kernel comba_fused_recurrent() {
  Kernel kernel;
  kernel.name = "comba.fused_recurrent";
  kernel.operator_name = "comba";
  kernel.summary = "one token after the other, the state in registers";
  kernel.arithmetic_text = "fp32 throughout: exponential, product and fused multiply-adds once per token";
  kernel.limits = delta::rule_limits();
  kernel.resume_granularity = 1;
  kernel.exponents_nonpositive = true;
  kernel.plan = comba::plan_of;
  kernel.arithmetic = delta::recurrent_arithmetic;
  kernel.adjoint_arithmetic = comba::adjoint_arithmetic;
  return kernel;
}

}  // namespace assay
