#include "kernels/launch_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/device/tile_layout.h"
#include "kernels/module_text.h"
#include "src/base/numerics/bad_input.h"

namespace assay::gated {

Sequences sequences_of(const ResolvedCase& c, int64_t chunk) {
  std::vector<int64_t> offsets = c.case_.cu_seqlens;
  if (offsets.empty())
    for (int64_t n = 0; n <= c.sizes.B; ++n) offsets.push_back(n * c.sizes.T);

  Sequences result;
  result.count = static_cast<int64_t>(offsets.size()) - 1;
  for (int64_t n = 0; n < result.count; ++n)
    result.chunks += (offsets[n + 1] - offsets[n] + chunk - 1) / chunk;
  result.table = Tensor("sequences", Dtype::i64, {{"N", result.count}, {"field", 3}});
  result.chunk_table = Tensor("chunks", Dtype::i64, {{"chunk", result.chunks}, {"field", 2}});
  const auto sequence = result.table.as<int64_t>(), row = result.chunk_table.as<int64_t>();
  int64_t slot = 0;
  for (int64_t n = 0; n < result.count; ++n) {
    const int64_t first = offsets[n], tokens = offsets[n + 1] - first;
    sequence[3 * n] = first, sequence[3 * n + 1] = tokens, sequence[3 * n + 2] = slot;
    for (int64_t at = 0; at < tokens; at += chunk, ++slot)
      row[2 * slot] = first + at, row[2 * slot + 1] = std::min(chunk, tokens - at);
  }
  return result;
}

namespace {

void require_listed(const std::vector<Dtype>& allowed, Dtype dtype, const char* what,
                    const std::string& kernel) {
  if (std::find(allowed.begin(), allowed.end(), dtype) != allowed.end()) return;
  std::string names;
  for (Dtype each : allowed) names += fmt::format("{}{}", names.empty() ? "" : ", ", format(each).name);
  throw BadInput(fmt::format("{}: {} {} is not supported; use {}", kernel, what, format(dtype).name, names));
}

}  // namespace

void require_within(const KernelLimits& limits, const ResolvedCase& c, const std::string& kernel) {
  const Sizes& sizes = c.sizes;
  require_listed(limits.dtypes, c.dtype, "dtype", kernel);
  require_listed(limits.gate_dtypes, c.gate_dtype, "gate dtype", kernel);
  if (sizes.K < 1 || sizes.K > limits.max_K)
    throw BadInput(fmt::format("{}: K={} is outside 1..{}", kernel, sizes.K, limits.max_K));
  if (sizes.V < 1 || sizes.V > limits.max_V)
    throw BadInput(fmt::format("{}: V={} is outside 1..{}", kernel, sizes.V, limits.max_V));
  if (sizes.M > limits.max_M)
    throw BadInput(fmt::format("{}: M={} is outside 1..{}", kernel, sizes.M, limits.max_M));
  if (sizes.HV != sizes.H && !limits.value_heads)
    throw BadInput(
        fmt::format("{}: {} value heads for {} heads; they must be as many", kernel, sizes.HV, sizes.H));
}

PointerArgument input_or_null(const TensorMap& inputs, const std::string& name) {
  return inputs.count(name) ? PointerArgument{name, 0} : PointerArgument{};
}

std::vector<ProgramOutput> plan_outputs(const ResolvedCase& c) {
  std::vector<ProgramOutput> outputs;
  for (const SizedArgument& output : c.outputs)
    outputs.push_back({output.shape.name, output.shape.dtype, output.shape.axes});
  return outputs;
}

PointerArgument output_or_null(const Program& plan, const std::string& name) {
  const auto found = std::find_if(plan.outputs.begin(), plan.outputs.end(),
                                  [&](const ProgramOutput& output) { return output.name == name; });
  if (found == plan.outputs.end()) return {};
  for (const Axis& axis : found->axes)
    if (axis.size == 0) return {};
  return {name, 0};
}

PointerArgument workspace_of(Program& plan, const std::string& name, int64_t bytes) {
  if (bytes == 0) return {};
  if (!has(plan.workspaces, name)) plan.workspaces.push_back({name, bytes});
  return {name, 0};
}

std::string module_of(Program& plan, const std::string& name) {
  if (!has(plan.modules, name)) plan.modules.push_back(kernel_module(name));
  return name;
}

std::array<uint32_t, 3> grid_of(int64_t blocks, const std::string& kernel) {
  if (blocks > std::numeric_limits<int32_t>::max())
    throw BadInput(fmt::format(
        "{}: {} blocks exceed one launch (2^31 - 1); use fewer heads, sequences or tokens", kernel, blocks));
  return {static_cast<uint32_t>(blocks), 1, 1};
}

Launch& add_launch(Program& plan, const std::string& module, const std::string& function, int64_t blocks,
                   std::vector<Argument> arguments, uint32_t shared_bytes) {
  return plan.launches.emplace_back(Launch{.module = module,
                                           .function = function,
                                           .grid = grid_of(blocks, plan.name),
                                           .block = {device::block_threads, 1, 1},
                                           .shared_bytes = shared_bytes,
                                           .arguments = std::move(arguments)});
}

}  // namespace assay::gated
