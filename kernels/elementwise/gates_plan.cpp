// The plans of the gates that models make from their inputs, and the arithmetic they declare.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/device/product_arithmetic.h"
#include "kernels/kernel.h"
#include "kernels/launch_tables.h"
#include "kernels/module_text.h"

namespace assay {
namespace {

using namespace gated;

constexpr int64_t mapped_per_block = 2048, softplus_tokens = 128;  // as in each.cuh and gate_softplus.cuh
constexpr double subnormal = 0x1p-150;                             // nothing flushes

KernelLimits limits() {
  KernelLimits limits;
  limits.dtypes = limits.gate_dtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  return limits;
}

Plan empty_plan(const std::string& name, const Case& c, const Operator& op) {
  require_within(limits(), c, sizes_of(c), name);
  Plan plan;
  plan.kernel = name;
  plan.outputs = plan_outputs(c, op);
  plan.modules = {embedded_module(
      fmt::format("elementwise/gates.{}.{}", format(c.dtype).name, format(c.gate_dtype).name))};
  return plan;
}

void launch(Plan& plan, const std::string& function, int64_t blocks, std::vector<Argument> arguments) {
  if (blocks == 0) return;
  plan.launches.push_back({.module = plan.modules.front().name,
                           .function = function,
                           .grid = grid_of(blocks, plan.kernel),
                           .block = {256, 1, 1},
                           .arguments = std::move(arguments)});
}

/// `gate`: the output's name; `numbers`: scalars between the tensors and the count.
Plan mapped_plan(const std::string& operator_name, const std::string& gate, const Case& c, const Operator& op,
                 const std::vector<Argument>& numbers) {
  const Sizes s = sizes_of(c);
  Plan plan = empty_plan(operator_name + ".fused", c, op);
  const int64_t count = s.B * s.T * s.H * s.K, blocks = (count + mapped_per_block - 1) / mapped_per_block;
  const auto add = [&](const std::string& function, std::vector<Argument> arguments) {
    arguments.insert(arguments.end(), numbers.begin(), numbers.end());
    arguments.emplace_back(count);
    launch(plan, function, blocks, std::move(arguments));
  };
  if (runs_forward(c)) add(operator_name, {PointerArgument{"x", 0}, PointerArgument{gate, 0}});
  if (runs_backward(c))
    add(operator_name + "_backward",
        {PointerArgument{"x", 0}, PointerArgument{"d" + gate, 0}, PointerArgument{"dx", 0}});
  return plan;
}

/// How gate_softplus.cuh takes its columns: the fewest threads side by side that hold them.
struct SoftplusGrid {
  int64_t columns, quads = 8, column_blocks, token_blocks;

