#include "src/binding/given_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/declared_arithmetic.h"
#include "kernels/foreign_plan.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/vm/launch.h"
#include "src/binding/arrays.h"
#include "src/case/layouts.h"
#include "src/verification/verify/acceptance.h"

namespace assay::binding {
namespace {

using nlohmann::json;

TensorMap tensors_of(const Request& request) {
  TensorMap tensors;
  for (const assay_array& array : request.arrays) {
    const std::string name = array.name ? array.name : "";
    if (array.format < 0) throw BadInput(fmt::format("{}: no tensor of a known format", name));
    Tensor tensor = elements_of(array);
    for (Axis& axis : tensor.axes) axis.name.clear();
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

/// The format that a caller's input of this role is rounded to; nothing: it stays as it is.
std::optional<Dtype> target_of(const ArgumentSpec& spec, Dtype dtype, const json& given) {
  const bool is_gate = spec.role == Role::log_decay, is_state = spec.role == Role::state;
  const std::string asked = is_state ? "" : given.value(is_gate ? "gate_dtype" : "dtype", "");
  if (!asked.empty()) return format(asked).dtype;
  if (dtype == Dtype::fp64) return Dtype::fp32;
  return std::nullopt;
}

void round_inputs(const Case& c, const Operator& op, const json& given, TensorMap& raw,
                  std::vector<std::string>& notes) {
  for (const ArgumentSpec& spec : inputs_of(c, op)) {
    const auto found = raw.find(std::string(spec.name));
    if (found == raw.end()) continue;
    Tensor& tensor = found->second;
    const auto target = target_of(spec, tensor.dtype, given);
    if (!target || *target == tensor.dtype || format(tensor.dtype).precision == 0) continue;
    Tensor rounded(tensor.name, *target, tensor.axes);
    int64_t changed = 0;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const double value = tensor.value(i);
      rounded.set(i, value);
      changed += rounded.value(i) != value && value == value;
    }
    notes.push_back(fmt::format("{}: rounded from {} to {}, {} of {} values changed", spec.name,
                                format(tensor.dtype).name, format(*target).name, changed, tensor.size()));
    tensor = std::move(rounded);
  }
}

bool has_any(const TensorMap& raw, const std::vector<ArgumentSpec>& specs) {
  return std::any_of(specs.begin(), specs.end(),
                     [&](const ArgumentSpec& spec) { return raw.contains(std::string(spec.name)); });
}

/// Backward where a cotangent is there, both where an output is, too.
Direction direction_of_tensors(const json& given, const Operator& op, const TensorMap& raw) {
  if (const std::string asked = given.value("direction", ""); !asked.empty()) return direction_of(asked);
  if (!has_any(raw, op.cotangents())) return Direction::forward;
  return has_any(raw, op.outputs) ? Direction::both : Direction::backward;
}

/// A kernel of the operator that takes the case. Throws where there is none, saying what is missing.
const Kernel& kernel_for(const Case& c, const Operator& op) {
  std::string why;
  for (const Kernel& kernel : kernels()) {
    if (kernel.operator_name != op.name) continue;
    try {
      accepted(c, kernel);
      return kernel;
    } catch (const BadInput& error) {
      if (why.empty()) why = error.what();
    }
  }
  throw BadInput(
      fmt::format("{}: no kernel of ours declares an arithmetic for this case{}; say whose, or "
                  "which numbers: arithmetic=",
                  op.name, why.empty() ? "" : " (" + why + ")"));
}

std::string number_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// {"state": {..}, "adjoint": {..}, "value_readout": ..}
void read_backward(const json& given, PlanDocument& plan) {
  for (const auto& [name, value] : given.items()) {
    if (name != "state" && name != "adjoint") {
      plan.backward[name] = number_text(value);
      continue;
    }
    for (const auto& [number, text] : value.items())
      (name == "state" ? plan.backward_state : plan.backward_adjoint)[number] = number_text(text);
  }
}

Kernel declared_by_numbers(const json& given, const Operator& op) {
  auto foreign = std::make_shared<ForeignKernel>();
  foreign->op = &op;
  PlanDocument& plan = foreign->plan;
  plan.path = "arithmetic";
  std::string text;
  if (given.is_string()) {
    plan.arithmetic_preset = text = given.get<std::string>();
  } else {
    for (const auto& [name, value] : given.items()) {
      if (name == "backward") {
        read_backward(value, plan);
        continue;
      }
      const std::string number = number_text(value);
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, number);
      if (name == "preset")
        plan.arithmetic_preset = value.get<std::string>();
      else
        plan.arithmetic[name] = number;
    }
    if (!plan.arithmetic_preset) plan.arithmetic.try_emplace("output_roundoff", "u");
  }
  Kernel kernel;
  kernel.name = kernel.operator_name = op.name;
  kernel.arithmetic_text = text;
  kernel.declares_roundings = false;
  kernel.arithmetic = [foreign](const ResolvedCase& c) {
    return declared_arithmetic(foreign->plan, scope_of(c, *foreign));
  };
  kernel.adjoint_arithmetic = [foreign](const ResolvedCase& c) {
    return declared_adjoint_arithmetic(foreign->plan, scope_of(c, *foreign));
  };
  return kernel;
}

/// As one of our own kernels declares it.
Kernel declared_by(Kernel kernel, const Operator& op) {
  if (kernel.operator_name != op.name)
    throw BadInput(fmt::format("arithmetic: {} is a kernel of {}, not of {}", kernel.name,
                               kernel.operator_name, op.name));
  kernel.arithmetic_text = fmt::format("as {}: {}", kernel.name, kernel.arithmetic_text);
  return kernel;
}

}  // namespace

CaseOfTensors case_of_tensors(const Request& request) {
  const json& given = request.given;
  const std::string name = given.at("name");
  CaseOfTensors made;
  if (name.find('.') != name.npos) made.kernel = &find_kernel(name);
  made.op = &find_operator(made.kernel ? made.kernel->operator_name : name);
  TensorMap raw = tensors_of(request);
  Case base;
  base.kernel = name;
  base.direction = direction_of_tensors(given, *made.op, raw);
  if (given.contains("scale")) base.scale = given.at("scale").get<double>();
  base.parameters = given.value("parameters", std::map<std::string, double>());
  base.layout = layout_text(parse_layout(given.value("layout", "")));
  std::vector<std::string> notes;
  round_inputs(base, *made.op, given, raw, notes);
  made.given = fit_inputs(base, *made.op, std::move(raw), name, given.value("heads", int64_t{0}));
  made.given.notes.insert(made.given.notes.begin(), notes.begin(), notes.end());
  return made;
}

Kernel declaring_kernel(const Request& request, const CaseOfTensors& c) {
  const auto asked = request.given.find("arithmetic");
  if (asked == request.given.end() || asked->is_null()) {
    if (c.kernel) return *c.kernel;
    Kernel kernel = kernel_for(c.given.case_, *c.op);
    kernel.arithmetic_text = fmt::format("as {}: {}", kernel.name, kernel.arithmetic_text);
    return kernel;
  }
  if (!asked->is_string() || asked->get<std::string>().find('.') == std::string::npos)
    return declared_by_numbers(*asked, *c.op);
  return declared_by(find_kernel(asked->get<std::string>()), *c.op);
}

Kernel declared_kernel(const json& arithmetic, const Operator& op) {
  Kernel declares;
  if (arithmetic.is_null()) {
    const auto own = [&](const Kernel& kernel) { return kernel.operator_name == op.name; };
    const auto found = std::find_if(kernels().begin(), kernels().end(), own);
    if (found == kernels().end())
      throw BadInput(
          fmt::format("{}: no kernel of ours declares an arithmetic; say which: arithmetic=", op.name));
    declares = declared_by(*found, op);
  } else if (arithmetic.is_string() && arithmetic.get<std::string>().find('.') != std::string::npos) {
    declares = declared_by(find_kernel(arithmetic.get<std::string>()), op);
  } else {
    declares = declared_by_numbers(arithmetic, op);
  }
  Kernel kernel;
  kernel.name = kernel.operator_name = op.name;
  kernel.arithmetic_text = declares.arithmetic_text;
  kernel.arithmetic = declares.arithmetic, kernel.adjoint_arithmetic = declares.adjoint_arithmetic;
  kernel.declares_roundings = false;
  return kernel;
}

vm::MachineOptions machine_options(const Request& request) {
  vm::MachineOptions options;
  options.arch = request.given.value("arch", options.arch);
  options.threads = request.given.value("threads", 0);
  vm::tensor_core_model(options.arch);  // throws for one that there is not
  return options;
}

VerifyOptions verify_options(const Request& request) {
  VerifyOptions options;
  options.origin.machine = machine_options(request);
  options.threads = options.origin.machine.threads;
  options.checks = vm::parse_checks(request.given.value("checks", std::string("all")));
  options.rounding_work = kUsualRoundingWork;
  options.power = true;
  return options;
}

}  // namespace assay::binding
