#include "src/campaign/mutate/clean_case.h"

#include <algorithm>

#include "src/verification/compare/compare.h"
#include "src/verification/verify/reference_run.h"
#include "src/verification/verify/verdict.h"

namespace assay {
namespace {

/// Properties that run the kernel again on other inputs. The machine itself gives the same bits twice, and
/// the checks have runs of their own.
std::vector<const Property*> comparing_properties() {
  std::vector<const Property*> chosen;
  for (const Property& property : properties())
    if (property.share != kByCost && property.name != "same-bits-twice" && property.name != "within-bound" &&
        property.name != "formula" && property.name != "declared-roundings" &&
        property.name != "repeats-stay-finite")  // a long run, and of every mutant
      chosen.push_back(&property);
  return chosen;
}

}  // namespace

Verification judged(const CleanCase& clean, const Kernel& kernel, const Outcome& outcome,
                    const Outcome* known) {
  Verification v;
  v.kernel = kernel.name;
  v.case_ = clean.case_;
  v.trap = outcome.trap;
  v.exponents = outcome.exponents;
  v.lane_instructions = outcome.lane_instructions;
  if (!outcome.trap)
    for (const ReferenceOutput& expected : clean.reference.outputs) {
      const auto got = outcome.outputs.find(expected.name);
      if (got == outcome.outputs.end()) continue;
      if (known && differing_elements(known->outputs.at(expected.name), got->second) == 0) continue;
      v.outputs.push_back(compare_output(got->second, expected));
    }
  if (kernel.exponents_nonpositive) check_exponents(v);
  decide(v);
  return v;
}

std::optional<CleanCase> unjudged_case(const MutationCase& source, const Kernel& kernel,
                                       const vm::MachineOptions& options) {
  const ResolvedCase c = resolve_unchecked(source.case_, find_operator(kernel.operator_name));
  if (kernel.refuses && !kernel.refuses(c).empty()) return std::nullopt;
  CleanCase clean;
  clean.case_ = source.case_, clean.row = source.row;
  clean.token = token_of(source.case_);
  clean.inputs = draw_inputs(c);
  clean.plan = program_of(kernel, c, clean.inputs);
  clean.outcome = vm::run(clean.plan, clean.inputs, options);
  clean.reach.longest_warp = clean.outcome.lane_instructions;
  return clean;
}

bool same_bits(const Outcome& one, const Outcome& other) {
  if (one.trap.has_value() != other.trap.has_value()) return false;
  return std::all_of(one.outputs.begin(), one.outputs.end(), [&](const auto& output) {
    const auto found = other.outputs.find(output.first);
    return found != other.outputs.end() && differing_elements(output.second, found->second) == 0;
  });
}

CleanCase make_clean_case(const MutationCase& source, const Kernel& kernel, const vm::MachineOptions& options,
                          uint64_t most_for_properties) {
  CleanCase clean;
  clean.case_ = source.case_;
  clean.row = source.row;
  clean.token = token_of(source.case_);
  const ResolvedCase c = resolve_unchecked(source.case_, find_operator(kernel.operator_name));
  clean.inputs = draw_inputs(c);
  clean.plan = program_of(kernel, c, clean.inputs);
  clean.outcome = vm::run(clean.plan, clean.inputs, options);
  if (!clean.outcome.trap)
    clean.reference = evaluate_reference(c, declared_problem(claim_of(kernel, c), clean.inputs, 1));
  const Verification v = judged(clean, kernel, clean.outcome, nullptr);
  clean.fault = v.cause;
  if (!clean.fault.empty()) return clean;
  clean.reach = reach_of(clean.plan, clean.inputs, options);
  if (clean.outcome.lane_instructions > most_for_properties) return clean;
  const auto machine = make_vm_backend({options.arch, 1, options.instruction_budget});
  for (const PropertyOutcome& held :
       check_properties(v, kernel, *machine, comparing_properties(), {&clean.inputs, &clean.outcome}))
    if (!held.failure) clean.properties.push_back(held.property);
  return clean;
}

Reach reach_of_case(const Case& c, const Kernel& kernel, const vm::MachineOptions& options) {
  const ResolvedCase resolved = resolve_unchecked(c, find_operator(kernel.operator_name));
  const TensorMap inputs = draw_inputs(resolved);
  return reach_of(program_of(kernel, resolved, inputs), inputs, options);
}

}  // namespace assay
