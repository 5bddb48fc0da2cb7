#include "kernels/elementwise/gate_plan.h"

#include <fmt/format.h>

#include "kernels/device/product_arithmetic.h"
#include "kernels/device/tile_layout.h"
#include "kernels/elementwise/each_layout.h"
#include "kernels/launch_tables.h"
#include "kernels/module_text.h"

namespace assay::elementwise {

using namespace gated;

namespace {

constexpr double subnormal = 0x1p-150;  // nothing flushes

KernelLimits gate_limits() {
  KernelLimits limits;
  limits.dtypes = limits.gate_dtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  return limits;
}

std::string kernel_name(const std::string& operator_name) {
  return operator_name + ".fused";
}

}  // namespace

Program gate_plan(const std::string& operator_name, const ResolvedCase& c) {
  Program plan;
  plan.name = kernel_name(operator_name);
  require_within(gate_limits(), c, plan.name);
  plan.outputs = plan_outputs(c);
  plan.modules = {kernel_module(
      fmt::format("{}/fused.{}.{}", operator_name, format(c.dtype).name, format(c.gate_dtype).name))};
  return plan;
}

void add_launch(Program& plan, const std::string& function, int64_t blocks, int threads,
                std::vector<Argument> arguments) {
  if (blocks == 0) return;
  plan.launches.push_back({.module = plan.modules.front().name,
                           .function = function,
                           .grid = grid_of(blocks, plan.name),
                           .block = {static_cast<uint32_t>(threads), 1, 1},
                           .arguments = std::move(arguments)});
}

Program mapped_plan(const std::string& operator_name, const std::string& gate, const ResolvedCase& c,
                    const std::vector<Argument>& numbers) {
  const Sizes& s = c.sizes;
  Program plan = gate_plan(operator_name, c);
  const int64_t count = s.B * s.T * s.H * s.K, blocks = device::blocks_of(count, per_block);
  const auto add = [&](const std::string& function, std::vector<Argument> arguments) {
    arguments.insert(arguments.end(), numbers.begin(), numbers.end());
    arguments.emplace_back(count);
    add_launch(plan, function, blocks, threads, std::move(arguments));
  };
  if (c.forward()) add(operator_name, {PointerArgument{"x", 0}, PointerArgument{gate, 0}});
  if (c.backward())
    add(operator_name + "_backward",
        {PointerArgument{"x", 0}, PointerArgument{"d" + gate, 0}, PointerArgument{"dx", 0}});
  return plan;
}

Kernel gate_kernel(const std::string& operator_name) {
  Kernel kernel;
  kernel.name = kernel_name(operator_name);
  kernel.operator_name = operator_name;
  kernel.summary = "one pass, fp32 between load and store";
  kernel.limits = gate_limits();
  return kernel;
}

Arithmetic gate_arithmetic(const ResolvedCase& c, double error) {
  Arithmetic a;
  a.readout = error;
  a.underflow = subnormal;
  a.output_roundoff = unit_roundoff(c.gate_dtype);
  return a;
}

AdjointArithmetic gate_adjoint_arithmetic(const ResolvedCase& c, double error) {
  AdjointArithmetic a;
  a.state.output_roundoff = unit_roundoff(c.dtype);
  a.adjoint.readout = error;
  a.adjoint.underflow = subnormal;
  return a;
}

}  // namespace assay::elementwise
