// The plan of rwkv7.fused_recurrent and the arithmetic it declares, forward and backward.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/delta/delta_layout.h"
#include "kernels/device/product_arithmetic.h"
#include "kernels/device/recurrent_capacity.h"
#include "kernels/gla/plans.h"
#include "kernels/launch_tables.h"
#include "kernels/rwkv7/launches.h"

namespace assay {
namespace {

using namespace gated;

void add_rwkv7_forward(Program& plan, const ResolvedCase& c, const TensorMap& inputs) {
  const auto input = [&](const char* name) { return input_or_null(inputs, name); };
  rwkv7::Launches launches(plan, "fused_recurrent", c, {"sequences", c.sizes.N});
  launches.by_columns(
      "", {input("r"), input("w"), input("k"), input("v"), input("a"), input("b"), input("initial_state"),
           output_or_null(plan, "o"), PointerArgument{"final_state", 0}});
}

void add_rwkv7_backward(Program& plan, const ResolvedCase& c, const TensorMap& inputs) {
  const Sizes& s = c.sizes;
  const auto input = [&](const char* name) { return input_or_null(inputs, name); };
  const auto output = [&](const char* name) { return output_or_null(plan, name); };
  const int64_t of_tokens = 4 * s.B * s.T * s.H * s.V;
  const PointerArgument reads = workspace_of(plan, "reads", of_tokens),
                        pulls = workspace_of(plan, "pulls", of_tokens);

  rwkv7::Launches launches(plan, "fused_recurrent_backward", c, {"sequences", s.N});
  launches.by_columns(
      "reads_", {input("w"), input("k"), input("v"), input("a"), input("b"), input("initial_state"), reads});
  launches.by_columns("values_", {input("r"), input("w"), input("k"), input("a"), input("b"), input("do"),
                                  input("dfinal_state"), output("dv"), pulls});
  rwkv7::add_row_gradients(
      launches, plan, inputs,
      {reads, pulls, input("initial_state"), input("dfinal_state"), output("dinitial_state")},
      sequences_of(c, delta::kept_tokens).chunks);
}

Program rwkv7_plan(const ResolvedCase& c, const TensorMap& inputs) {
  require_within(gla::channel_limits(), c, "rwkv7.fused_recurrent");
  Program plan;
  plan.name = "rwkv7.fused_recurrent";
  plan.outputs = plan_outputs(c);
  plan.constants = {sequences_of(c, delta::kept_tokens).table};
  if (c.forward()) add_rwkv7_forward(plan, c, inputs);
  if (c.backward()) add_rwkv7_backward(plan, c, inputs);
  return plan;
}

/// Roundings of x^T S over the key channels of a column: fused additions of a lane's share split over 4 sums,
/// 2 additions of these, 2 over the lanes.
double roundings_over_keys(const Sizes& s) {
  return static_cast<double>(rwkv7::key_capacity(s)) / 16 + 4;
}

/// S = fma(e, S, fma(b, a^T S, fl(k v))): k v has its own rounding and that of the inner sum (write), b (a^T
/// S) those of the sum over key channels and of the inner sum (removal), everything that of the outer sum
/// (step). e as in device/recurrent_plan.cpp. o: the scale's rounding to fp32 and the product with it.
Arithmetic rwkv7_state_arithmetic(const ResolvedCase& c) {
  const Sizes& s = c.sizes;
  Arithmetic a;
  a.decay = 0x1p-25;
  a.decay_per_nat = 16 * u;
  a.write = gamma(2);
  a.removal = gamma(roundings_over_keys(s) + 1);
  a.step = u;
  a.readout = gamma(roundings_over_keys(s) + 2);
  a.underflow = 0x1p-126;
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

/// G: fma(fl(scale r), do, G), then fma(e, G, fl(a (G^T b))): scale r has two roundings (write), a (G^T b)
/// the sum's and the product's (removal). Sums over value channels round once per fused addition of a lane
/// and once per halving of the lanes; dr once more for the scale and once for its rounding, dw once for the
/// product with e^w. `inner` covers both the sums over key channels, S^T a and G^T b, and those over value
/// channels, da and db.
AdjointArithmetic rwkv7_adjoint_arithmetic(const ResolvedCase& c) {
  const Sizes& s = c.sizes;
  const double over_keys = roundings_over_keys(s), over_values = device::Capacity(s.V).roundings();
  AdjointArithmetic a;
  a.state = a.adjoint = rwkv7_state_arithmetic(c);
  a.state.readout = gamma(over_values + 2);
  a.adjoint.readout = gamma(over_values);
  a.value_readout = gamma(over_keys);
  a.gate_readout = gamma(over_values + 1);
  a.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  a.inner = gamma(std::max(over_keys, over_values));
  return a;
}

}  // namespace

Kernel rwkv7_fused_recurrent() {
  Kernel kernel;
  kernel.name = "rwkv7.fused_recurrent";
  kernel.operator_name = "rwkv7";
  kernel.summary = "one token after the other, the state in registers";
  kernel.arithmetic_text = "fp32 throughout: exponential, product and fused multiply-adds once per token";
  kernel.limits = gla::channel_limits();
  kernel.resume_granularity = 1;
  kernel.exponents_nonpositive = true;
  kernel.plan = rwkv7_plan;
  kernel.arithmetic = rwkv7_state_arithmetic;
  kernel.adjoint_arithmetic = rwkv7_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay
