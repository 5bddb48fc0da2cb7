#include "kernels/foreign_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kernels/composed_argument.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/program/steps.h"
#include "src/case/layouts.h"
#include "src/case/parameters.h"

namespace assay {
namespace {

using Kind = ArgumentEntry::Kind;

std::vector<int64_t> sequence_lengths(const ResolvedCase& c) {
  const std::vector<int64_t>& offsets = c.case_.cu_seqlens;
  if (offsets.empty()) return std::vector<int64_t>(static_cast<size_t>(c.sizes.B), c.sizes.T);
  std::vector<int64_t> lengths;
  for (size_t n = 1; n < offsets.size(); ++n) lengths.push_back(offsets[n] - offsets[n - 1]);
  return lengths;
}

std::vector<Axis> axes_of(const ArgumentSpec& spec, const Sizes& sizes) {
  std::vector<Axis> axes;
  for (std::string_view letter : spec.axes) axes.push_back({std::string(letter), sizes.of(letter)});
  return axes;
}

/// Row by row, the axes in the order that the plan lays them in.
std::vector<int64_t> strides_of(const std::vector<Axis>& axes, const std::vector<size_t>* order) {
  std::vector<int64_t> strides(axes.size());
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    const size_t axis = order ? (*order)[i] : i;
    strides[axis] = stride;
    stride *= axes[axis].size;
  }
  return strides;
}

/// "stride_q_T": elements from one token of q to the next, as it lies where the plan reads views, else row by
/// row in the plan's order.
void add_strides(const ResolvedCase& c, const ForeignKernel& foreign, ExpressionScope& scope) {
  const auto& views = foreign.plan.reads_views;
  for (const ArgumentSpec& input : tensors_read(foreign.plan, *foreign.op)) {
    const auto order = foreign.orders.find(std::string(input.name));
    std::vector<int64_t> strides =
        strides_of(axes_of(input, c.sizes), order == foreign.orders.end() ? nullptr : &order->second);
    if (std::find(views.begin(), views.end(), input.name) != views.end())
      for (const SizedArgument& given : c.inputs)
        if (given.layout && given.spec.name == input.name) strides = given.layout->strides;
    for (size_t i = 0; i < strides.size(); ++i) {
      std::string axis(input.axes[i]);
      std::replace(axis.begin(), axis.end(), '*', '_');
      scope.variables[fmt::format("stride_{}_{}", input.name, axis)] = static_cast<double>(strides[i]);
    }
  }
}

/// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
constexpr int64_t kGridLimits[] = {2147483647, 65535, 65535}, kBlockLimits[] = {1024, 1024, 64};
constexpr int64_t kMaxThreads = 1024, kMaxSharedBytes = 227 * 1024;

std::array<uint32_t, 3> extent_of(const PlanDocument& plan, const std::array<std::string, 3>& texts,
                                  const ExpressionScope& scope, const std::string& pointer, int64_t low,
                                  const int64_t (&limits)[3]) {
  std::array<uint32_t, 3> extent{};
  for (size_t i = 0; i < 3; ++i)
    extent[i] = static_cast<uint32_t>(
        evaluate_integer(texts[i], scope, plan.at(fmt::format("{}/{}", pointer, i)), low, limits[i]));
  return extent;
}

/// Is the output or gradient among those of the case?
bool gives(const ResolvedCase& c, std::string_view name) {
  return std::any_of(c.outputs.begin(), c.outputs.end(),
                     [&](const SizedArgument& output) { return output.spec.name == name; });
}

Argument pointer_argument(const ForeignKernel& foreign, const ArgumentEntry& entry, const ResolvedCase& c,
                          const ExpressionScope& scope) {
  PointerArgument pointer{
      entry.name, evaluate_integer(entry.expression, scope, foreign.plan.at(entry.where + "/offset"), 0,
                                   int64_t{1} << 50)};
  if (!stands_absent(foreign, entry.name, c)) return pointer;
  const bool is_input = find_argument(tensors_read(foreign.plan, *foreign.op), entry.name) != nullptr;
  if (!entry.zeros_when_absent || !is_input) return PointerArgument{};
  pointer.buffer = zeros_name(entry.name);
  return pointer;
}

Argument argument_of(const ForeignKernel& foreign, const ArgumentEntry& entry, const ResolvedCase& c,
                     const ExpressionScope& scope) {
  const std::string where = foreign.plan.at(entry.where);
  switch (entry.kind) {
    case Kind::null:
      return PointerArgument{};
    case Kind::pointer:
      return pointer_argument(foreign, entry, c, scope);
    case Kind::i8:
      return static_cast<int8_t>(evaluate_integer(entry.expression, scope, where, INT8_MIN, INT8_MAX));
    case Kind::i16:
      return static_cast<int16_t>(evaluate_integer(entry.expression, scope, where, INT16_MIN, INT16_MAX));
    case Kind::i32:
      return static_cast<int32_t>(evaluate_integer(entry.expression, scope, where, INT32_MIN, INT32_MAX));
    case Kind::i64:
      return evaluate_integer(entry.expression, scope, where, -(int64_t{1} << 53), int64_t{1} << 53);
    case Kind::f32:
      return Argument::rounded(evaluate(entry.expression, scope, where));
    case Kind::f64:
      return evaluate(entry.expression, scope, where);
    case Kind::composed:
      return composed_argument(foreign, entry, c, scope);
  }
  return PointerArgument{};
}

class Zeros : public TensorSource {
 public:
  uint64_t bits(int64_t) const override { return 0; }
};

/// A run of some blocks makes them where it reads them.
Tensor zeros(const ArgumentSpec& input, const ResolvedCase& c) {
  Tensor tensor;
  tensor.name = zeros_name(std::string(input.name));
  tensor.dtype = dtype_of(c.case_, input);
  tensor.axes = axes_of(input, c.sizes);
  if (!c.case_.blocks.empty() && tensor.bytes() > kLargestHeld)
    tensor.source = std::make_shared<Zeros>();
  else
    tensor.data.resize(static_cast<size_t>(tensor.bytes()));
  return tensor;
}

/// Tensors the case does not hold but a launch needs: the offsets of packed sequences, zeros for absent
/// inputs.
void add_constants(const ForeignKernel& foreign, const ResolvedCase& c,
                   const std::vector<LaunchEntry>& launches, const TensorMap& inputs, Program& plan) {
  if (!c.case_.cu_seqlens.empty() && !inputs.contains("cu_seqlens")) {
    Tensor offsets("cu_seqlens", Dtype::i64, {{"N+1", static_cast<int64_t>(c.case_.cu_seqlens.size())}});
    std::copy(c.case_.cu_seqlens.begin(), c.case_.cu_seqlens.end(), offsets.as<int64_t>().begin());
    plan.constants.push_back(std::move(offsets));
  }
  for (const ArgumentSpec& input : tensors_read(foreign.plan, *foreign.op)) {
    if (c.has(input.name)) continue;
    const bool wanted = std::any_of(launches.begin(), launches.end(), [&](const LaunchEntry& launch) {
      return std::any_of(launch.arguments.begin(), launch.arguments.end(),
                         [&](const ArgumentEntry& a) { return a.wants_zeros(input.name); });
    });
    if (wanted) plan.constants.push_back(zeros(input, c));
  }
}

const Module& module_of(const ForeignKernel& foreign, const LaunchEntry& entry, const ResolvedCase& c) {
  return foreign.modules.at(with_formats(entry.ptx, c.dtype, c.gate_dtype));
}

/// Nothing where its grid has no blocks.
std::optional<Launch> launch_of(const ForeignKernel& foreign, const LaunchEntry& entry, const ResolvedCase& c,
                                const ExpressionScope& scope) {
  const PlanDocument& plan = foreign.plan;
  Launch launch;
  launch.module = module_of(foreign, entry, c).name;
  launch.function = with_formats(entry.function, c.dtype, c.gate_dtype);
  launch.grid = extent_of(plan, entry.grid, scope, entry.where + "/grid", 0, kGridLimits);
  // No blocks, nothing to do: a sequence of length 0 gives such a grid.
  if (int64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2] == 0) return std::nullopt;
  launch.block = extent_of(plan, entry.block, scope, entry.where + "/block", 1, kBlockLimits);
  const int64_t threads = int64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (threads > kMaxThreads)
    throw BadInput(fmt::format("{}: {} threads; a block has at most {}", plan.at(entry.where + "/block"),
                               threads, kMaxThreads));
  launch.shared_bytes = static_cast<uint32_t>(
      evaluate_integer(entry.shared, scope, plan.at(entry.where + "/shared"), 0, kMaxSharedBytes));
  for (const ArgumentEntry& argument : entry.arguments)
    launch.arguments.push_back(argument_of(foreign, argument, c, scope));
  return launch;
}

/// Makes every byte of the output or workspace 0; of an absent gradient there is nothing to fill.
void add_zeros(Program& program, const std::string& name) {
  int64_t bytes = 0;
  for (const Workspace& workspace : program.workspaces)
    if (workspace.name == name) bytes = workspace.bytes;
  for (const ProgramOutput& output : program.outputs) {
    if (output.name != name) continue;
    Tensor shape;
    shape.dtype = output.dtype, shape.axes = output.axes;
    bytes = shape.bytes();
  }
  add_fill(program, {name, 0}, bytes, 0, bytes % 4 == 0 ? 4 : 1);
}

/// What the launches write: outputs of the case, and as workspaces forward outputs that only gradients read.
void add_written(const ForeignKernel& foreign, const ResolvedCase& c,
                 const std::vector<LaunchEntry>& launches, Program& program) {
  for (const SizedArgument& output : c.outputs)
    if (passes(launches, output.spec.name))
      program.outputs.push_back({output.shape.name, output.shape.dtype, output.shape.axes});
  for (const ArgumentSpec& output : foreign.op->outputs)
    if (!gives(c, output.name) && passes(launches, output.name))
      program.workspaces.push_back({std::string(output.name), sized(output, c.case_).shape.bytes()});
}

}  // namespace

ExpressionScope scope_of(const ResolvedCase& c, const ForeignKernel& foreign) {
  const Operator& op = *foreign.op;
  ExpressionScope scope;
  const Sizes& sizes = c.sizes;
  for (const char* axis : {"B", "T", "H", "HV", "K", "V", "M", "N"})
    scope.variables[axis] = static_cast<double>(sizes.of(axis));
  scope.lengths = sequence_lengths(c);
  scope.variables["longest"] =
      scope.lengths.empty()
          ? 0.0
          : static_cast<double>(*std::max_element(scope.lengths.begin(), scope.lengths.end()));
  scope.variables["bytes"] = format(c.dtype).bytes;
  scope.variables["gate_bytes"] = format(c.gate_dtype).bytes;
  scope.variables["u"] = unit_roundoff(c.dtype);
  scope.variables["u_gate"] = unit_roundoff(c.gate_dtype);
  scope.variables["scale"] = c.scale;
  for (const ParameterSpec& spec : op.parameters)
    scope.variables[std::string(spec.name)] = parameter_of(c.case_, op, spec.name);
  scope.variables["packed"] = c.case_.cu_seqlens.empty() ? 0 : 1;
  for (const ArgumentSpec& input : tensors_read(foreign.plan, op))
    if (input.optional) scope.variables["has_" + std::string(input.name)] = c.has(input.name) ? 1 : 0;
  add_strides(c, foreign, scope);
  return scope;
}

