#include "kernels/views/gather_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/module_text.h"
#include "kernels/views/gather_layout.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

constexpr int64_t kThreads = views::gather_threads, kMostBlocks = 2147483647,
                  kLargestPlane = int64_t{1} << 31;
constexpr size_t kAxes = 4;

struct ViewAxis {
  int64_t size = 1, stride = 0;  ///< of elements
};

/// The view's axes of more than one element, those made one that lie as one; as many as there are, four at
/// most.
std::vector<ViewAxis> joined_axes(const TensorLayout& layout) {
  std::vector<ViewAxis> axes;
  for (size_t i = 0; i < layout.sizes.size(); ++i) {
    const ViewAxis axis{layout.sizes[i], layout.strides[i]};
    if (axis.size == 1) continue;
    const bool joins = !axes.empty() && axes.back().stride == axis.size * axis.stride &&
                       axes.back().size * axis.size < kLargestPlane;
    if (joins)
      axes.back() = {axes.back().size * axis.size, axis.stride};
    else
      axes.push_back(axis);
  }
  return axes;
}

/// The launch that copies the view into the workspace. `layout` has a gap or another order: never of no axes.
Launch gather_launch(const std::string& input, const std::string& copy, const TensorLayout& layout,
                     int element_bytes) {
  std::array<ViewAxis, kAxes> axes;
  const std::vector<ViewAxis> joined = joined_axes(layout);
  std::copy_backward(joined.begin(), joined.end(), axes.end());
  int64_t planes = axes[0].size * axes[1].size, plane = axes[2].size * axes[3].size;
  if (plane >= kLargestPlane && axes[0].size == 1) {  // a plane of one row
    axes = {axes[1], axes[2], ViewAxis{}, axes[3]};
    planes = axes[0].size * axes[1].size, plane = axes[3].size;
  }
  const int64_t tiles = (plane + kThreads - 1) / kThreads;
  if (planes * tiles > kMostBlocks || plane >= kLargestPlane)
    throw BadInput(
        fmt::format("layout of {}: {} x {} elements, more than one launch can copy", input, planes, plane));
  const auto word = [](int64_t x) { return Argument{static_cast<int32_t>(x)}; };
  Launch launch;
  launch.module = gather_module;
  launch.function = element_bytes == 2 ? "gather_16" : "gather_32";
  launch.grid = {static_cast<uint32_t>(planes * tiles), 1, 1};
  launch.block = {kThreads, 1, 1};
  launch.arguments = {PointerArgument{input, 0}, PointerArgument{copy, 0}, word(tiles), word(plane),
                      word(axes[3].size),        word(axes[1].size)};
  for (const ViewAxis& axis : axes) launch.arguments.emplace_back(axis.stride);
  return launch;
}

void read_copy_instead(Program& plan, const std::string& input, const std::string& copy) {
  for (Launch& launch : plan.launches)
    for (Argument& argument : launch.arguments) redirect(argument, {{input, copy}});
}

}  // namespace

Program program_with_views(const Kernel& kernel, const ResolvedCase& c, const TensorMap& inputs) {
  Program program = kernel.plan(c, inputs);
  std::vector<Launch> gathers;
  for (const SizedArgument& argument : c.inputs) {
    const std::string& input = argument.shape.name;
    if (!argument.layout) continue;
    program.layouts.emplace(input, *argument.layout);
    if (kernel.reads_views.contains(input)) continue;
    const std::string copy = "copy of " + input;
    read_copy_instead(program, input, copy);
    program.workspaces.push_back({copy, argument.shape.bytes(), input});
    if (argument.shape.size() == 0) continue;
    gathers.push_back(gather_launch(input, copy, *argument.layout, format(argument.shape.dtype).bytes));
  }
  const bool given = std::any_of(program.modules.begin(), program.modules.end(),
                                 [](const Module& module) { return module.name == gather_module; });
  if (!gathers.empty() && !given) program.modules.push_back(kernel_module(gather_module));
  program.launches.insert(program.launches.begin(), gathers.begin(), gathers.end());
  return program;
}

}  // namespace assay
