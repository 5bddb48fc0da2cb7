// The plans of the delta rules' fused_recurrent kernels and the arithmetic they declare.
#include <algorithm>

#include "kernels/delta/delta_layout.h"
#include "kernels/delta/rule_plan.h"
#include "kernels/device/product_arithmetic.h"
#include "kernels/device/recurrent_capacity.h"

namespace assay::delta {
namespace {

using namespace gated;

void add_forward(RulePlan& p) {
  p.use("fused_recurrent");
  p.scan_columns("", {p.input("q"), p.input("k"), p.input("v"), p.input("beta"), p.input("beta_v"), p.gates,
                      p.input("initial_state"), p.output("o"), PointerArgument{"final_state", 0}});
}

void add_backward(RulePlan& p) {
  const RulePlan::Kept kept = p.keep();
  p.use("fused_recurrent_backward");
  p.scan_columns("residuals_", {p.input("k"), p.input("v"), p.input("beta"), p.input("beta_v"), p.gates,
                                p.input("initial_state"), kept.residuals, kept.updates});
  p.scan_columns("values_", {p.input("q"), p.input("k"), p.input("beta"), p.input("beta_v"), p.gates,
                             p.input("do"), p.input("dfinal_state"), kept.residuals, p.output("dv"),
                             p.output("dbeta_v"), kept.pulls, kept.products});
  const RulePlan::KeyGradient dq = p.key_gradient("dq"), dk = p.key_gradient("dk");
  p.scan_rows("queries", {p.input("k"), p.gates, p.input("do"), p.input("initial_state"), kept.updates,
                          dq.stored, dq.of_value_heads, kept.states});
  p.scan_rows("keys", {p.input("q"), p.input("k"), p.gates, p.input("do"), p.input("dfinal_state"),
                       kept.updates, kept.pulls, kept.states, dk.stored, dk.of_value_heads, p.gate_gradient(),
                       p.output("dinitial_state")});
  p.add_sums(kept.products);
}

Program recurrent_plan(const Member& member, const ResolvedCase& c, const TensorMap& inputs) {
  RulePlan p(member, "fused_recurrent", kept_tokens, c, inputs);
  if (c.forward()) add_forward(p);
  if (c.backward()) add_backward(p);
  return std::move(p.plan);
}

/// G: fma(fl(scale q), do, G), then fma(-k, fl(beta (k^T G)), G), then the product with e. Sums over value
/// channels round once per fused addition of a lane and once per halving of the lanes; dk's two sums are one
/// chain; dq has the scale and its rounding. Then come the sums of sums.cu: over a group's value heads, over
/// key channels (dg of a token), and over value channels (dbeta).
AdjointArithmetic adjoint_arithmetic(const Member& member, const ResolvedCase& c) {
  const Sizes& s = c.sizes;
  const device::Capacity lanes(s.V);
  const double over_keys = roundings_over_keys(s), over_values = lanes.roundings();
  AdjointArithmetic a;
  a.state = a.adjoint = recurrent_arithmetic(c);
  a.state.readout = gamma(over_values + 2);
  a.adjoint.readout = gamma(over_values + lanes.per_lane);
  a.value_readout = gamma(over_keys + 1);
  a.gate_readout = gamma(over_values + (member.gates == Gates::token ? roundings_over_channels(s.K) : 0));
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  a.inner = gamma(std::max(over_keys + 2, 1 + roundings_over_channels(s.V)));
  a.total = gamma(roundings_over_group(s.HV / s.H));
  return a;
}

}  // namespace

/// Roundings of x^T S over the key channels of a column: fused additions of a lane's share split over 4 sums,
/// 2 additions of these, 2 over the lanes.
double roundings_over_keys(const Sizes& s) {
  return static_cast<double>(device::Capacity(s.K).columns) / 16 + 4;
}

/// S' = fl(e S): e as in device/recurrent_plan.cpp, the product's rounding with it (exact where e is 1). S =
/// fma(k, u, S'), u = fl(beta fl(v - k^T S')): the sum over key channels, the subtraction and the product for
/// what is removed, the latter two for what is written. o: the scale's rounding to fp32 and the product with
/// it.
Arithmetic recurrent_arithmetic(const ResolvedCase& c) {
  const double over_keys = roundings_over_keys(c.sizes);
  Arithmetic a;
  a.decay = compounded({0x1p-25, u});
  a.decay_per_nat = 16 * u * (1 + u);
  a.write = gamma(2);
  a.removal = gamma(over_keys + 2);
  a.step = u;
  a.readout = gamma(over_keys + 2);
  a.underflow = 0x1p-126;
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

Kernel fused_recurrent(const Member& member) {
  Kernel kernel;
  kernel.name = member.name + ".fused_recurrent";
  kernel.operator_name = member.name;
  kernel.summary = "one token after the other, the state in registers";
  kernel.arithmetic_text = "fp32 throughout: exponential, product and fused multiply-adds once per token";
  kernel.limits = rule_limits();
  kernel.resume_granularity = 1;
  kernel.exponents_nonpositive = true;
  kernel.plan = [member](const ResolvedCase& c, const TensorMap& inputs) {
    return recurrent_plan(member, c, inputs);
  };
  kernel.arithmetic = recurrent_arithmetic;
  kernel.adjoint_arithmetic = [member](const ResolvedCase& c) { return adjoint_arithmetic(member, c); };
  return kernel;
}

}  // namespace assay::delta
