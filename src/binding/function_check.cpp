// One call of a function that no operator describes: its launches as a program without a claim, its outputs
// against what somebody says that they are.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "src/base/fields/json_fields.h"
#include "src/base/numerics/bad_input.h"
#include "src/binding/function.h"
#include "src/binding/given_case.h"
#include "src/binding/operations.h"
#include "src/verification/compare/formula.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/verify/check_program.h"
#include "src/verification/verify/expected_values.h"
#include "src/verification/verify/verdict.h"

namespace assay::binding {
namespace {

using nlohmann::json;

constexpr std::string_view kExpected = "expected ";

/// What the roundings of a reference in double leave open, of the value and of the output's root mean square:
/// 2^23 of them.
constexpr double kOfReference = 0x1p-30;

/// A reference that somebody has computed in double, as one with radii.
ReferenceOutput as_reference(const Tensor& expected) {
  ReferenceOutput reference;
  reference.name = expected.name, reference.axes = expected.axes;
  const auto count = static_cast<size_t>(expected.size());
  double squares = 0;
  for (size_t i = 0; i < count; ++i) {
    const double value = expected.value(static_cast<int64_t>(i));
    reference.mid.push_back(value);
    squares += std::isfinite(value) ? value * value : 0;
  }
  const double size = std::sqrt(squares / static_cast<double>(std::max<size_t>(1, count)));
  for (const double value : reference.mid) reference.rad.push_back(kOfReference * (std::fabs(value) + size));
  reference.bound.assign(count, 0), reference.companion.assign(count, 0),
      reference.underflow.assign(count, 0);
  return reference;
}

struct Returned {
  TensorMap outputs, expected;
};

Returned sorted(TensorMap given) {
  Returned returned;
  for (auto& [name, tensor] : given) {
    if (!name.starts_with(kExpected)) {
      returned.outputs.emplace(name, std::move(tensor));
      continue;
    }
    tensor.name = name.substr(kExpected.size());
    returned.expected.emplace(tensor.name, std::move(tensor));
  }
  for (const auto& [name, right] : returned.expected) {
    const auto found = returned.outputs.find(name);
    if (found == returned.outputs.end())
      throw BadInput(fmt::format("the reference gives {}, and the function does not", name));
    if (found->second.size() != right.size())
      throw BadInput(fmt::format("{}: the reference gives {}, the function {}", name, right.shape_text(),
                                 found->second.shape_text()));
  }
  return returned;
}

/// Of what launches wrote: whether on real numbers, where nothing rounds, it is what it should be.
void judge_formula(const LaunchedRun& launched, const Returned& returned, const vm::MachineOptions& machine,
                   Verification& v) {
  const vm::ExactRun exact = vm::run_exact(launched.program, launched.inputs, machine);
  FormulaReport report;
  report.seconds = exact.seconds, report.turned = exact.turned, report.loss = exact.loss;
  for (const auto& [name, right] : returned.expected)
    if (const auto found = exact.outputs.find(name); found != exact.outputs.end())
      report.outputs.push_back(
          compare_formula(returned.outputs.at(name), found->second, as_reference(right)));
  if (!report.outputs.empty()) v.formula = std::move(report);
}

}  // namespace

json check_function(const Request& request) {
  if (!request.function) throw BadInput("check: no function is given");
  const json& given = request.given;
  LaunchRecord record;
  assay_run run;
  run.launches = &record;
  const std::string asked = json{{"what", "launches"}}.dump();
  request.function->run(request.function->user, asked.c_str(), nullptr, 0, &run);
  if (!run.fault.empty()) throw BadInput(run.fault);
  const json said = json::parse(run.said.empty() ? "{}" : run.said);
  if (said.contains("failed")) throw BadInput(said.at("failed").get<std::string>());
  if (said.contains("refused")) return {{"refused", said.at("refused")}};
  const Returned returned = sorted(std::move(run.outcome.outputs));
  std::vector<ProgramOutput> outputs;
  for (const auto& [name, tensor] : returned.outputs) outputs.push_back({name, tensor.dtype, tensor.axes});
  const std::optional<LaunchedRun> launched = record.finish(outputs, returned.outputs);
  const std::string name = given.at("name");
  const double tolerance = given.value("tolerance", 0.0);
  Verification v;
  if (launched) {
    ProgramCheckOptions options;
    options.machine = options.origin.machine = machine_options(request);
    options.checks = vm::parse_checks(given.value("checks", std::string("all")));
    options.orders = options.poison = given.value("repeats", true);
    options.architectures = false;
    options.shadow_instructions = given.value("precision", uint64_t{0});
    v = check_program(name, launched->program, launched->inputs, options);
    if (!v.trap && tolerance == 0) judge_formula(*launched, returned, options.machine, v);
  }
  v.kernel = v.case_.kernel = name;
  v.replay = given.value("replay", "");
  if (!v.program) v.program.emplace();
  v.backend = given.value("backend", v.backend);
  JsonReader::read(said.value("trap", json()), v.trap, "trap");
  if (tolerance > 0 && !v.trap) hold_against_expected(returned.outputs, returned.expected, tolerance, v);
  const bool undecided = tolerance == 0 && !v.formula && !v.trap && !returned.expected.empty();
  decide(v);
  if (!v.entry && launched && v.verdict == Verdict::finding && !v.origin && !v.trap)
    v.entry = entry_of(launched->program);
  return {{"result", to_json(v)}, {"unjudged", undecided}};
}

}  // namespace assay::binding
