#include "kernels/foreign.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kernels/declared_arithmetic.h"
#include "kernels/foreign_plan.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/program/source_root.h"
#include "src/base/ptx/program.h"

namespace assay {
namespace {

using Kind = ArgumentEntry::Kind;

/// Every pointer names something, every output is passed or said to be omitted, no workspace hides a tensor.
void check_names(const PlanDocument& plan, const Operator& op) {
  std::string known = "cu_seqlens";
  for (const auto* specs : {&op.inputs, &op.outputs})
    for (const ArgumentSpec& spec : *specs) known += ", " + std::string(spec.name);
  for (const WorkspaceEntry& workspace : plan.workspaces) {
    if (workspace.name == "cu_seqlens" || find_argument(op.inputs, workspace.name) ||
        find_argument(op.outputs, workspace.name))
      throw BadInput(fmt::format("{}: \"{}\" is a tensor of {}; give the workspace another name",
                                 plan.at(workspace.where), workspace.name, op.name));
    known += ", " + workspace.name;
  }
  for (const LaunchEntry& launch : plan.launches)
    for (const ArgumentEntry& argument : launch.arguments) {
      if (argument.kind != Kind::pointer) continue;
      const bool is_workspace = std::any_of(plan.workspaces.begin(), plan.workspaces.end(),
                                            [&](const WorkspaceEntry& w) { return w.name == argument.name; });
      if (!is_workspace && argument.name != "cu_seqlens" && !find_argument(op.inputs, argument.name) &&
          !find_argument(op.outputs, argument.name))
        throw BadInput(
            fmt::format("{}: {} has no tensor \"{}\" and no workspace has that name; known here: {}",
                        plan.at(argument.where), op.name, argument.name, known));
    }
  for (const std::string& name : plan.omits)
    if (!find_argument(op.outputs, name))
      throw BadInput(fmt::format("{}: {} has no output \"{}\"", plan.at("/omits"), op.name, name));
  for (const std::string& name : plan.reads_views)
    if (!find_argument(op.inputs, name))
      throw BadInput(fmt::format("{}: {} has no input \"{}\"", plan.at("/reads_views"), op.name, name));
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

/// Kernel::orders: every axis of a tensor of the operator, once.
std::map<std::string, std::vector<size_t>> orders_of(const PlanDocument& plan, const Operator& op) {
  std::map<std::string, std::vector<size_t>> orders;
  for (const auto& [tensor, letters] : plan.layouts) {
    const std::string where = plan.at("/layouts/" + tensor);
    const ArgumentSpec* const input = find_argument(op.inputs, tensor);
    const ArgumentSpec* const output = find_argument(op.outputs, tensor);
    if (!input && !output) throw BadInput(fmt::format("{}: {} has no tensor \"{}\"", where, op.name, tensor));
    if (input && output)
      throw BadInput(fmt::format("{}: {} is read and written, and lies as the operator says", where, tensor));
    if (std::find(plan.reads_views.begin(), plan.reads_views.end(), tensor) != plan.reads_views.end())
      throw BadInput(fmt::format("{}: {} is read by its strides (\"reads_views\")", where, tensor));
    const std::vector<std::string_view> axes((input ? input : output)->axes.begin(),
                                             (input ? input : output)->axes.end());
    std::vector<size_t>& order = orders[tensor];
    for (const std::string& letter : letters) {
      const auto axis = static_cast<size_t>(std::find(axes.begin(), axes.end(), letter) - axes.begin());
      if (axis == axes.size() || std::find(order.begin(), order.end(), axis) != order.end()) break;
      order.push_back(axis);
    }
    if (order.size() != axes.size() || letters.size() != axes.size())
      throw BadInput(fmt::format("{}: write each axis of {} once, the slowest first: {}", where, tensor,
                                 fmt::join(axes, ", ")));
  }
  return orders;
}

bool fits(const ArgumentEntry& argument, const ptx::Parameter& parameter) {
  const bool is_float = parameter.type == ptx::Type::f32 || parameter.type == ptx::Type::f64;
  const bool is_untyped = parameter.type == ptx::Type::b32 || parameter.type == ptx::Type::b64;
  switch (argument.kind) {
    case Kind::null:
    case Kind::pointer:
    case Kind::i64:
      return parameter.bytes == 8 && !is_float;
    case Kind::i8:
      return parameter.bytes == 1;
    case Kind::i16:
      return parameter.bytes == 2 && !is_float;
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
  static constexpr std::string_view kNames[] = {
      "a null pointer", "a pointer", "i8", "i16", "i32", "i64", "f32", "f64"};
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
void check_expressions(const ForeignKernel& foreign) {
  Case sample;
  sample.T = 1;
  sample.dtype = foreign.plan.dtypes.front();
  sample.gate_dtype = foreign.plan.gate_dtypes.front();
  const ExpressionScope scope = scope_of(resolve_unchecked(sample, *foreign.op), foreign);
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

/// Instructions of a later architecture were never measured or modelled, and no GPU of an earlier one loads
/// such a file.
void check_target(const ptx::Module& module, const std::string& path) {
  constexpr int kLatest = 90;
  const size_t at = module.target.find("sm_");
  if (at == std::string::npos) return;
  int number = 0;
  std::from_chars(module.target.data() + at + 3, module.target.data() + module.target.size(), number);
  if (number > kLatest)
    throw BadInput(
        fmt::format("{}: its .target is {}; sm_{} is the latest that is known here: compile it for "
                    "that or an earlier one",
                    path, module.target, kLatest));
}

void check_files(const ForeignKernel& foreign) {
  check_names(foreign.plan, *foreign.op);
  std::map<std::string, ptx::Module> parsed;
  for (const auto& [file, module] : foreign.modules) {
    parsed[file] = ptx::parse_functions(*module.ptx, module.path);
    check_target(parsed[file], module.path);
  }
  for (const LaunchEntry& launch : foreign.plan.launches)
    for (Dtype dtype : foreign.plan.dtypes)
      for (Dtype gate : foreign.plan.gate_dtypes)
        check_entry(foreign.plan, launch, with_formats(launch.function, dtype, gate),
                    parsed.at(with_formats(launch.ptx, dtype, gate)));
  check_expressions(foreign);
}

/// What a file is that is no PTX, and what to do; empty where it may be PTX.
std::string instead_of_ptx(const std::filesystem::path& path, const std::string& text) {
  if (text.starts_with("\x7f"
                       "ELF"))
    return "a compiled binary, which no machine reads: give the PTX (nvcc -ptx -lineinfo writes it)";
  const std::string ending = path.extension();
  const bool source = ending == ".cu" || ending == ".cuh" || ending == ".cpp" || ending == ".cc";
  if (source || (text.find("__global__") != text.npos && text.find(".version") == text.npos))
    return fmt::format(
        "CUDA C++, not PTX: compile it first: nvcc -ptx -lineinfo -arch=compute_80 -o {}.ptx {}",
        path.stem().string(), path.string());
  if (ending == ".py")
    return "Python, not PTX: a Triton kernel's PTX is compiled.asm[\"ptx\"] (examples/triton_gla)";
  return "";
}

std::string read_ptx(const std::string& path, const std::string& advice) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path))
    throw BadInput(fmt::format("{}: cannot be read; {}", path, advice));
  std::ostringstream text;
  text << file.rdbuf();
  if (const std::string what = instead_of_ptx(path, text.str()); !what.empty())
    throw BadInput(fmt::format("{}: {}", path, what));
  return with_source_names(text.str());
}

/// Reads every PTX file that a launch can name for the declared formats. `given` is the one file, or the
/// folder of those that the launches name (empty: the plan's).
void read_modules(ForeignKernel& foreign, const std::string& given) {
  const PlanDocument& plan = foreign.plan;
  const std::filesystem::path folder =
      given.empty() ? std::filesystem::path(plan.path).parent_path() : std::filesystem::path(given);
  const bool is_file = !given.empty() && !std::filesystem::is_directory(given);
  for (const LaunchEntry& launch : plan.launches) {
    if (launch.ptx.empty()) {
      if (!is_file)
        throw BadInput(fmt::format("{}: names no PTX file (\"ptx\"); give {}", plan.at(launch.where),
                                   given.empty() ? "it with --ptx" : "--ptx the file, not a folder"));
      foreign.modules.try_emplace("", Module{plan.name, given, nullptr});
      continue;
    }
    if (is_file)
      throw BadInput(fmt::format("{}: names its PTX file; give --ptx the folder that holds it, not {}",
                                 plan.at(launch.where + "/ptx"), given));
    for (const Dtype dtype : plan.dtypes)
      for (const Dtype gate : plan.gate_dtypes) {
        const std::string file = with_formats(launch.ptx, dtype, gate);
        foreign.modules.try_emplace(file, Module{file, folder / file, nullptr});
      }
  }
  for (auto& [file, module] : foreign.modules)
    module.ptx = std::make_shared<const std::string>(read_ptx(
        module.path, file.empty() ? "give the kernel's PTX with --ptx (nvcc -ptx writes it)"
                                  : "a launch of " + plan.path + " names it; give its folder with --ptx"));
}

const Operator& operator_of(const PlanDocument& plan) {
  try {
    return find_operator(plan.operator_name);
  } catch (const BadInput& error) {
    throw BadInput(fmt::format("{}: {}", plan.at("/operator"), error.what()));
  }
}

std::string arithmetic_text(const PlanDocument& plan) {
  std::string text = plan.arithmetic_preset.value_or("");
  for (const auto& [name, value] : plan.arithmetic)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return "declared: " + text;
}

}  // namespace

Kernel load_foreign_kernel(const std::string& ptx_path, const std::string& plan_path) {
  auto foreign = std::make_shared<ForeignKernel>();
  foreign->plan = read_plan_document(plan_path);
  PlanDocument& plan = foreign->plan;
  if (plan.name.empty())
    plan.name = std::filesystem::path(ptx_path.empty() ? plan_path : ptx_path).stem().string();
  foreign->op = &operator_of(plan);
  foreign->orders = orders_of(plan, *foreign->op);
  read_modules(*foreign, ptx_path);
  check_files(*foreign);

  Kernel kernel;
  kernel.name = plan.name;
  kernel.operator_name = plan.operator_name;
  kernel.declares_roundings = false;
  kernel.summary = plan.summary.empty() ? "from " + (ptx_path.empty() ? plan_path : ptx_path) : plan.summary;
  kernel.arithmetic_text = arithmetic_text(plan);
  kernel.limits = {plan.dtypes, plan.gate_dtypes, plan.max_K, plan.max_V, plan.gate_min, plan.gate_max};
  // Not declared: no split resumes with the same bits, so no multiple of the granularity lies inside a
  // sequence.
  kernel.resume_granularity = plan.resume_granularity.value_or(int64_t{1} << 40);
  kernel.exponents_nonpositive = plan.exponents_nonpositive;
  kernel.reads_views = {plan.reads_views.begin(), plan.reads_views.end()};
  kernel.orders = foreign->orders;
  kernel.plan = [foreign](const ResolvedCase& c, const TensorMap& inputs) {
    return plan_for_case(*foreign, c, inputs);
  };
  kernel.arithmetic = [foreign](const ResolvedCase& c) {
    return declared_arithmetic(foreign->plan, scope_of(c, *foreign));
  };
  kernel.refuses = [foreign](const ResolvedCase& c) { return refusal(*foreign, c); };
  return kernel;
}

}  // namespace assay
