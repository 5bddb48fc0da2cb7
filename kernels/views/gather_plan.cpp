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

/// The view's axes of more than one element, those made one that lie as one.
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

/// The launch that copies four axes at most of the view into the workspace, from an element of each on.
Launch gather_launch(const std::string& input, const std::string& copy, const std::vector<ViewAxis>& of,
                     int64_t from, int64_t to, int element_bytes) {
  std::array<ViewAxis, kAxes> axes;
  std::copy_backward(of.begin(), of.end(), axes.end());
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
  launch.arguments = {PointerArgument{input, from * element_bytes},
                      PointerArgument{copy, to * element_bytes},
                      word(tiles),
                      word(plane),
                      word(axes[3].size),
                      word(axes[1].size)};
  for (const ViewAxis& axis : axes) launch.arguments.emplace_back(axis.stride);
  return launch;
}

/// Those that copy all of it, by each index of the outermost axes that are more than four. `layout` has a gap
/// or another order: never of no axes.
void add_gathers(std::vector<Launch>& launches, const std::string& input, const std::string& copy,
                 const TensorLayout& layout, int element_bytes) {
  std::vector<ViewAxis> axes = joined_axes(layout);
  std::vector<int64_t> from{0};
  for (; axes.size() > kAxes; axes.erase(axes.begin())) {
    std::vector<int64_t> each;
    for (const int64_t first : from)
      for (int64_t i = 0; i < axes[0].size; ++i) each.push_back(first + i * axes[0].stride);
    from = std::move(each);
  }
  int64_t elements = 1, to = 0;
  for (const ViewAxis& axis : axes) elements *= axis.size;
  for (const int64_t first : from) {
    launches.push_back(gather_launch(input, copy, axes, first, to, element_bytes));
    to += elements;
  }
}

void use_copy_instead(Program& plan, const std::string& tensor, const std::string& copy) {
  for (Launch& launch : plan.launches)
    for (Argument& argument : launch.arguments) redirect(argument, {{tensor, copy}});
}

/// Kernel::orders of the tensor; empty: that of the operator.
std::vector<size_t> order_of(const Kernel& kernel, const std::string& tensor) {
  const auto order = kernel.orders.find(tensor);
  return order == kernel.orders.end() ? std::vector<size_t>() : order->second;
}

template <class T>
std::vector<T> in_order(const std::vector<T>& of_axes, const std::vector<size_t>& order) {
  std::vector<T> made;
  for (const size_t axis : order) made.push_back(of_axes[axis]);
  return made;
}

Tensor row_by_row(const std::vector<Axis>& axes) {
  Tensor rows;
  rows.axes = axes;
  return rows;
}

/// The copies of inputs that lie otherwise than the kernel takes them.
std::vector<Launch> copies_before(const Kernel& kernel, const ResolvedCase& c, Program& program) {
  std::vector<Launch> copies;
  for (const SizedArgument& argument : c.inputs) {
    const std::string& input = argument.shape.name;
    const std::vector<size_t> order = order_of(kernel, input);
    if (argument.layout) program.layouts.emplace(input, *argument.layout);
    if ((!argument.layout && order.empty()) || kernel.reads_views.contains(input)) continue;
    const std::string copy = "copy of " + input;
    use_copy_instead(program, input, copy);
    program.workspaces.push_back({copy, argument.shape.bytes(), input, in_order(argument.shape.axes, order)});
    if (argument.shape.size() == 0) continue;
    TensorLayout from =
        argument.layout ? *argument.layout : layout_of_strides(argument.shape.axes, argument.shape.strides());
    if (!order.empty())
      from.sizes = in_order(from.sizes, order), from.strides = in_order(from.strides, order);
    add_gathers(copies, input, copy, from, format(argument.shape.dtype).bytes);
  }
  return copies;
}

/// The copies of outputs that the kernel writes otherwise than they lie.
std::vector<Launch> copies_after(const Kernel& kernel, Program& program) {
  std::vector<Launch> copies;
  for (const ProgramOutput& output : program.outputs) {
    const std::vector<size_t> order = order_of(kernel, output.name);
    if (order.empty()) continue;
    const std::string written = "copy of " + output.name;
    use_copy_instead(program, output.name, written);
    const Tensor rows = row_by_row(in_order(output.axes, order));
    const int bytes = format(output.dtype).bytes;
    program.workspaces.push_back({written, rows.size() * bytes, output.name, rows.axes});
    if (rows.size() == 0) continue;
    const std::vector<int64_t> of_rows = rows.strides();
    std::vector<int64_t> strides(order.size());
    for (size_t i = 0; i < order.size(); ++i) strides[order[i]] = of_rows[i];
    add_gathers(copies, written, output.name, layout_of_strides(output.axes, strides), bytes);
  }
  return copies;
}

}  // namespace

Program program_with_views(const Kernel& kernel, const ResolvedCase& c, const TensorMap& inputs) {
  Program program = kernel.plan(c, inputs);
  const std::vector<Launch> before = copies_before(kernel, c, program), after = copies_after(kernel, program);
  const bool given = std::any_of(program.modules.begin(), program.modules.end(),
                                 [](const Module& module) { return module.name == gather_module; });
  if (!(before.empty() && after.empty()) && !given) program.modules.push_back(kernel_module(gather_module));
  program.launches.insert(program.launches.begin(), before.begin(), before.end());
  program.launches.insert(program.launches.end(), after.begin(), after.end());
  return program;
}

}  // namespace assay
