#include "fuzz/properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <new>

#include "fuzz/property_functions.h"
#include "kernels/claim.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/vm/checks/checks.h"
#include "src/verification/verify/verdict.h"

namespace assay {

bool packed(const Case& c) {
  return !c.cu_seqlens.empty();
}

const ArgumentSpec* optional_input(const Operator& op, Role role) {
  for (const ArgumentSpec& input : op.inputs)
    if (input.optional && input.role == role) return &input;
  return nullptr;
}

PropertyRun::PropertyRun(const Verification& v, const Kernel& k, Backend& backend, const KnownRun& known)
    : verification(v),
      case_(v.case_),
      resolved(resolve_unchecked(v.case_, find_operator(k.operator_name))),
      kernel(k),
      op(*resolved.op),
      backend_(backend),
      known_(known) {}

const TensorMap& PropertyRun::inputs() {
  if (known_.inputs != nullptr) return *known_.inputs;
  if (!inputs_) inputs_ = draw_inputs(resolved);
  return *inputs_;
}

const Outcome& PropertyRun::outcome() {
  if (known_.outcome != nullptr) return *known_.outcome;
  if (!outcome_) outcome_ = execute(resolved, inputs());
  return *outcome_;
}

Outcome PropertyRun::derive(const ResolvedCase& c, const TensorMap& inputs) {
  derived_.push_back({c.case_, inputs});
  return execute(c, inputs);
}

Outcome PropertyRun::execute(const ResolvedCase& c, const TensorMap& inputs, uint8_t poison) const {
  Program plan = program_of(kernel, c, inputs);
  plan.poison = poison;
  return backend_.run(plan, inputs);
}

const CheckReport& PropertyRun::checks() {
  if (verification.checks && verification.checks->ran.size() == vm::check_rows().size())
    return *verification.checks;
  if (!checks_) {
    const Program program = program_of(kernel, resolved, inputs());
    const std::optional<LaunchedRun> launched = backend_.launched(program, inputs());
    if (!launched && !has_code(program)) throw BadInput("nothing is launched that could be checked");
    // The architecture only chooses bits of tensor cores.
    checks_ = launched ? vm::run_checked(launched->program, launched->inputs, {.threads = 1}, {})
                       : vm::run_checked(program, inputs(), {.threads = 1}, {});
  }
  return *checks_;
}

const std::vector<Property>& properties() {
  static const std::vector<Property> rows = {
#define PROPERTY(stem, name, share, summary) {name, share, summary, stem##_applies, stem},
#include "fuzz/properties.def"
#undef PROPERTY
  };
  return rows;
}

const Property& find_property(std::string_view name) {
  std::string known;
  for (const Property& property : properties()) {
    if (property.name == name) return property;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", property.name);
  }
  throw BadInput(fmt::format("unknown property '{}'; there are: {}", name, known));
}

std::vector<PropertyOutcome> check_properties(const Verification& v, const Kernel& kernel, Backend& backend,
                                              const std::vector<const Property*>& selected,
                                              const KnownRun& known) {
  std::vector<PropertyOutcome> outcomes;
  if (!v.case_.blocks.empty()) return outcomes;  // some blocks of a run compare with nothing
  PropertyRun run(v, kernel, backend, known);
  for (const Property* property : selected) {
    if (kernel.lacks.contains(std::string(property->name))) continue;
    if (!property->applies(v, kernel, run.op)) continue;
    try {
      std::optional<std::string> failure = property->check(run);
      std::vector<DerivedRun> derived = run.derived();
      if (!failure) derived.clear();
      outcomes.push_back({property, std::move(failure), std::move(derived)});
    } catch (const BadInput&) {
      // The changed case is outside what the kernel accepts: nothing to compare.
    } catch (const std::bad_alloc&) {
      // Or larger than the case itself, and there is no memory for it.
    }
  }
  return outcomes;
}

void record_failures(Verification& v, const std::vector<PropertyOutcome>& outcomes) {
  for (const PropertyOutcome& outcome : outcomes) {
    if (!outcome.failure) continue;
    const std::string line = fmt::format("{}: {}", outcome.property->name, *outcome.failure);
    const auto same = [&](const std::string& known) {
      return known.rfind(std::string(outcome.property->name) + ":", 0) == 0;
    };
    if (std::none_of(v.properties_failed.begin(), v.properties_failed.end(), same))
      v.properties_failed.push_back(line);
  }
  if (!v.properties_failed.empty()) decide(v);
}

std::vector<DerivedRun> judge_properties(Verification& v, const Kernel& kernel, Backend& backend,
                                         const KnownRun& known) {
  std::vector<const Property*> all;
  for (const Property& property : properties()) all.push_back(&property);
  std::vector<PropertyOutcome> outcomes = check_properties(v, kernel, backend, all, known);
  record_failures(v, outcomes);
  std::vector<DerivedRun> derived;
  for (PropertyOutcome& outcome : outcomes)
    std::move(outcome.derived.begin(), outcome.derived.end(), std::back_inserter(derived));
  return derived;
}

}  // namespace assay
