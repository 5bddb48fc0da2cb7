#include "src/campaign/mutate/same_effect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>

#include "fuzz/cost.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/fnv.h"
#include "src/base/vm/checks/checks.h"
#include "src/campaign/mutate/case_choice.h"
#include "src/campaign/mutate/footprint.h"
#include "src/campaign/mutate/infection.h"
#include "src/campaign/mutate/terms.h"

namespace assay {
namespace {

/// Cases that must go another way, at least and at most, before ways are called the same.
constexpr size_t kFewestOtherWays = 4, kOtherWays = 8;
/// Cases in which the change must make a difference before terms are called the same, at least; at most of
/// the set, and of it and of sizes searched for more; lane instructions of each at most.
constexpr size_t kFewestOtherSteps = 8, kOtherStepsInSet = 6, kOtherSteps = 12;
constexpr uint64_t kMostOfTerms = 12'000'000;
/// Of the cases with most of something, and of one with many tokens: what loops do late, and last.
constexpr uint64_t kMostOfExtremes = 40'000'000;
/// How many sizes are searched; about how many runs a run for terms takes, with what is asked beside it; so
/// many times MutantTrial::other_work are spent.
constexpr uint64_t kSearchedForSteps = 800, kLongerByTerms = 10, kMoreForSteps = 4;

using Asks = std::function<bool(const CleanCase&)>;

bool leaves_the_same(const MutantRuns& runs, const CleanCase& clean) {
  const Program changed = runs.changed(clean);
  const auto same = [&](const TensorMap& inputs) {
    return footprint_of(changed, inputs, runs.machine(clean))
        .within(footprint_of(clean.plan, inputs, runs.trial.machine));
  };
  return same(clean.inputs) && same(with_special_values(clean.inputs, SpecialValues::zeros, 1)) &&
         same(with_special_values(clean.inputs, SpecialValues::sprinkled, 2));
}

bool is_clean(const MutantRuns& runs, const CleanCase& clean) {
  std::optional<Trap> trap;
  return vm::run_checked(runs.changed(clean), clean.inputs, runs.machine(clean), {}, &trap)
             .findings.empty() &&
         !trap;
}

/// In how many of the set's rows, `most` at most, the change tells; nothing where in one of them it does not
/// leave the same.
std::optional<size_t> same_in_set(const MutantRuns& runs, const std::vector<size_t>& small, size_t most,
                                  uint64_t largest, const Asks& tells, const Asks& same) {
  std::set<size_t> rows;
  for (const size_t at : small) {
    const CleanCase& clean = runs.trial.cases[at];
    if (rows.size() == most) break;
    if (rows.contains(clean.row) || clean.outcome.lane_instructions > largest) continue;
    runs.go_on();
    if (!tells(clean)) continue;
    if (!same(clean)) return std::nullopt;
    rows.insert(clean.row);
  }
  return rows.size();
}

/// Of `small` those with the longest sequence, most sequences, heads, keys, values and slots, and one of each
/// set of absent inputs.
std::vector<size_t> extremes_of(const MutantRuns& runs, const std::vector<size_t>& small) {
  using Measure = int64_t (*)(const Case&);
  const Measure measures[] = {
      [](const Case& c) {
        int64_t longest = c.cu_seqlens.empty() ? c.T : 0;
        for (size_t i = 1; i < c.cu_seqlens.size(); ++i)
          longest = std::max(longest, c.cu_seqlens[i] - c.cu_seqlens[i - 1]);
        return longest;
      },
      [](const Case& c) { return c.cu_seqlens.empty() ? c.B : std::ssize(c.cu_seqlens) - 1; },
      [](const Case& c) { return std::max(c.H, c.HV); },
      [](const Case& c) { return c.K; },
      [](const Case& c) { return c.V; },
      [](const Case& c) { return c.M; },
  };
  std::vector<size_t> chosen;
  const auto add = [&](size_t at) {
    if (std::find(chosen.begin(), chosen.end(), at) == chosen.end()) chosen.push_back(at);
  };
  std::set<std::set<std::string>> absences;
  std::array<int64_t, std::size(measures)> most{};
  std::array<size_t, std::size(measures)> where{};
  for (const size_t at : small) {
    const CleanCase& clean = runs.trial.cases[at];
    if (clean.outcome.lane_instructions > kMostOfExtremes) continue;
    if (absences.insert(clean.case_.without).second) add(at);
    for (size_t i = 0; i < most.size(); ++i)
      if (const int64_t measure = measures[i](clean.case_); measure > most[i])
        most[i] = measure, where[i] = at;
  }
  for (size_t i = 0; i < most.size(); ++i)
    if (most[i] > 0) add(where[i]);
  return chosen;
}

/// Does it leave the same in another case, where the kernel takes that one?
bool same_in(const MutantRuns& runs, const MutationCase& another, const Asks& tells, const Asks& same) {
  if (estimated_cost(another.case_) > static_cast<double>(kMostOfExtremes)) return true;
  try {
    const auto clean = unjudged_case(another, runs.trial.kernel, runs.trial.machine);
    return !clean || clean->outcome.lane_instructions > kMostOfExtremes || !tells(*clean) || same(*clean);
  } catch (const BadInput&) {
    return true;
  }
}

/// The same at the drawn sizes, in the formats of a case that reaches the change.
std::optional<size_t> same_elsewhere(const MutantRuns& runs, const CleanCase& formats, const Asks& tells,
                                     const Asks& same) {
  const MutantTrial& trial = runs.trial;
  const Operator& op = find_operator(trial.kernel.operator_name);
  size_t told = 0;
  uint64_t work = 0;
  for (const MutationCase& drawn : trial.sizes ? *trial.sizes : std::vector<MutationCase>{}) {
    if (work > trial.other_work) break;
    runs.go_on();
    CleanCase clean;
    clean.case_ = drawn.case_;
    clean.case_.dtype = formats.case_.dtype, clean.case_.gate_dtype = formats.case_.gate_dtype;
    try {
      const ResolvedCase resolved = resolve_unchecked(clean.case_, op);
      clean.inputs = draw_inputs(resolved);
      clean.plan = program_of(trial.kernel, resolved, clean.inputs);
    } catch (const BadInput&) {
      continue;  // the kernel takes no such case in these formats
    }
    clean.reach.longest_warp = vm::run(clean.plan, clean.inputs, trial.machine).lane_instructions;
    work += 3 * clean.reach.longest_warp;
    if (!tells(clean)) continue;
    if (!same(clean)) return std::nullopt;
    ++told;
  }
  return told;
}

/// The same at sizes searched for this change, otherwise like the cases that reach it.
std::optional<size_t> same_at_searched_sizes(const MutantRuns& runs, const std::vector<size_t>& small,
                                             size_t most, uint64_t largest, const Asks& tells,
                                             const Asks& same) {
  const MutantTrial& trial = runs.trial;
  const uint64_t seed = fnv1a(*runs.text), least = trial.cases[small.front()].outcome.lane_instructions;
  const auto cheap = static_cast<double>(std::min(largest, std::max(kCheapChecks, 2 * least)));
  size_t told = 0;
  uint64_t work = 0;
  for (uint64_t i = 0; i < kSearchedForSteps && told < most && work / kMoreForSteps < trial.other_work; ++i) {
    const CleanCase& like = trial.cases[small[i % small.size()]];
    const auto drawn = with_searched_sizes({like.case_, like.row}, trial.kernel, seed, i,
                                           [&](const Program& plan) { return runs.launches_own(plan); });
    runs.go_on();
    if (!drawn || estimated_cost(drawn->case_) > cheap) continue;
    const auto clean = unjudged_case(*drawn, trial.kernel, trial.machine);
    if (!clean) continue;
    work += clean->outcome.lane_instructions;
    if (clean->outcome.lane_instructions > largest || !tells(*clean)) continue;
    work += kLongerByTerms * clean->outcome.lane_instructions;
    if (!same(*clean)) return std::nullopt;
    ++told;
  }
  return told;
}

}  // namespace

void MutantRuns::go_on() const {
  if (trial.given_up && trial.given_up()) throw GivenUp();
}

Program MutantRuns::changed(const CleanCase& clean) const {
  Program plan = clean.plan;
  for (Module& module : plan.modules)
    if (module.name == trial.module.name) module.ptx = text;
  return plan;
}

vm::MachineOptions MutantRuns::machine(const CleanCase& clean) const {
  vm::MachineOptions options = trial.machine;
  options.instruction_budget = most_of_a_mutant(clean.reach);
  return options;
}

const ptx::Function& MutantRuns::own_function() const {
  return trial.module.program->module().functions[static_cast<size_t>(trial.mutation.function)];
}

bool MutantRuns::launches_own(const Program& plan) const {
  const ptx::Function& own = own_function();
  return std::any_of(plan.launches.begin(), plan.launches.end(), [&](const Launch& launch) {
    return launch.module == trial.module.name && (!own.entry || launch.function == own.name);
  });
}

bool MutantRuns::goes_another_way(const CleanCase& clean) const {
  return path_changes(clean.plan, changed(clean), clean.inputs, machine(clean), trial.module.name, ptx_line);
}

std::string only_another_way(const MutantRuns& runs, const std::vector<size_t>& small) {
  if (small.empty()) return {};
  const Asks tells = [&](const CleanCase&clean) { return runs.goes_another_way(clean); },
             same = [&](const CleanCase&clean) { return leaves_the_same(runs, clean); };
  const auto rows = same_in_set(runs, small, kOtherWays, kMostChecked, tells,
                                [&](const CleanCase& clean) { return same(clean) && is_clean(runs, clean); });
  if (!rows || *rows < kFewestOtherWays) return {};
  const auto more = same_elsewhere(runs, runs.trial.cases[small.front()], tells, same);
  if (!more) return {};
  return fmt::format(
      "sizes alone decide this way; in the {} cases that were run the other way, also with zeros, infinities "
      "and NaN, and at {} other sizes, the same bytes of memory are read, written and left",
      *rows, *more);
}

std::string only_other_steps(const MutantRuns& runs, const std::vector<size_t>& small) {
  if (small.empty()) return {};
  const MutantTrial& trial = runs.trial;
  const Asks tells = [&](const CleanCase& clean) {
    const auto changes = result_changes(clean.plan, runs.changed(clean), clean.inputs, runs.machine(clean),
                                        trial.module.name, trial.mutation);
    return changes.value_or(false) || runs.goes_another_way(clean);
  };
  const Asks same = [&](const CleanCase& clean) {
    const Program changed = runs.changed(clean);
    const vm::MachineOptions machine = runs.machine(clean);
    return same_terms(clean.plan, changed, clean.inputs, machine) &&
           footprint_of(changed, clean.inputs, machine)
               .reaches_within(footprint_of(clean.plan, clean.inputs, trial.machine)) &&
           is_clean(runs, clean);
  };
  const std::vector<size_t> extremes = extremes_of(runs, small);
  const CleanCase& like = trial.cases[small.front()];
  const MutationCase longer{with_other_values(like.case_, trial.kernel, 1), like.row};  // 600 tokens
  if (!same_in_set(runs, extremes, extremes.size(), kMostOfExtremes, tells, same) ||
      !same_in(runs, longer, tells, same))
    return {};
  for (const int64_t tokens : {16, 64, 128}) {  // whole tiles and chunks, of the same widths
    MutationCase whole{like.case_, like.row};
    whole.case_.T = tokens, whole.case_.cu_seqlens.clear(), whole.case_.overrides.clear();
    if (!same_in(runs, whole, tells, same)) return {};
  }
  const auto rows = same_in_set(runs, small, kOtherStepsInSet, kMostOfTerms, tells, same);
  if (!rows) return {};
  const auto more = same_at_searched_sizes(runs, small, kOtherSteps - *rows, kMostOfTerms, tells, same);
  if (!more || *rows + *more < kFewestOtherSteps) return {};
  return fmt::format(
      "in the {} cases and at the {} other sizes in which it makes a difference the outputs are the same "
      "terms of "
      "the inputs, whatever these hold",
      *rows, *more);
}

}  // namespace assay
