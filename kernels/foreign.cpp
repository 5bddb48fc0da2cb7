#include "kernels/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "kernels/declared_arithmetic.h"
#include "kernels/plan_document.h"
#include "kernels/plan_expression.h"
#include "src/numerics/bad_input.h"
#include "src/ptx/program.h"

namespace assay {
namespace {

using Kind = ArgumentEntry::Kind;

/// What the closures of the Kernel share.
struct Foreign {
  PlanDocument plan;
  Module module;
  const Operator* op = nullptr;
};

bool is_present(const Case& c, const ArgumentSpec& input) {
  if (!input.optional) return true;
  return input.name == "initial_state" ? c.initial_state : !c.without.contains(std::string(input.name));
}

std::vector<int64_t> sequence_lengths(const Case& c) {
  if (c.cu_seqlens.empty()) return std::vector<int64_t>(static_cast<size_t>(c.B), c.T);
  std::vector<int64_t> lengths;
  for (size_t n = 1; n < c.cu_seqlens.size(); ++n) lengths.push_back(c.cu_seqlens[n] - c.cu_seqlens[n - 1]);
  return lengths;
}

ExpressionScope scope_of(const Case& c, const Operator& op) {
  ExpressionScope scope;
  const Sizes sizes = sizes_of(c);
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
  scope.variables["scale"] = c.scale.value_or(op.default_scale(sizes));
  scope.variables["packed"] = c.cu_seqlens.empty() ? 0 : 1;
  for (const ArgumentSpec& input : op.inputs)
    if (input.optional) scope.variables["has_" + std::string(input.name)] = is_present(c, input) ? 1 : 0;
  return scope;
}

std::vector<Axis> axes_of(const ArgumentSpec& spec, const Sizes& sizes) {
  std::vector<Axis> axes;
  for (std::string_view letter : spec.axes) axes.push_back({std::string(letter), sizes.of(letter)});
  return axes;
}

Dtype dtype_of(const ArgumentSpec& spec, const Case& c) {
  if (spec.role == Role::state) return Dtype::fp32;
  return spec.role == Role::log_decay ? c.gate_dtype : c.dtype;
}

const ArgumentSpec* find(const std::vector<ArgumentSpec>& specs, const std::string& name) {
  const auto spec =
      std::find_if(specs.begin(), specs.end(), [&](const ArgumentSpec& s) { return s.name == name; });
  return spec == specs.end() ? nullptr : &*spec;
}

bool passes(const PlanDocument& plan, std::string_view name) {
  for (const LaunchEntry& launch : plan.launches)
    for (const ArgumentEntry& argument : launch.arguments)
      if (argument.kind == Kind::pointer && argument.name == name) return true;
  return false;
}

std::string substitute(std::string text, Dtype dtype, Dtype gate) {
  for (const auto& [mark, value] : {std::pair{std::string("{gate_dtype}"), format(gate).name},
                                    std::pair{std::string("{dtype}"), format(dtype).name}})
    for (size_t at; (at = text.find(mark)) != std::string::npos;) text.replace(at, mark.size(), value);
  return text;
}

// ---- checks made once, when the files are read ----

/// Every pointer names something, every output is passed or said to be omitted, no workspace hides a tensor.
void check_names(const PlanDocument& plan, const Operator& op) {
  std::string known = "cu_seqlens";
  for (const auto* specs : {&op.inputs, &op.outputs})
    for (const ArgumentSpec& spec : *specs) known += ", " + std::string(spec.name);
  for (const WorkspaceEntry& workspace : plan.workspaces) {
    if (workspace.name == "cu_seqlens" || find(op.inputs, workspace.name) || find(op.outputs, workspace.name))
      throw BadInput(fmt::format("{}: \"{}\" is a tensor of {}; give the workspace another name",
                                 plan.at(workspace.where), workspace.name, op.name));
    known += ", " + workspace.name;
  }
  for (const LaunchEntry& launch : plan.launches)
    for (const ArgumentEntry& argument : launch.arguments) {
      if (argument.kind != Kind::pointer) continue;
      const bool is_workspace = std::any_of(plan.workspaces.begin(), plan.workspaces.end(),
                                            [&](const WorkspaceEntry& w) { return w.name == argument.name; });
      if (!is_workspace && argument.name != "cu_seqlens" && !find(op.inputs, argument.name) &&
          !find(op.outputs, argument.name))
        throw BadInput(
            fmt::format("{}: {} has no tensor \"{}\" and no workspace has that name; known here: {}",
                        plan.at(argument.where), op.name, argument.name, known));
    }
  for (const std::string& name : plan.omits)
    if (!find(op.outputs, name))
      throw BadInput(fmt::format("{}: {} has no output \"{}\"", plan.at("/omits"), op.name, name));
  for (const ArgumentSpec& output : op.outputs) {
    const bool omitted = std::find(plan.omits.begin(), plan.omits.end(), output.name) != plan.omits.end();
    if (!passes(plan, output.name) && !omitted)
      throw BadInput(fmt::format("{}: no launch is given the output \"{}\"; pass it, or list it in \"omits\"",
                                 plan.at("/launches"), output.name));
  }
  for (const ArgumentSpec& input : op.inputs)
    if (!input.optional && !passes(plan, input.name))
      throw BadInput(
          fmt::format("{}: no launch is given the input \"{}\"", plan.at("/launches"), input.name));
}

bool fits(const ArgumentEntry& argument, const ptx::Parameter& parameter) {
  const bool is_float = parameter.type == ptx::Type::f32 || parameter.type == ptx::Type::f64;
  const bool is_untyped = parameter.type == ptx::Type::b32 || parameter.type == ptx::Type::b64;
  switch (argument.kind) {
    case Kind::null:
    case Kind::pointer:
    case Kind::i64:
      return parameter.bytes == 8 && !is_float;
    case Kind::i32:
      return parameter.bytes == 4 && !is_float;
    case Kind::f32:
      return parameter.bytes == 4 && (is_float || is_untyped);
    case Kind::f64:
      return parameter.bytes == 8 && (is_float || is_untyped);
  }
  return false;
}

std::string_view kind_name(Kind kind) {
  static constexpr std::string_view kNames[] = {"a null pointer", "a pointer", "i32", "i64", "f32", "f64"};
  return kNames[static_cast<size_t>(kind)];
}

void check_entry(const PlanDocument& plan, const LaunchEntry& launch, const std::string& name,
                 const ptx::Module& module) {
  std::string known;
  for (const ptx::Function& function : module.functions) {
    if (!function.entry) continue;
    known += (known.empty() ? "" : ", ") + function.name;
    if (function.name != name) continue;
    if (function.parameters.size() != launch.arguments.size())
      throw BadInput(fmt::format("{}: {} arguments for {}, which has {} parameters ({})",
                                 plan.at(launch.where + "/arguments"), launch.arguments.size(), name,
                                 function.parameters.size(), module.path));
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      const ptx::Parameter& parameter = function.parameters[i];
      if (!fits(launch.arguments[i], parameter))
        throw BadInput(fmt::format("{}: {} does not fit the parameter {} of {}: .{}, {} bytes",
                                   plan.at(launch.arguments[i].where), kind_name(launch.arguments[i].kind),
                                   parameter.name, name, ptx::name_of(parameter.type), parameter.bytes));
    }
    return;
  }
  throw BadInput(fmt::format("{}: {} has no entry \"{}\"; it has: {}", plan.at(launch.where + "/function"),
                             module.path, name, known.empty() ? "none" : known));
}

/// Evaluates every expression once, for one token and for the plan's first formats, so that a misspelt name
/// shows at once.
void check_expressions(const Foreign& foreign) {
  Case sample;
  sample.T = 1;
  sample.dtype = foreign.plan.dtypes.front();
  sample.gate_dtype = foreign.plan.gate_dtypes.front();
  const ExpressionScope scope = scope_of(sample, *foreign.op);
  const PlanDocument& plan = foreign.plan;
  evaluate(plan.accepts, scope, plan.at("/accepts"));
  declared_arithmetic(plan, scope);
  for (const WorkspaceEntry& workspace : plan.workspaces)
    evaluate(workspace.bytes, scope, plan.at(workspace.where + "/bytes"));
  for (const LaunchEntry& launch : plan.launches) {
    for (const std::string& text : launch.grid) evaluate(text, scope, plan.at(launch.where + "/grid"));
    for (const std::string& text : launch.block) evaluate(text, scope, plan.at(launch.where + "/block"));
    evaluate(launch.shared, scope, plan.at(launch.where + "/shared"));
    for (const ArgumentEntry& argument : launch.arguments)
      if (argument.kind != Kind::null) evaluate(argument.expression, scope, plan.at(argument.where));
  }
}

void check_files(const Foreign& foreign) {
  check_names(foreign.plan, *foreign.op);
  const ptx::Module module = ptx::parse(*foreign.module.ptx, foreign.module.path);
  for (const LaunchEntry& launch : foreign.plan.launches)
    for (Dtype dtype : foreign.plan.dtypes)
      for (Dtype gate : foreign.plan.gate_dtypes)
        check_entry(foreign.plan, launch, substitute(launch.function, dtype, gate), module);
  check_expressions(foreign);
}

// ---- what the Kernel does for each case ----

std::string refusal(const Foreign& foreign, const Case& c) {
  const PlanDocument& plan = foreign.plan;
  if (!c.cu_seqlens.empty() && !passes(plan, "cu_seqlens"))
    return "takes no packed sequences: no launch is given cu_seqlens";
  for (const ArgumentSpec& input : foreign.op->inputs)
    if (is_present(c, input) && !passes(plan, input.name))
      return fmt::format("takes no {}: no launch is given it", input.name);
  if (evaluate(plan.accepts, scope_of(c, *foreign.op), plan.at("/accepts")) == 0)
    return fmt::format("accepts only cases where {}", plan.accepts);
  return "";
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

/// A name for the zeros passed in place of the absent input.
std::string zeros_name(const std::string& input) {
  return input + ".zeros";
}

Argument pointer_argument(const Foreign& foreign, const ArgumentEntry& entry, const Case& c,
                          const ExpressionScope& scope) {
  const ArgumentSpec* input = find(foreign.op->inputs, entry.name);
  if (entry.name == "cu_seqlens" && c.cu_seqlens.empty()) return PointerArgument{};
  PointerArgument pointer{
      entry.name, evaluate_integer(entry.expression, scope, foreign.plan.at(entry.where + "/offset"), 0,
                                   int64_t{1} << 50)};
  if (!input || is_present(c, *input)) return pointer;
  if (!entry.zeros_when_absent) return PointerArgument{};
  pointer.buffer = zeros_name(entry.name);
  return pointer;
}

Argument argument_of(const Foreign& foreign, const ArgumentEntry& entry, const Case& c,
                     const ExpressionScope& scope) {
  const std::string where = foreign.plan.at(entry.where);
  switch (entry.kind) {
    case Kind::null:
      return PointerArgument{};
    case Kind::pointer:
      return pointer_argument(foreign, entry, c, scope);
    case Kind::i32:
      return static_cast<int32_t>(evaluate_integer(entry.expression, scope, where, INT32_MIN, INT32_MAX));
    case Kind::i64:
      return evaluate_integer(entry.expression, scope, where, -(int64_t{1} << 53), int64_t{1} << 53);
    case Kind::f32:
      return static_cast<float>(evaluate(entry.expression, scope, where));
    case Kind::f64:
      return evaluate(entry.expression, scope, where);
  }
  return PointerArgument{};
}

/// Tensors the case does not hold but a launch needs: the offsets of packed sequences, zeros for absent
/// inputs.
void add_constants(const Foreign& foreign, const Case& c, const TensorMap& inputs, Plan& plan) {
  if (!c.cu_seqlens.empty() && !inputs.contains("cu_seqlens")) {
    Tensor offsets("cu_seqlens", Dtype::i64, {{"N+1", static_cast<int64_t>(c.cu_seqlens.size())}});
    std::copy(c.cu_seqlens.begin(), c.cu_seqlens.end(), offsets.as<int64_t>().begin());
    plan.constants.push_back(std::move(offsets));
  }
  const Sizes sizes = sizes_of(c);
  for (const ArgumentSpec& input : foreign.op->inputs) {
    if (is_present(c, input)) continue;
    const bool wanted = std::any_of(
        foreign.plan.launches.begin(), foreign.plan.launches.end(), [&](const LaunchEntry& launch) {
          return std::any_of(launch.arguments.begin(), launch.arguments.end(), [&](const ArgumentEntry& a) {
            return a.kind == Kind::pointer && a.zeros_when_absent && a.name == input.name;
          });
        });
    if (wanted)
      plan.constants.emplace_back(zeros_name(std::string(input.name)), dtype_of(input, c),
                                  axes_of(input, sizes));
  }
}

Launch launch_of(const Foreign& foreign, const LaunchEntry& entry, const Case& c,
                 const ExpressionScope& scope) {
  const PlanDocument& plan = foreign.plan;
  Launch launch;
  launch.module = foreign.module.name;
  launch.function = substitute(entry.function, c.dtype, c.gate_dtype);
  launch.grid = extent_of(plan, entry.grid, scope, entry.where + "/grid", 0, kGridLimits);
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

Plan plan_of(const Foreign& foreign, const Case& c, const TensorMap& inputs) {
  if (const std::string reason = refusal(foreign, c); !reason.empty())
    throw BadInput(fmt::format("{}: the kernel {}", foreign.plan.path, reason));
  const ExpressionScope scope = scope_of(c, *foreign.op);
  const Sizes sizes = sizes_of(c);
  Plan plan;
  plan.kernel = foreign.plan.name;
  plan.modules.push_back(foreign.module);
  for (const ArgumentSpec& output : foreign.op->outputs)
    if (passes(foreign.plan, output.name))
      plan.outputs.push_back({std::string(output.name), dtype_of(output, c), axes_of(output, sizes)});
  for (const WorkspaceEntry& workspace : foreign.plan.workspaces)
    plan.workspaces.push_back(
        {workspace.name, evaluate_integer(workspace.bytes, scope, foreign.plan.at(workspace.where + "/bytes"),
                                          0, int64_t{1} << 40)});
  add_constants(foreign, c, inputs, plan);
  for (const LaunchEntry& entry : foreign.plan.launches) {
    Launch launch = launch_of(foreign, entry, c, scope);
    // No blocks, nothing to do: a sequence of length 0 gives such a grid.
    if (int64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2] != 0)
      plan.launches.push_back(std::move(launch));
  }
  return plan;
}

std::string read_ptx(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw BadInput(
        fmt::format("{}: cannot be read; give the kernel's PTX with --ptx (nvcc -ptx writes it)", path));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string arithmetic_text(const PlanDocument& plan) {
  std::string text = plan.arithmetic_preset.value_or("");
  for (const auto& [name, value] : plan.arithmetic)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return "declared: " + text;
}

}  // namespace

Kernel load_foreign_kernel(const std::string& ptx_path, const std::string& plan_path) {
  auto foreign = std::make_shared<Foreign>();
  foreign->plan = read_plan_document(plan_path);
  PlanDocument& plan = foreign->plan;
  if (plan.name.empty()) plan.name = std::filesystem::path(ptx_path).stem().string();
  foreign->op = &find_operator(plan.operator_name);
  foreign->module = {plan.name, ptx_path, std::make_shared<const std::string>(read_ptx(ptx_path))};
  check_files(*foreign);

  Kernel kernel;
  kernel.name = plan.name;
  kernel.operator_name = plan.operator_name;
  kernel.summary = plan.summary.empty() ? "from " + ptx_path : plan.summary;
  kernel.arithmetic_text = arithmetic_text(plan);
  kernel.limits = {plan.dtypes, plan.gate_dtypes, plan.max_K, plan.max_V, plan.gate_min, plan.gate_max};
  // Not declared: no split resumes with the same bits, so no multiple of the granularity lies inside a
  // sequence.
  kernel.resume_granularity = plan.resume_granularity.value_or(int64_t{1} << 40);
  kernel.exponents_nonpositive = plan.exponents_nonpositive;
  kernel.plan = [foreign](const Case& c, const Operator&, const TensorMap& inputs) {
    return plan_of(*foreign, c, inputs);
  };
  kernel.arithmetic = [foreign](const Case& c) {
    return declared_arithmetic(foreign->plan, scope_of(c, *foreign->op));
  };
  kernel.refuses = [foreign](const Case& c) { return refusal(*foreign, c); };
  return kernel;
}

}  // namespace assay
