#include "src/binding/function.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "src/base/fields/json_fields.h"
#include "src/base/numerics/bad_input.h"
#include "src/binding/arrays.h"
#include "src/binding/given_case.h"
#include "src/verification/compare/compare.h"

namespace assay::binding {
namespace {

using nlohmann::json;

constexpr const char *kScale = "scale", *kOffsets = "cu_seqlens";

Tensor constant(const std::string& name, double value) {
  Tensor tensor(name, Dtype::fp64, {});
  tensor.as<double>()[0] = value;
  return tensor;
}

/// A program that says what is asked for: a FunctionBackend reads it back.
Program call_of(const std::string& name, const ResolvedCase& c) {
  Program program;
  program.name = name;
  for (const SizedArgument& output : c.outputs)
    program.outputs.push_back({output.shape.name, output.shape.dtype, output.shape.axes});
  if (c.op->takes_scale) program.constants.push_back(constant(kScale, c.scale));
  for (const auto& [parameter, value] : c.case_.parameters)
    program.constants.push_back(constant(parameter, value));
  if (!c.case_.cu_seqlens.empty()) {
    Tensor offsets(kOffsets, Dtype::i64, {{"N+1", static_cast<int64_t>(c.case_.cu_seqlens.size())}});
    std::memcpy(offsets.data.data(), c.case_.cu_seqlens.data(), offsets.data.size());
    program.constants.push_back(std::move(offsets));
  }
  return program;
}

bool is_input(const Operator& op, const std::string& name) {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [&](const ArgumentSpec& spec) { return spec.name == name; });
}

/// Why the function cannot be called for the case: what it has no parameter for.
std::string missing_parameter(const ResolvedCase& c, const std::set<std::string>& takes,
                              const std::set<std::string>& needs) {
  for (const std::string& name : needs)
    if (name == kOffsets ? c.case_.cu_seqlens.empty() : is_input(*c.op, name) && !c.has(name))
      return fmt::format("needs {}", name);
  for (const SizedArgument& input : c.inputs) {
    const std::string name(input.spec.name);
    if (is_input(*c.op, name) && !takes.contains(name)) return fmt::format("takes no {}", name);
  }
  if (!c.case_.cu_seqlens.empty() && !takes.contains(kOffsets)) return "takes no packed sequences";
  if (c.case_.scale && !takes.contains(kScale)) return "takes no scale";
  for (const auto& [parameter, value] : c.case_.parameters)
    if (!takes.contains(parameter)) return fmt::format("takes no {}", parameter);
  return "";
}

std::string other_size(const Case& c, const std::map<std::string, std::vector<int64_t>>& sizes) {
  const Sizes drawn = sizes_of(c);
  for (const auto& [axis, allowed] : sizes)
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), drawn.of(axis)) == allowed.end())
      return fmt::format("takes {} = {}, not {}", axis, fmt::join(allowed, ", "), drawn.of(axis));
  return "";
}

std::vector<Dtype> formats_of(const json& names) {
  std::vector<Dtype> dtypes;
  for (const json& name : names) dtypes.push_back(format(name.get<std::string>()).dtype);
  return dtypes;
}

std::string axes_text(const std::vector<Axis>& axes) {
  std::string text;
  for (const Axis& axis : axes)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", axis.name, axis.size);
  return "[" + text + "]";
}

}  // namespace

Kernel function_kernel(const json& given) {
  const Operator& op = find_operator(given.at("operator").get<std::string>());
  Kernel kernel = declared_kernel(given.value("arithmetic", json()), op);
  kernel.name = given.at("name");
  kernel.summary = "a function of the caller's";
  const std::string directions = given.value("directions", "both");
  if (directions == "forward") kernel.adjoint_arithmetic = nullptr;
  if (directions == "backward") kernel.arithmetic = nullptr;
  kernel.limits.dtypes = formats_of(given.at("dtypes"));
  kernel.limits.gate_dtypes = formats_of(given.at("gate_dtypes"));
  kernel.limits.max_K = given.value("max_K", kernel.limits.max_K);
  kernel.limits.max_V = given.value("max_V", kernel.limits.max_V);
  kernel.limits.max_M = given.value("max_M", kernel.limits.max_M);
  kernel.limits.gate_min = given.value("gate_min", kernel.limits.gate_min);
  kernel.resume_granularity = int64_t{1} << 40;  // nobody says so
  kernel.cases_per_shape = std::max<int64_t>(1, given.value("cases_per_shape", int64_t{1}));
  kernel.sizes = given.value("sizes", kernel.sizes);
  kernel.lacks = given.value("lacks", kernel.lacks);
  for (const ArgumentSpec& spec : op.inputs) kernel.reads_views.insert(std::string(spec.name));
  for (const ArgumentSpec& spec : op.cotangents()) kernel.reads_views.insert(std::string(spec.name));
  kernel.plan = [name = kernel.name](const ResolvedCase& c, const TensorMap&) { return call_of(name, c); };
  kernel.refuses = [takes = given.at("takes").get<std::set<std::string>>(),
                    needs = given.value("needs", std::set<std::string>()),
                    sizes = kernel.sizes](const ResolvedCase& c) {
    const std::string missing = missing_parameter(c, takes, needs);
    return missing.empty() ? other_size(c.case_, sizes) : missing;
  };
  return kernel;
}