std::vector<ArgumentSpec> tensors_read(const PlanDocument& plan, const Operator& op) {
  std::vector<ArgumentSpec> read = op.inputs;
  if (!plan.backward_launches.empty())
    for (const ArgumentSpec& cotangent : op.cotangents()) read.push_back(cotangent);
  return read;
}

std::vector<ArgumentSpec> tensors_written(const PlanDocument& plan, const Operator& op) {
  std::vector<ArgumentSpec> written = op.outputs;
  if (!plan.backward_launches.empty())
    for (const ArgumentSpec& gradient : op.gradients()) written.push_back(gradient);
  return written;
}

bool passes(const std::vector<LaunchEntry>& launches, std::string_view name) {
  for (const LaunchEntry& launch : launches)
    for (const ArgumentEntry& argument : launch.arguments)
      if (argument.names(name)) return true;
  return false;
}

bool stands_absent(const ForeignKernel& foreign, const std::string& name, const ResolvedCase& c) {
  if (name == "cu_seqlens") return c.case_.cu_seqlens.empty();
  if (find_argument(foreign.op->gradients(), name)) return !gives(c, name);
  return find_argument(tensors_read(foreign.plan, *foreign.op), name) && !c.has(name);
}

std::string zeros_name(const std::string& input) {
  return input + ".zeros";
}

std::vector<LaunchEntry> launches_for(const ForeignKernel& foreign, Direction direction) {
  const PlanDocument& plan = foreign.plan;
  if (direction == Direction::forward) return plan.launches;
  const auto left_by_forward = [&](const auto& named) {
    return passes(plan.launches, named.name) && passes(plan.backward_launches, named.name);
  };
  const std::vector<ArgumentSpec>& outputs = foreign.op->outputs;
  const bool follows = direction == Direction::both ||
                       std::any_of(outputs.begin(), outputs.end(), left_by_forward) ||
                       std::any_of(plan.workspaces.begin(), plan.workspaces.end(), left_by_forward);
  std::vector<LaunchEntry> launches;
  if (follows) launches = plan.launches;
  launches.insert(launches.end(), plan.backward_launches.begin(), plan.backward_launches.end());
  return launches;
}

const ArgumentSpec* find_argument(const std::vector<ArgumentSpec>& specs, const std::string& name) {
  const auto spec =
      std::find_if(specs.begin(), specs.end(), [&](const ArgumentSpec& s) { return s.name == name; });
  return spec == specs.end() ? nullptr : &*spec;
}

std::string with_formats(std::string name, Dtype dtype, Dtype gate) {
  for (const auto& [mark, value] : {std::pair{std::string("{gate_dtype}"), format(gate).name},
                                    std::pair{std::string("{dtype}"), format(dtype).name}})
    for (size_t at; (at = name.find(mark)) != std::string::npos;) name.replace(at, mark.size(), value);
  return name;
}

std::string refusal(const ForeignKernel& foreign, const ResolvedCase& c) {
  const PlanDocument& plan = foreign.plan;
  const std::vector<LaunchEntry> launches = launches_for(foreign, c.direction);
  if (!c.case_.cu_seqlens.empty() && !passes(launches, "cu_seqlens"))
    return "takes no packed sequences: no launch is given cu_seqlens";
  if (!plan.formula && c.case_.values == "exact")
    return "takes no exact values: its plan rounds inputs (\"formula\": false)";
  for (const SizedArgument& input : c.inputs)
    if (!passes(launches, input.spec.name))
      return fmt::format("takes no {}: no launch is given it", input.spec.name);
  if (evaluate(plan.accepts, scope_of(c, foreign), plan.at("/accepts")) == 0)
    return fmt::format("accepts only cases where {}", plan.accepts);
  return "";
}

Program plan_for_case(const ForeignKernel& foreign, const ResolvedCase& c, const TensorMap& inputs) {
  if (const std::string reason = refusal(foreign, c); !reason.empty())
    throw BadInput(fmt::format("{}: the kernel {}", foreign.plan.path, reason));
  const ExpressionScope scope = scope_of(c, foreign);
  const std::vector<LaunchEntry> launches = launches_for(foreign, c.direction);
  Program plan;
  plan.name = foreign.plan.name;
  add_written(foreign, c, launches, plan);
  for (const WorkspaceEntry& workspace : foreign.plan.workspaces)
    plan.workspaces.push_back(
        {workspace.name, evaluate_integer(workspace.bytes, scope, foreign.plan.at(workspace.where + "/bytes"),
                                          0, int64_t{1} << 40)});
  add_constants(foreign, c, launches, inputs, plan);
  for (const LaunchEntry& entry : launches) {
    if (!entry.fill.empty()) {
      add_zeros(plan, entry.fill);
      continue;
    }
    std::optional<Launch> launch = launch_of(foreign, entry, c, scope);
    if (!launch) continue;
    if (std::none_of(plan.modules.begin(), plan.modules.end(),
                     [&](const Module& known) { return known.name == launch->module; }))
      plan.modules.push_back(module_of(foreign, entry, c));
    plan.launches.push_back(std::move(*launch));
  }
  return plan;
}

}  // namespace assay
