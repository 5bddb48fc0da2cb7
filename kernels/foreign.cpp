#include "kernels/foreign.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kernels/composed_argument.h"
#include "kernels/declared_arithmetic.h"
#include "kernels/foreign_plan.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/program/source_root.h"
#include "src/base/ptx/program.h"

namespace assay {
namespace {

using Kind = ArgumentEntry::Kind;

bool is_workspace(const PlanDocument& plan, const std::string& name) {
  return std::any_of(plan.workspaces.begin(), plan.workspaces.end(),
                     [&](const WorkspaceEntry& w) { return w.name == name; });
}

std::string list_of(const std::vector<ArgumentSpec>& specs) {
  std::string names;
  for (const ArgumentSpec& spec : specs) names += (names.empty() ? "" : ", ") + std::string(spec.name);
  return names;
}

/// Every pointer of these launches names a workspace or one of the tensors, every fill what may be written.
void check_pointers(const PlanDocument& plan, const std::vector<LaunchEntry>& launches,
                    const std::vector<ArgumentSpec>& read, const std::vector<ArgumentSpec>& written) {
  std::string workspaces;
  for (const WorkspaceEntry& workspace : plan.workspaces) workspaces += ", " + workspace.name;
  for (const LaunchEntry& launch : launches) {
    if (!launch.fill.empty() && !is_workspace(plan, launch.fill) && !find_argument(written, launch.fill))
      throw BadInput(fmt::format("{}: \"{}\" is no workspace and nothing that {} writes; known here: {}{}",
                                 plan.at(launch.where + "/fill"), launch.fill, plan.operator_name,
                                 list_of(written), workspaces));
    for (const ArgumentEntry& argument : launch.arguments)
      for (const std::string& name :
           argument.kind == Kind::pointer ? std::vector{argument.name} : argument.tensors)
        if (name != "cu_seqlens" && !is_workspace(plan, name) && !find_argument(read, name) &&
            !find_argument(written, name))
          throw BadInput(fmt::format(
              "{}: {} has no tensor \"{}\" and no workspace has that name; known here: cu_seqlens, {}, {}{}",
              plan.at(argument.where), plan.operator_name, name, list_of(read), list_of(written),
              workspaces));
  }
}

/// Every result is passed to one of the launches or said to be omitted, every argument that is always there
/// is passed.
void check_passed(const PlanDocument& plan, const std::vector<LaunchEntry>& launches, const char* where,
                  const std::vector<ArgumentSpec>& arguments, const std::vector<ArgumentSpec>& results) {
  for (const ArgumentSpec& result : results) {
    const bool omitted = std::find(plan.omits.begin(), plan.omits.end(), result.name) != plan.omits.end();
    if (!passes(launches, result.name) && !omitted)
      throw BadInput(fmt::format("{}: no launch is given the output \"{}\"; pass it, or list it in \"omits\"",
                                 plan.at(where), result.name));
  }
  for (const ArgumentSpec& argument : arguments)
    if (!argument.optional && !passes(launches, argument.name))
      throw BadInput(fmt::format("{}: no launch is given the input \"{}\"", plan.at(where), argument.name));
}

/// Every pointer names something, every output is passed or said to be omitted, no workspace hides a tensor.
void check_names(const PlanDocument& plan, const Operator& op) {
  const std::vector<ArgumentSpec> read = tensors_read(plan, op), written = tensors_written(plan, op);
  for (const WorkspaceEntry& workspace : plan.workspaces)
    if (workspace.name == "cu_seqlens" || find_argument(read, workspace.name) ||
        find_argument(written, workspace.name))
      throw BadInput(fmt::format("{}: \"{}\" is a tensor of {}; give the workspace another name",
                                 plan.at(workspace.where), workspace.name, op.name));
  check_pointers(plan, plan.launches, op.inputs, op.outputs);
  check_pointers(plan, plan.backward_launches, read, written);
  for (const std::string& name : plan.omits)
    if (!find_argument(written, name))
      throw BadInput(fmt::format("{}: {} has no output \"{}\"", plan.at("/omits"), op.name, name));
  for (const std::string& name : plan.reads_views)
    if (!find_argument(read, name))
      throw BadInput(fmt::format("{}: {} has no input \"{}\"", plan.at("/reads_views"), op.name, name));
  if (!plan.launches.empty()) check_passed(plan, plan.launches, "/launches", op.inputs, op.outputs);
  if (!plan.backward_launches.empty() && !op.evaluate_adjoint)
    throw BadInput(
        fmt::format("{}: gradients of {} are not known here", plan.at("/backward_launches"), op.name));
  if (!plan.backward_launches.empty())
    check_passed(plan, plan.backward_launches, "/backward_launches", op.cotangents(), op.gradients());
}

/// Kernel::orders: every axis of a tensor of the operator, once.
std::map<std::string, std::vector<size_t>> orders_of(const PlanDocument& plan, const Operator& op) {
  const std::vector<ArgumentSpec> read = tensors_read(plan, op), written = tensors_written(plan, op);
  std::map<std::string, std::vector<size_t>> orders;
  for (const auto& [tensor, letters] : plan.layouts) {
    const std::string where = plan.at("/layouts/" + tensor);
    const ArgumentSpec* const input = find_argument(read, tensor);
    const ArgumentSpec* const output = find_argument(written, tensor);
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
    case Kind::composed:
      return true;  // its size is known with the sizes of a case (check_composed)
  }
  return false;
}

std::string_view kind_name(Kind kind) {
  static constexpr std::string_view kNames[] = {
      "a null pointer", "a pointer", "i8", "i16", "i32", "i64", "f32", "f64", "a composed argument"};
  return kNames[static_cast<size_t>(kind)];
}

/// The launch's entry, whose parameters its arguments fit.
const ptx::Function& checked_entry(const PlanDocument& plan, const LaunchEntry& launch,
                                   const std::string& name, const ptx::Module& module) {
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
    return function;
  }
  throw BadInput(fmt::format("{}: {} has no entry \"{}\"; it has: {}", plan.at(launch.where + "/function"),
                             module.path, name, known.empty() ? "none" : known));
}

void check_launch_expressions(const PlanDocument& plan, const LaunchEntry& launch,
                              const ExpressionScope& scope) {
  if (!launch.fill.empty()) return;
  for (const std::string& text : launch.grid) evaluate(text, scope, plan.at(launch.where + "/grid"));
  for (const std::string& text : launch.block) evaluate(text, scope, plan.at(launch.where + "/block"));
  evaluate(launch.shared, scope, plan.at(launch.where + "/shared"));
  for (const ArgumentEntry& argument : launch.arguments)
    if (argument.kind != Kind::null && argument.kind != Kind::composed)
      evaluate(argument.expression, scope, plan.at(argument.where));
}

/// One token, the plan's first formats.
Case sample_of(const ForeignKernel& foreign) {
  Case sample;
  sample.T = 1;
  sample.dtype = foreign.plan.dtypes.front();
  sample.gate_dtype = foreign.plan.gate_dtypes.front();
  return sample;
}

/// Evaluates every expression once, for one token and for the plan's first formats, so that a misspelt name
/// shows at once.
void check_expressions(const ForeignKernel& foreign) {
  const ExpressionScope scope = scope_of(resolve_unchecked(sample_of(foreign), *foreign.op), foreign);
  const PlanDocument& plan = foreign.plan;
  evaluate(plan.accepts, scope, plan.at("/accepts"));
  declared_adjoint_arithmetic(plan, scope);  // and the forward numbers
  for (const WorkspaceEntry& workspace : plan.workspaces)
    evaluate(workspace.bytes, scope, plan.at(workspace.where + "/bytes"));
  for (const auto* launches : {&plan.launches, &plan.backward_launches})
    for (const LaunchEntry& launch : *launches) check_launch_expressions(plan, launch, scope);
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

/// Structs, bytes and tensor maps of a launch, made once: their form, and how many bytes the entry takes.
/// Those over what the sample lacks are made with a case.
void check_composed(const ForeignKernel& foreign, const LaunchEntry& launch, const ptx::Function& entry,
                    const ResolvedCase& sample) {
  const ExpressionScope scope = scope_of(sample, foreign);
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const ArgumentEntry& argument = launch.arguments[i];
    const bool lacking = std::any_of(argument.tensors.begin(), argument.tensors.end(),
                                     [&](const auto& name) { return stands_absent(foreign, name, sample); });
    if (argument.kind != Kind::composed || lacking) continue;
    const auto made = static_cast<int64_t>(composed_argument(foreign, argument, sample, scope).bytes.size());
    if (made != entry.parameters[i].bytes)
      throw BadInput(fmt::format("{}: {} bytes for the parameter {} of {}, which has {}",
                                 foreign.plan.at(argument.where), made, entry.parameters[i].name, entry.name,
                                 entry.parameters[i].bytes));
  }
}

void check_files(const ForeignKernel& foreign) {
  check_names(foreign.plan, *foreign.op);
  std::map<std::string, ptx::Module> parsed;
  for (const auto& [file, module] : foreign.modules) {
    parsed[file] = ptx::parse_functions(*module.ptx, module.path);
    check_target(parsed[file], module.path);
  }
  Case sample = sample_of(foreign);
  sample.initial_state = true;
  const ResolvedCase resolved = resolve_unchecked(sample, *foreign.op);
  for (const auto* launches : {&foreign.plan.launches, &foreign.plan.backward_launches})
    for (const LaunchEntry& launch : *launches)
      for (Dtype dtype : foreign.plan.dtypes)
        for (Dtype gate : foreign.plan.gate_dtypes)
          if (launch.fill.empty())
            check_composed(foreign, launch,
                           checked_entry(foreign.plan, launch, with_formats(launch.function, dtype, gate),
                                         parsed.at(with_formats(launch.ptx, dtype, gate))),
                           resolved);
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

/// Notes every PTX file that one of the launches can name for the declared formats. `given` is the one file,
/// or the folder of those that the launches name (empty: the plan's).
void note_modules(ForeignKernel& foreign, const std::vector<LaunchEntry>& launches,
                  const std::string& given) {
  const PlanDocument& plan = foreign.plan;
  const std::filesystem::path folder =
      given.empty() ? std::filesystem::path(plan.path).parent_path() : std::filesystem::path(given);
  const bool is_file = !given.empty() && !std::filesystem::is_directory(given);
  for (const LaunchEntry& launch : launches) {
    if (!launch.fill.empty()) continue;
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
}

void read_modules(ForeignKernel& foreign, const std::string& given) {
  const PlanDocument& plan = foreign.plan;
  note_modules(foreign, plan.launches, given);
  note_modules(foreign, plan.backward_launches, given);
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
  kernel.limits.rate_max = plan.rate_max;
  // Not declared: no split resumes with the same bits, so no multiple of the granularity lies inside a
  // sequence.
  kernel.resume_granularity = plan.resume_granularity.value_or(int64_t{1} << 40);
  kernel.exponents_nonpositive = plan.exponents_nonpositive;
  kernel.has_formula = plan.formula;
  kernel.reads_views = {plan.reads_views.begin(), plan.reads_views.end()};
  kernel.orders = foreign->orders;
  kernel.plan = [foreign](const ResolvedCase& c, const TensorMap& inputs) {
    return plan_for_case(*foreign, c, inputs);
  };
  if (!plan.launches.empty())
    kernel.arithmetic = [foreign](const ResolvedCase& c) {
      return declared_arithmetic(foreign->plan, scope_of(c, *foreign));
    };
  if (!plan.backward_launches.empty())
    kernel.adjoint_arithmetic = [foreign](const ResolvedCase& c) {
      return declared_adjoint_arithmetic(foreign->plan, scope_of(c, *foreign));
    };
  kernel.refuses = [foreign](const ResolvedCase& c) { return refusal(*foreign, c); };
  return kernel;
}

}  // namespace assay
