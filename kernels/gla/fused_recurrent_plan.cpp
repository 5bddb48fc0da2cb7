// The plan of gla.fused_recurrent and the arithmetic it declares.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/gla/launch_tables.h"
#include "kernels/gla/plans.h"
#include "kernels/module_text.h"

namespace assay {
namespace {

constexpr int64_t columns = 32;  ///< value channels per block

KernelLimits limits() {
  KernelLimits limits;
  limits.dtypes = limits.gate_dtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  return limits;
}

/// Key channels the serving function holds: the smallest that is enough.
int64_t key_capacity(const Sizes& s) {
  return s.K <= 16 ? 16 : s.K <= 64 ? 64 : 256;
}

void add_forward(Plan& plan, const Case& c, const Operator& op, const TensorMap& inputs) {
  const Sizes s = sizes_of(c);
  plan.modules.push_back(gla_module("fused_recurrent", c.dtype, c.gate_dtype));
  Launch launch{.module = plan.modules.back().name,
                .function = fmt::format("gla_fused_recurrent_{}", key_capacity(s))};
  launch.grid = gla::grid_of(s.N * s.H * ((s.V + columns - 1) / columns), "gla.fused_recurrent");
  launch.block = {128, 1, 1};
  launch.arguments = {PointerArgument{"q", 0},
                      PointerArgument{"k", 0},
                      PointerArgument{"v", 0},
                      gla::input_or_null(inputs, "g"),
                      gla::input_or_null(inputs, "initial_state"),
                      s.T > 0 ? PointerArgument{"o", 0} : PointerArgument{},
                      PointerArgument{"final_state", 0},
                      PointerArgument{"sequences", 0},
                      static_cast<float>(scale_of(c, op)),
                      static_cast<int32_t>(s.H),
                      static_cast<int32_t>(s.K),
                      static_cast<int32_t>(s.V)};
  plan.launches.push_back(launch);
}

Plan plan(const Case& c, const Operator& op, const TensorMap& inputs) {
  const Sizes s = sizes_of(c);
  gla::require_within(limits(), c, s, "gla.fused_recurrent");
  Plan plan;
  plan.kernel = "gla.fused_recurrent";
  plan.outputs = gla::plan_outputs(c, op);
  plan.constants = {gla::sequences_of(c, s, gla::recurrent_chunk).table};
  if (runs_forward(c)) add_forward(plan, c, op, inputs);
  if (runs_backward(c)) gla::add_fused_recurrent_backward(plan, c, op, inputs);
  return plan;
}

constexpr double u = 0x1p-24;

/// S = fma(e, S, fl(k v)): one rounding of the product (write) and one of the sum (step). e is 1 + p rounded
/// once (2^-25 below 1) with p within 4 u relative, or, for more than 0.3466 nats, ex2 (2^-22 = 4 u <= 11.6 u
/// |x|); its argument g log2(e) has two roundings. Readout: fma chain of a lane's key channels split over 4
/// sums, 2 + 2 more additions, the scale and its own rounding: gamma of their number.
GatedArithmetic arithmetic(const Case& c) {
  const Sizes s = sizes_of(c);
  GatedArithmetic a;
  a.decay = 0x1p-25;
  a.decay_per_nat = 16 * u;
  a.write = u;
  a.step = u;
  const double roundings = static_cast<double>(key_capacity(s)) / 16 + 4 + 2;
  a.readout = roundings * u / (1 - roundings * u);
  a.underflow = 0x1p-126;
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

}  // namespace

Kernel gla_fused_recurrent() {
  Kernel kernel;
  kernel.name = "gla.fused_recurrent";
  kernel.operator_name = "gla";
  kernel.summary = "one token after the other, the state in registers";
  kernel.arithmetic_text = "fp32 throughout: exponential, product and fused multiply-add once per token";
  kernel.limits = limits();
  kernel.resume_granularity = 1;
  kernel.exponents_nonpositive = true;
  kernel.plan = plan;
  kernel.arithmetic = arithmetic;
  kernel.adjoint_arithmetic = gla::fused_recurrent_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay
