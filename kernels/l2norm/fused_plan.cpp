// The plan of l2norm.fused and the arithmetic it declares.
#include <fmt/format.h>

#include "kernels/device/product_arithmetic.h"
#include "kernels/device/tile_layout.h"
#include "kernels/kernel.h"
#include "kernels/l2norm/fused_layout.h"
#include "kernels/launch_tables.h"
#include "kernels/module_text.h"

namespace assay {
namespace {

using namespace gated;

KernelLimits l2norm_limits() {
  KernelLimits limits;
  limits.dtypes = limits.gate_dtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  limits.max_K = 1 << 16;
  return limits;
}

Program l2norm_plan(const ResolvedCase& c, const TensorMap&) {
  const Sizes& s = c.sizes;
  Program plan;
  plan.name = "l2norm.fused";
  require_within(l2norm_limits(), c, plan.name);
  plan.outputs = plan_outputs(c);
  plan.modules = {kernel_module(fmt::format("l2norm/fused.{}.none", format(c.dtype).name))};
  const int64_t rows = s.B * s.T * s.H, blocks = device::blocks_of(rows, l2norm::rows_per_block);
  const auto launch = [&](const char* function, std::vector<Argument> arguments) {
    if (blocks == 0) return;
    arguments.emplace_back(rows), arguments.emplace_back(static_cast<int32_t>(s.K));
    plan.launches.push_back({.module = plan.modules.front().name,
                             .function = function,
                             .grid = grid_of(blocks, plan.name),
                             .block = {32 * l2norm::rows_per_block, 1, 1},
                             .arguments = std::move(arguments)});
  };
  const PointerArgument x{"x", 0};
  if (c.forward()) launch("l2norm", {x, PointerArgument{"y", 0}});
  if (c.backward()) launch("l2norm_backward", {x, PointerArgument{"dy", 0}, PointerArgument{"dx", 0}});
  return plan;
}

/// A row's sum of products: fused additions of a lane, and five of lanes.
double sum_roundings(const ResolvedCase& c) {
  return static_cast<double>(device::blocks_of(c.sizes.K, 32)) + 5;
}
/// Of r, whose square root halves what n roundings of the square are: (1 - u)^-n/2 <= 1 / (1 - u n / 2).
double inverse_roundings(const ResolvedCase& c) {
  return (sum_roundings(c) + 1) / 2 + 2;
}

/// y: r and a product. Products of the smallest operands lose half of the smallest subnormal, nothing is
/// flushed.
Arithmetic l2norm_arithmetic(const ResolvedCase& c) {
  Arithmetic a;
  a.readout = gamma(inverse_roundings(c) + 1);
  a.underflow = 0x1p-150;
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}
/// dx: y, the sum with x, three times r, its two products, the difference and the last product.
AdjointArithmetic l2norm_adjoint_arithmetic(const ResolvedCase& c) {
  AdjointArithmetic a;
  a.adjoint.readout = gamma(3 * inverse_roundings(c) + sum_roundings(c) + 5);
  a.adjoint.underflow = 0x1p-150;
  a.state.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

}  // namespace

Kernel l2norm_fused() {
  Kernel kernel;
  kernel.name = "l2norm.fused";
  kernel.operator_name = "l2norm";
  kernel.summary = "one pass, a warp per token and head";
  kernel.arithmetic_text =
      "fp32: fused sums per lane, then of lanes; square root and reciprocal correctly rounded";
  kernel.limits = l2norm_limits();
  kernel.plan = l2norm_plan;
  kernel.arithmetic = l2norm_arithmetic;
  kernel.adjoint_arithmetic = l2norm_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay
