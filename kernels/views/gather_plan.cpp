#include "kernels/views/gather_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/module_text.h"
#include "src/case/layouts.h"
#include "src/numerics/bad_input.h"

namespace assay {
namespace {

constexpr int64_t kRowsPerBlock = 64, kMostBlocks = 2147483647;
constexpr size_t kAxes = 4;

/// The launch that copies the view into the workspace. `layout` has a gap or another order: never of no axes.
Launch gather_launch(const std::string& input, const std::string& copy, const TensorLayout& layout,
                     int element_bytes) {
  std::array<int64_t, kAxes> size{1, 1, 1, 1}, stride{0, 0, 0, 0};
  std::copy_backward(layout.sizes.begin(), layout.sizes.end(), size.end());
  std::copy_backward(layout.strides.begin(), layout.strides.end(), stride.end());
  for (size_t i = 0; i < kAxes; ++i)
    if (size[i] == 1) stride[i] = i + 1 == kAxes ? 1 : 0;  // never stepped along: fit for whole units
  const int64_t rows = size[0] * size[1] * size[2], blocks = (rows + kRowsPerBlock - 1) / kRowsPerBlock;
  if (blocks > kMostBlocks)
    throw BadInput(fmt::format("layout of {}: {} rows, more than one launch can copy", input, rows));
  Launch launch;
  launch.module = "views/gather";
  launch.function = element_bytes == 2 ? "gather_16" : "gather_32";
  launch.grid = {static_cast<uint32_t>(blocks), 1, 1};
  launch.block = {256, 1, 1};
  launch.arguments = {PointerArgument{input, 0}, PointerArgument{copy, 0}, rows, size[3], size[1], size[2]};
  for (const int64_t each : stride) launch.arguments.emplace_back(each);
  return launch;
}

void read_copy_instead(Plan& plan, const std::string& input, const std::string& copy) {
  for (Launch& launch : plan.launches)
    for (Argument& argument : launch.arguments)
      if (auto* pointer = std::get_if<PointerArgument>(&argument))
        if (pointer->buffer == input) pointer->buffer = copy;
}

}  // namespace

Plan plan_with_views(const Case& c, const Kernel& kernel, const Operator& op, const TensorMap& inputs) {
  Plan plan = kernel.plan(c, op, inputs);
  std::vector<Launch> gathers;
  for (const ArgumentSpec& spec : inputs_of(c, op)) {
    const std::string input(spec.name);
    const auto tensor = inputs.find(input);
    if (tensor == inputs.end()) continue;
    const std::optional<TensorLayout> layout = layout_of(c, spec);
    if (!layout) continue;
    plan.layouts.emplace(input, *layout);
    if (kernel.reads_views.contains(input)) continue;
    const std::string copy = "copy of " + input;
    read_copy_instead(plan, input, copy);
    plan.workspaces.push_back({copy, tensor->second.bytes(), input});
    if (tensor->second.size() == 0) continue;
    gathers.push_back(gather_launch(input, copy, *layout, format(tensor->second.dtype).bytes));
  }
  if (!gathers.empty()) plan.modules.push_back(embedded_module("views/gather"));
  plan.launches.insert(plan.launches.begin(), gathers.begin(), gathers.end());
  return plan;
}

}  // namespace assay
