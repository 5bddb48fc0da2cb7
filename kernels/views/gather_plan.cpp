#include "kernels/views/gather_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/module_text.h"
#include "src/case/layouts.h"
#include "src/numerics/bad_input.h"

namespace assay {
namespace {

constexpr int64_t kRowsPerBlock = 64, kMostBlocks = 2147483647;
constexpr int64_t kUnit = 16;  // bytes
constexpr size_t kAxes = 4;

/// One of the view's axes, with its strides in the view and in the copy, in bytes.
struct ViewAxis {
  int64_t size = 1, view = 0, packed = 0;
};

/// Missing axes in front. Along an axis of size 1 nothing is ever stepped: 0 is fit for whole units of 16
/// bytes.
std::array<ViewAxis, kAxes> axes_of(const TensorLayout& layout, int64_t element_bytes) {
  std::array<ViewAxis, kAxes> axes;
  int64_t packed = element_bytes;
  for (size_t i = layout.sizes.size(), at = kAxes; i-- > 0; packed *= layout.sizes[i])
    axes[--at] = {layout.sizes[i], layout.sizes[i] > 1 ? layout.strides[i] * element_bytes : 0, packed};
  if (axes.back().size == 1) axes.back().view = element_bytes;
  return axes;
}

/// 2^n lanes for a row of so many units: the fewest that cover it, at most a warp and what takes 256 bytes.
int32_t lane_bits(int64_t units, int64_t unit_bytes) {
  const int64_t most = std::min<int64_t>(32, 256 / unit_bytes);
  int32_t bits = 0;
  while (1 << bits < std::min(units, most)) ++bits;
  return bits;
}

/// The launch that copies the view into the workspace. `layout` has a gap or another order: never of no axes.
Launch gather_launch(const std::string& input, const std::string& copy, const TensorLayout& layout,
                     int element_bytes) {
  std::array<ViewAxis, kAxes> axes = axes_of(layout, element_bytes);
  // Blocks take their rows along the longest axis.
  const auto longest = std::max_element(axes.begin(), axes.end() - 1,
                                        [](const ViewAxis& a, const ViewAxis& b) { return a.size < b.size; });
  std::swap(*longest, axes[2]);
  const auto& [outer, middle, row, last] = axes;
  const int64_t bytes = last.size * element_bytes, uneven = bytes | outer.view | middle.view | row.view;
  const bool whole = uneven % kUnit == 0 && last.view == element_bytes;
  const int64_t parts = (row.size + kRowsPerBlock - 1) / kRowsPerBlock, blocks = outer.size * middle.size * parts;
  if (blocks > kMostBlocks)
    throw BadInput(fmt::format("layout of {}: {} rows, more than one launch can copy", input,
                               outer.size * middle.size * row.size));
  Launch launch;
  launch.module = gather_module;
  launch.function = element_bytes == 2 ? "gather_16" : "gather_32";
  launch.grid = {static_cast<uint32_t>(blocks), 1, 1};
  launch.block = {256, 1, 1};
  launch.arguments = {PointerArgument{input, 0},          PointerArgument{copy, 0}, row.size, last.size,
                      static_cast<int32_t>(middle.size), static_cast<int32_t>(parts),
                      lane_bits(whole ? bytes / kUnit : last.size, whole ? kUnit : element_bytes),
                      int32_t{whole}};
  for (const int64_t stride :
       {outer.view, middle.view, row.view, last.view, outer.packed, middle.packed, row.packed})
    launch.arguments.emplace_back(stride);
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
  const bool given = std::any_of(plan.modules.begin(), plan.modules.end(),
                                 [](const Module& module) { return module.name == gather_module; });
  if (!gathers.empty() && !given) plan.modules.push_back(embedded_module(gather_module));
  plan.launches.insert(plan.launches.begin(), gathers.begin(), gathers.end());
  return plan;
}

}  // namespace assay
