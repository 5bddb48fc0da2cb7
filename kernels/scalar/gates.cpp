#include "kernels/scalar/gates.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "kernels/device/product_arithmetic.h"
#include "kernels/device/tile_layout.h"
#include "kernels/launch_tables.h"
#include "kernels/module_text.h"

namespace assay::scalar {

using namespace gated;

namespace {

constexpr const char* constants_name = "gamma";
constexpr const char* head_module = "simple_gla/head_gates";

int64_t tokens_of(const Sizes& s) {
  return s.B * s.T;
}

Launch head_launch(const char* function, const ResolvedCase& c, int64_t blocks,
                   std::vector<Argument> arguments) {
  Launch launch{.module = head_module,
                .function = fmt::format("simple_gla_{}_{}", function, format(c.gate_dtype).name)};
  launch.grid = grid_of(blocks, launch.function);
  launch.block = {device::block_threads, 1, 1};
  launch.arguments = std::move(arguments);
  launch.arguments.push_back(static_cast<int32_t>(c.sizes.H));
  return launch;
}

}  // namespace

ScalarGates add_scalar_gates(Program& plan, const Member& member, const ResolvedCase& c,
                             const TensorMap& inputs) {
  const Sizes& s = c.sizes;
  if (inputs.count("g"))
    return {"token-" + std::string(format(c.gate_dtype).name), PointerArgument{"g", 0},
            output_or_null(plan, "dg")};
  const PointerArgument constants{constants_name, 0};
  if (inputs.count("g_gamma")) {
    plan.modules.push_back(kernel_module(head_module));
    plan.workspaces.push_back({constants_name, s.H * 4});
    plan.launches.push_back(head_launch("head_gates", c, device::blocks_of(s.H, device::block_threads),
                                        {PointerArgument{"g_gamma", 0}, constants}));
    const PointerArgument sum = output_or_null(plan, "dg_gamma");
    if (sum.buffer.empty() || tokens_of(s) == 0) return {"head", constants, {}};
    plan.workspaces.push_back({"gate_gradients", tokens_of(s) * s.H * 4});
    return {"head", constants, PointerArgument{"gate_gradients", 0}};
  }
  if (!member.head_decay) return {"none", {}, {}};
  Tensor gamma(constants_name, Dtype::fp32, {{"H", s.H}});
  for (int64_t h = 0; h < s.H; ++h) gamma.set(h, member.head_decay(c, h) * std::numbers::log2e);
  plan.constants.push_back(std::move(gamma));
  return {"fixed", constants, {}};
}

void add_head_gate_gradients(Program& plan, const ResolvedCase& c, const ScalarGates& gates) {
  const PointerArgument sum = output_or_null(plan, "dg_gamma");
  if (sum.buffer.empty()) return;
  plan.launches.push_back(
      head_launch("sum_gates", c, c.sizes.H, {gates.gradients, sum, int64_t{tokens_of(c.sizes)}}));
}

/// Every 128th token by a thread, then 7 halvings.
double head_gate_total(const ResolvedCase& c) {
  return gamma(std::ceil(static_cast<double>(tokens_of(c.sizes)) / device::block_threads) + 7);
}

Module scalar_module(const std::string& mode, const ResolvedCase& c, const ScalarGates& gates) {
  const bool makes_gradients = mode == "parallel" || mode.find("_backward") != std::string::npos;
  const std::string& kind = gates.kind == "fixed" && !makes_gradients ? "head" : gates.kind;
  return kernel_module(fmt::format("simple_gla/{}.{}.{}", mode, format(c.dtype).name, kind));
}

}  // namespace assay::scalar
