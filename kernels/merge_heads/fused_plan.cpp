// The plan of merge_heads.fused and the arithmetic it declares.
#include <fmt/format.h>

#include <cmath>

#include "kernels/device/product_arithmetic.h"
#include "kernels/kernel.h"
#include "kernels/launch_tables.h"
#include "kernels/merge_heads/product_layout.h"
#include "kernels/module_text.h"

namespace assay {
namespace {

using namespace gated;

using merge_heads::block_rows, merge_heads::places_per_total;

KernelLimits merge_heads_limits() {
  KernelLimits limits;
  limits.dtypes = limits.gate_dtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  limits.max_K = limits.max_V = 1 << 16;
  return limits;
}

Program merge_heads_plan(const ResolvedCase& c, const TensorMap&) {
  const Sizes& s = c.sizes;
  Program plan;
  plan.name = "merge_heads.fused";
  require_within(merge_heads_limits(), c, plan.name);
  plan.outputs = plan_outputs(c);
  plan.modules = {kernel_module(fmt::format("merge_heads/fused.{}.none", format(c.dtype).name))};
  const int64_t tokens = s.B * s.T, inner = s.H * s.V, outer = s.K;
  const auto of_tokens = [&](const char* name) {
    return tokens > 0 ? PointerArgument{name, 0} : PointerArgument{};
  };
  const PointerArgument x = of_tokens("x"), dy = of_tokens("dy"), weight{"weight", 0};
  const auto launch = [&](const char* function, int64_t rows, int64_t columns,
                          std::vector<Argument> arguments) {
    const int64_t blocks = device::blocks_of(rows, block_rows) * device::blocks_of(columns, block_rows);
    if (blocks == 0) return;
    for (const int64_t size : {tokens, inner, outer}) arguments.emplace_back(size);
    plan.launches.push_back({.module = plan.modules.front().name,
                             .function = function,
                             .grid = grid_of(blocks, plan.name),
                             .block = {device::block_threads, 1, 1},
                             .arguments = std::move(arguments)});
  };
  if (c.forward()) launch("merge_heads", tokens, outer, {x, weight, of_tokens("y")});
  if (c.backward()) {
    launch("merge_heads_inputs", tokens, inner, {dy, weight, of_tokens("dx")});
    launch("merge_heads_weights", inner, outer, {x, dy, PointerArgument{"dweight", 0}});
  }
  return plan;
}

/// A sum over so many places: what the operands and 64 places of tensor cores lose, and one addition per 64
/// places.
double sum_error(Dtype dtype, int64_t places) {
  const double totals = std::ceil(static_cast<double>(places) / static_cast<double>(places_per_total));
  return compounded({operand_error(dtype, 0), contraction(dtype, places_per_total), gamma(totals)});
}

Arithmetic merge_heads_arithmetic(const ResolvedCase& c) {
  const Sizes& s = c.sizes;
  Arithmetic a;
  a.readout = sum_error(c.dtype, s.H * s.V);
  a.underflow = 0x1p-126;
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

AdjointArithmetic merge_heads_adjoint_arithmetic(const ResolvedCase& c) {
  const Sizes& s = c.sizes;
  AdjointArithmetic a;
  a.adjoint.readout = sum_error(c.dtype, s.K);
  a.adjoint.underflow = 0x1p-126;
  a.value_readout = sum_error(c.dtype, s.B * s.T);
  a.state.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

}  // namespace

Kernel merge_heads_fused() {
  Kernel kernel;
  kernel.name = "merge_heads.fused";
  kernel.operator_name = "merge_heads";
  kernel.summary = "heads read where they lie, one matrix product on tensor cores";
  kernel.arithmetic_text =
      "bf16: bf16 operands; fp16: tf32 operands; fp32: tf32 operands in two parts; 64 places in the tensor "
      "cores' "
      "accumulator, then fp32 sums";
  kernel.limits = merge_heads_limits();
  kernel.plan = merge_heads_plan;
  kernel.arithmetic = merge_heads_arithmetic;
  kernel.adjoint_arithmetic = merge_heads_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay
