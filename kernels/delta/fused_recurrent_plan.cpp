// The plans of the delta rules' fused_recurrent kernels and the arithmetic they declare.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/delta/delta_layout.h"
#include "kernels/delta/rule_plan.h"
#include "kernels/device/product_arithmetic.h"
#include "kernels/device/recurrent_capacity.h"

namespace assay::delta {
namespace {

using namespace gated;

/// Key channels that the serving function of rule_columns.cuh holds.
int64_t key_capacity(const Sizes& s) {
  return device::Capacity(s.K).columns;
}

/// Adds a launch by value columns, each block some of them.
void add_by_columns(RulePlan& p, const std::string& scan, std::vector<Argument> arguments) {
  const Sizes& s = p.sizes;
  p.launch(fmt::format("delta_fused_recurrent_{}{}", scan, key_capacity(s)),
           s.N * s.HV * device::blocks_of(s.V, block_columns), std::move(arguments), p.sized());
}

void add_forward(RulePlan& p) {
  p.use("fused_recurrent");
  add_by_columns(p, "",
                 {p.input("q"), p.input("k"), p.input("v"), p.input("beta"), p.input("beta_v"), p.gates,
                  p.input("initial_state"), p.output("o"), PointerArgument{"final_state", 0}});
}

void add_backward(RulePlan& p) {
  const Sizes& s = p.sizes;
  const int64_t of_values = 4 * s.B * s.T * s.HV * s.V;
  const PointerArgument residuals = p.workspace("residuals", of_values),
                        updates = p.workspace("updates", of_values), pulls = p.workspace("pulls", of_values),
                        products = p.output("dbeta").buffer.empty() ? PointerArgument{}
                                                                    : p.workspace("products", of_values);
  p.use("fused_recurrent_backward");
  add_by_columns(p, "residuals_",
                 {p.input("k"), p.input("v"), p.input("beta"), p.input("beta_v"), p.gates,
                  p.input("initial_state"), residuals, updates});
  add_by_columns(p, "values_",
                 {p.input("q"), p.input("k"), p.input("beta"), p.input("beta_v"), p.gates, p.input("do"),
                  p.input("dfinal_state"), residuals, p.output("dv"), p.output("dbeta_v"), pulls, products});
  add_key_gradients(
      p, {"sequences", s.N, p.sequences.chunks},
      {updates, pulls, p.input("initial_state"), p.input("dfinal_state"), p.output("dinitial_state")});
  p.add_sums(products);
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
  return static_cast<double>(key_capacity(s)) / 16 + 4;
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

void add_key_gradients(RulePlan& p, const SequenceTable& sequences, const RuleGradients& from) {
  const Sizes& s = p.sizes;
  const device::Capacity capacity(s.V);
  const PointerArgument states =
      p.workspace("kept_states", 4 * sequences.kept * s.HV * s.K * capacity.columns);
  const RulePlan::KeyGradient dq = p.key_gradient("dq"), dk = p.key_gradient("dk");
  const PointerArgument dg = p.gate_gradient();
  const auto add = [&](const char* scan, std::vector<Argument> arguments) {
    p.launch(fmt::format("delta_fused_recurrent_{}_{}", scan, capacity.columns),
             sequences.count * s.HV * capacity.blocks(s.K), std::move(arguments), p.sized(sequences.name));
  };
  p.use("fused_recurrent_backward");
  add("queries", {p.input("k"), p.gates, p.input("do"), from.initial_state, from.updates, dq.stored,
                  dq.of_value_heads, states});
  add("keys", {p.input("q"), p.input("k"), p.gates, p.input("do"), from.dfinal_state, from.updates,
               from.pulls, states, dk.stored, dk.of_value_heads, dg, from.dinitial_state});
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