void give_output(assay_run& run, const assay_array& given) {
  const assay_array array = read_arrays(&given, 1).front();
  const std::string name = array.name ? array.name : "";
  if (!run.program) {  // whatever it gives
    if (array.format < 0) throw BadInput(fmt::format("{}: elements of no known format", name));
    run.outcome.outputs[name] = elements_of(array);
    return;
  }
  const auto asked = std::find_if(run.program->outputs.begin(), run.program->outputs.end(),
                                  [&](const ProgramOutput& output) { return output.name == name; });
  if (asked == run.program->outputs.end())
    throw BadInput(fmt::format("{}: no output that was asked for", name));
  if (array.format < 0) throw BadInput(fmt::format("{}: elements of no known format", name));
  Tensor tensor = elements_of(array);
  bool fits = tensor.axes.size() == asked->axes.size();
  for (size_t i = 0; fits && i < tensor.axes.size(); ++i) fits = tensor.axes[i].size == asked->axes[i].size;
  if (!fits)
    throw BadInput(fmt::format("{}: {} was expected, the function gave {}", name, axes_text(asked->axes),
                               tensor.shape_text()));
  if (unit_roundoff(tensor.dtype) > unit_roundoff(asked->dtype))
    throw BadInput(fmt::format("{}: {} was expected, or what holds more; the function gave {}", name,
                               format(asked->dtype).name, format(tensor.dtype).name));
  tensor.axes = asked->axes, tensor.name = name;
  run.outcome.outputs[name] = std::move(tensor);
}

void name_memory(assay_run& run, const assay_array& given) {
  const assay_array array = read_arrays(&given, 1).front();
  if (array.format < 0 || !fills_storage(array)) return;
  Tensor shape = shape_of(array);
  run.launches->name(array, shape);
}

json FunctionBackend::call(const char* what, const Program& program, const TensorMap& inputs,
                           assay_run& run) {
  run.program = &program;
  json request = {{"what", what}, {"outputs", json::array()}, {"numbers", json::object()}};
  for (const ProgramOutput& output : program.outputs) request["outputs"].push_back(output.name);
  std::vector<assay_array> arrays;
  std::vector<std::vector<std::byte>> memory, given;
  std::vector<std::string> axes;
  memory.reserve(inputs.size() + 1), axes.reserve(inputs.size() + 1);
  const auto lend = [&](const Tensor& tensor, const TensorLayout* layout) {
    memory.push_back(layout ? strided_memory(tensor, *layout) : tensor.data);
    std::string& letters = axes.emplace_back();
    for (const Axis& axis : tensor.axes) letters += (letters.empty() ? "" : ",") + axis.name;
    assay_array& array = arrays.emplace_back();
    array.struct_bytes = sizeof array;
    array.name = tensor.name.c_str();
    array.address = reinterpret_cast<uint64_t>(memory.back().data()), array.bytes = memory.back().size();
    array.writable = 1, array.format = static_cast<int32_t>(tensor.dtype);
    array.rank = static_cast<int32_t>(tensor.axes.size());
    array.offset = layout ? layout->offset : 0;
    array.axes = letters.c_str();
    const std::vector<int64_t> strides = layout ? layout->strides : tensor.strides();
    for (size_t i = 0; i < tensor.axes.size(); ++i)
      array.shape[i] = tensor.axes[i].size, array.strides[i] = strides[i];
  };
  for (const auto& [name, tensor] : inputs) {
    const auto layout = program.layouts.find(name);
    lend(tensor, layout == program.layouts.end() ? nullptr : &layout->second);
  }
  for (const Tensor& held : program.constants) {
    if (held.axes.empty())
      request["numbers"][held.name] = held.value(0);
    else
      lend(held, nullptr);
  }
  given = memory;
  {
    const std::lock_guard lock(one_at_a_time_);
    function_.run(function_.user, request.dump().c_str(), arrays.data(), arrays.size(), &run);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (memory[i] == given[i]) continue;
    const Tensor changed = elements_of(arrays[i]);
    Tensor& now = run.outcome.changed_inputs[changed.name] = inputs.at(changed.name);
    now.data = changed.data;
  }
  if (!run.fault.empty()) throw BadInput(run.fault);
  return json::parse(run.said.empty() ? "{\"failed\": \"the function gave no answer\"}" : run.said);
}

Outcome FunctionBackend::run(const Program& program, const TensorMap& inputs) {
  assay_run run;
  const json said = call("run", program, inputs, run);
  if (said.contains("failed")) throw BadInput(said.at("failed").get<std::string>());
  if (said.contains("refused")) throw Refused(said.at("refused").get<std::string>());
  Outcome outcome = std::move(run.outcome);
  JsonReader::read(said.value("trap", json()), outcome.trap, "trap");
  JsonReader::read(said.value("exponents", json::array()), outcome.exponents, "exponents");
  outcome.lane_instructions = said.value("lane_instructions", uint64_t{0});
  outcome.seconds = said.value("seconds", 0.0);
  if (outcome.trap) outcome.outputs.clear();
  return outcome;
}

std::optional<LaunchedRun> FunctionBackend::launched(const Program& program, const TensorMap& inputs) {
  if (!program.launches.empty()) return std::nullopt;
  LaunchRecord record;
  assay_run run;
  run.launches = &record;
  const json said = call("launches", program, inputs, run);
  if (said.contains("failed") || said.contains("refused")) return std::nullopt;
  return record.finish(program.outputs, run.outcome.outputs);
}

json FunctionBackend::probe(const Program& program, const TensorMap& inputs) {
  assay_run run;
  json said = call("probe", program, inputs, run);
  if (said.contains("failed")) throw BadInput(said.at("failed").get<std::string>());
  json outputs = json::array();
  for (const auto& [name, tensor] : run.outcome.outputs) outputs.push_back(name);
  said["outputs"] = outputs;
  return said;
}

}  // namespace assay::binding