  explicit SoftplusGrid(const Sizes& s) : columns(s.H * s.K) {
    while (4 * quads < columns && quads < 256) quads *= 2;
    column_blocks = (columns + 4 * quads - 1) / (4 * quads);
    token_blocks = (s.B * s.T + softplus_tokens - 1) / softplus_tokens;
  }
  /// Additions on the longest path of a sum over all tokens and, for A, channels.
  double additions() const {
    const double rows = 256.0 / static_cast<double>(quads);
    return softplus_tokens / rows + rows + static_cast<double>(token_blocks) + 8;
  }
};

Plan softplus_plan(const Case& c, const Operator& op, const TensorMap& inputs) {
  const Sizes s = sizes_of(c);
  const SoftplusGrid grid(s);
  Plan plan = empty_plan("gate_softplus.fused", c, op);
  const PointerArgument x{"x", 0}, A = input_or_null(inputs, "A"), bias = input_or_null(inputs, "bias");
  const auto columns = static_cast<int32_t>(grid.columns), K = static_cast<int32_t>(s.K);
  const int64_t blocks = grid.token_blocks * grid.column_blocks;
  const auto add = [&](const char* function, std::vector<Argument> arguments) {
    for (const Argument& shape :
         {Argument(s.B * s.T), Argument(columns), Argument(K), Argument(static_cast<int32_t>(grid.quads)),
          Argument(static_cast<int32_t>(grid.column_blocks))})
      arguments.push_back(shape);
    launch(plan, function, blocks, std::move(arguments));
  };
  if (runs_forward(c)) add("gate_softplus", {x, A, bias, PointerArgument{"g", 0}});
  if (!runs_backward(c)) return plan;
  const PointerArgument dA = output_or_null(plan, "dA"), dbias = output_or_null(plan, "dbias");
  const bool totals = !dA.buffer.empty() || !dbias.buffer.empty();
  PointerArgument partial;
  if (totals && blocks > 0) {
    plan.workspaces.push_back({"partial", grid.token_blocks * grid.columns * 16});
    partial = {"partial", 0};
  }
  add("gate_softplus_backward", {x, A, bias, PointerArgument{"dg", 0}, PointerArgument{"dx", 0}, partial});
  if (totals)
    launch(plan, "gate_softplus_totals", s.H,
           {partial, dA, dbias, static_cast<int32_t>(grid.token_blocks), columns, K});
  return plan;
}

Arithmetic forward(const Case& c, double error) {
  Arithmetic a;
  a.readout = error;
  a.underflow = subnormal;
  a.output_roundoff = unit_roundoff(c.gate_dtype);
  return a;
}
AdjointArithmetic backward(const Case& c, double error) {
  AdjointArithmetic a;
  a.state.output_roundoff = unit_roundoff(c.dtype);
  a.adjoint.readout = error;
  a.adjoint.underflow = subnormal;
  return a;
}

Kernel gate_kernel(const char* operator_name) {
  Kernel kernel;
  kernel.name = std::string(operator_name) + ".fused";
  kernel.operator_name = operator_name;
  kernel.summary = "one pass, fp32 between load and store";
  kernel.limits = limits();
  return kernel;
}

}  // namespace

Kernel gate_logsigmoid_fused() {
  Kernel kernel = gate_kernel("gate_logsigmoid");
  kernel.arithmetic_text = "fp32: exponential 2 u, log(1 + e) 4.5 u, no cancellation, subnormal numbers kept";
  kernel.plan = [](const Case& c, const Operator& op, const TensorMap&) {
    return mapped_plan("gate_logsigmoid", "g", c, op, {static_cast<float>(scale_of(c, op))});
  };
  // softplus 9 u, the scale's own rounding and the product with it; sigmoid 5 u, the same two and the product
  // with dg.
  kernel.arithmetic = [](const Case& c) { return forward(c, gamma(11)); };
  kernel.adjoint_arithmetic = [](const Case& c) { return backward(c, gamma(8)); };
  return kernel;
}

Kernel rwkv7_log_decay_fused() {
  Kernel kernel = gate_kernel("rwkv7_log_decay");
  kernel.arithmetic_text = "fp32: sigmoid 5 u, as e / (1 + e) or 1 / (1 + e) without cancellation";
  kernel.plan = [](const Case& c, const Operator& op, const TensorMap&) {
    return mapped_plan("rwkv7_log_decay", "w", c, op, {});
  };
  // sigmoid 5 u, e^{-1/2} 0.19 u, their product. sigmoid (1 - sigmoid): both hold the same e, whose 2 u count
  // once as |d log / d log e| <= 1, and the same 1 / (1 + e), twice 2 u; u of e / (1 + e), then three
  // products and the constant.
  kernel.arithmetic = [](const Case& c) { return forward(c, gamma(6.2)); };
  kernel.adjoint_arithmetic = [](const Case& c) { return backward(c, gamma(10.2)); };
  return kernel;
}

Kernel gate_softplus_fused() {
  Kernel kernel = gate_kernel("gate_softplus");
  kernel.arithmetic_text =
      "fp32: x + bias exactly, as two floats; softplus 9 u, e^A 2 u; compensated sums for dA, dbias";
  kernel.plan = softplus_plan;
  // e^A 2 u, softplus 9 u, their product; with the cotangent one more. dx: e^A, sigmoid 5 u, two products, is
  // less. Sums over tokens: u, and (n u)^2 of the sum of absolute values (logistic.cuh).
  kernel.arithmetic = [](const Case& c) { return forward(c, gamma(12)); };
  kernel.adjoint_arithmetic = [](const Case& c) {
    AdjointArithmetic a = backward(c, gamma(13));
    const double spread = gamma(SoftplusGrid(sizes_of(c)).additions());
    a.total = u + 2 * spread * spread;
    return a;
  };
  return kernel;
}

}  // namespace assay
