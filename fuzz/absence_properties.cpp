// Properties of optional inputs: absent, or there and zero.
#include <fmt/format.h>

#include <algorithm>

#include "fuzz/bit_comparison.h"
#include "fuzz/handed_states.h"
#include "fuzz/property_functions.h"

namespace assay {

namespace {

/// The inputs of these cases differ in one role: absent in the first, zeros in the second.
Failure absent_against_zeros(PropertyRun& run, const Case& absent, const Case& zero, Role role) {
  TensorMap without = run.inputs(), with = run.inputs();
  std::string names;
  bool already = true;
  for (const ArgumentSpec& input : run.op.inputs) {
    if (!input.optional || input.role != role || !is_present(zero, input)) continue;
    const std::string name(input.name);
    std::vector<Axis> axes;
    for (std::string_view axis : input.axes)
      axes.push_back({std::string(axis), sizes_of(run.case_).of(axis)});
    already = already && run.inputs().count(name) == 0;
    without.erase(name);
    with[name] = Tensor(name, dtype_of(run.case_, input), axes);
    names += (names.empty() ? "" : ", ") + name;
  }
  const Outcome second = run.run(zero, with);
  if (Failure f = same_outcome(already ? run.outcome() : run.run(absent, without), second))
    return fmt::format("{} absent against zeros, {}", names, *f);
  return std::nullopt;
}

Case without_gate(Case c, const Operator& op) {
  const ArgumentSpec& gate = *optional_input(op, Role::log_decay);
  c.without.insert(std::string(gate.name));
  for (const ArgumentSpec& other : op.inputs)
    if (other.instead_of == gate.name) c.without.insert(std::string(other.name));
  return c;
}

}  // namespace

/// Not where another gate stands in for it, nor where the kernel takes no absent gate or it means something
/// else.
bool absent_equals_zero_gate_applies(const Verification& v, const Kernel& kernel, const Operator& op) {
  const ArgumentSpec* gate = optional_input(op, Role::log_decay);
  if (gate != nullptr && kernel.refuses &&
      !kernel.refuses(resolve_unchecked(without_gate(v.case_, op), op)).empty())
    return false;
  return was_run(v) && gate != nullptr && op.absent_gate_is_zero &&
         std::none_of(op.inputs.begin(), op.inputs.end(), [&](const ArgumentSpec& other) {
           return other.instead_of == gate->name && is_present(v.case_, other);
         });
}

Failure absent_equals_zero_gate(PropertyRun& run) {
  Case zero = run.case_;
  zero.without.erase(std::string(optional_input(run.op, Role::log_decay)->name));
  return absent_against_zeros(run, without_gate(run.case_, run.op), zero, Role::log_decay);
}

bool absent_equals_zero_state_applies(const Verification& v, const Kernel&, const Operator& op) {
  return was_run(v) && optional_input(op, Role::state) != nullptr;
}

Failure absent_equals_zero_state(PropertyRun& run) {
  return absent_against_zeros(run, with_state(run.case_, run.op, false), with_state(run.case_, run.op, true),
                              Role::state);
}

bool absent_equals_zero_cotangent_applies(const Verification& v, const Kernel&, const Operator& op) {
  const auto cotangents = op.cotangents();
  return was_run(v) && runs_backward(v.case_) &&
         std::any_of(cotangents.begin(), cotangents.end(), [](const ArgumentSpec& s) { return s.optional; });
}

Failure absent_equals_zero_cotangent(PropertyRun& run) {
  Case absent = run.case_, zero = run.case_;
  absent.final_state_gradient = false, zero.final_state_gradient = true;
  TensorMap without = run.inputs(), with = run.inputs();
  for (const ArgumentSpec& spec : run.op.cotangents()) {
    if (!spec.optional) continue;
    const std::string name(spec.name);
    std::vector<Axis> axes;
    for (std::string_view axis : spec.axes) axes.push_back({std::string(axis), sizes_of(run.case_).of(axis)});
    without.erase(name);
    with[name] = Tensor(name, dtype_of(run.case_, spec), axes);
  }
  if (Failure f = same_outcome(run.run(absent, without), run.run(zero, with)))
    return "final-state gradient absent against one of zeros, " + *f;
  return std::nullopt;
}

}  // namespace assay
