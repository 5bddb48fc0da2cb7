#include "src/verification/verify/absent_argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/numerics/bad_input.h"
#include "src/verification/diagnosis/thresholds.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/companion.h"
#include "src/verification/verify/reference_run.h"

namespace assay {
namespace {

/// What an operator takes in place of it, if that is a number.
std::optional<double> neutral(const Operator& op, const std::string& name) {
  for (const ArgumentSpec& a : op.inputs) {
    if (a.name != name || !a.optional) continue;
    if (a.role == Role::rate) return 1;
    if (a.role == Role::log_decay || a.role == Role::state) return 0;
  }
  return std::nullopt;
}

/// Outputs of both within the doubles of a reference.
bool is_same_problem(const vm::RealOutputs& a, const vm::RealOutputs& b) {
  constexpr double kSame = 0x1p-36;
  return std::all_of(a.begin(), a.end(), [&](const auto& output) {
    const auto other = b.find(output.first);
    if (other == b.end() || other->second.size() != output.second.size()) return false;
    double size = 0;
    for (const double x : output.second) size = std::max(size, std::fabs(x));
    for (size_t i = 0; i < output.second.size(); ++i)
      if (!(std::fabs(output.second[i] - other->second[i]) <= kSame * size)) return false;
    return true;
  });
}

/// Launches of the same code: what differs is the argument, not which program is chosen without it.
bool is_same_code(const Program& a, const Program& b) {
  return std::equal(
      a.launches.begin(), a.launches.end(), b.launches.begin(), b.launches.end(),
      [](const Launch& x, const Launch& y) { return x.module == y.module && x.function == y.function; });
}

/// The same with the input given; none where another one stands in for it.
std::optional<TellingCase> given(const Kernel& kernel, const TellingCase& told, const std::string& name,
                                 double number, const vm::MachineOptions& machine) {
  Case c = told.resolved.case_;
  c.without.erase(name);
  TellingCase made;
  made.resolved = accepted(c, kernel);
  made.inputs = told.inputs;
  TensorMap drawn = draw_inputs(made.resolved);
  if (!drawn.contains(name)) return std::nullopt;
  Tensor tensor = std::move(drawn.at(name));
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, number);
  made.inputs[name] = std::move(tensor);
  made.program = program_of(kernel, made.resolved, made.inputs);
  made.problem = declared_problem(claim_of(kernel, made.resolved), made.inputs, 1);
  made.exact = vm::run_moved(made.program, made.inputs, {}, machine);
  if (auto expected = made.reference({})) made.expected = *std::move(expected);
  return made;
}

}  // namespace

std::optional<Diagnosis> absent_argument(const Kernel& kernel, const TellingCase& told,
                                         const vm::MachineOptions& machine) {
  for (const std::string& name : told.resolved.case_.without) try {
      const auto number = neutral(*told.resolved.op, name);
      if (!number) continue;
      const std::optional<TellingCase> made = given(kernel, told, name, *number, machine);
      if (!made || !is_same_code(told.program, made->program)) continue;
      const TellingCase& with = *made;
      if (!is_same_problem(told.expected, with.expected)) continue;
      const auto is_right = [&](const auto& output) {
        const std::vector<bool> wrong = with.wrong_elements(output.first);
        return with.exact.contains(output.first) && std::count(wrong.begin(), wrong.end(), true) == 0;
      };
      if (!std::all_of(told.expected.begin(), told.expected.end(), is_right)) continue;
      Diagnosis d;
      d.cause = "absent-argument-mistreated", d.score = thresholds::kRightIfGiven;
      d.explanation = fmt::format("without {}, and right with {} given as {}: check what stands in for it",
                                  name, name, *number == 0 ? "zeros" : "ones");
      d.evidence.push_back(fmt::format("on {}, in exact arithmetic: every element of every output is right",
                                       token_of(with.resolved.case_)));
      return d;
    } catch (const BadInput&) {
      continue;  // not in this case
    }
  return std::nullopt;
}

}  // namespace assay
