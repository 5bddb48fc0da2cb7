#include "mutate/trial_of_mutant.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/mutant.h"
#include "mutate/equivalence.h"
#include "mutate/infection.h"
#include "src/compare/compare.h"
#include "src/numerics/bad_input.h"
#include "src/verify/verdict.h"
#include "src/vm/checks/checks.h"
#include "src/vm/launch.h"

namespace assay {
namespace {

/// Cases for the checks and for the properties, which cost several runs each.
constexpr size_t kCheckedCases = 3, kPropertyCases = 5;
/// A warp of a mutant may execute this many times what the longest warp of the kernel does in the same case.
constexpr uint64_t kLonger = 4, kMore = 100'000;

class Attempt {
 public:
  Attempt(const MutantTrial& trial, const SourceText& source) : trial_(trial) {
    Mutant& m = result_.mutant;
    const ptx::Module& program = trial.module.program->module();
    m.id = mutant_id(trial.module.name, trial.module.program->name(trial.mutation));
    m.change = trial.mutation.change->name;
    m.where = place_of(program, trial.mutation.function, trial.mutation.instruction);
    m.source_text = source.line(m.where);
    m.original = trial.module.program->original(trial.mutation);
    m.replacement = trial.module.program->replacement(trial.mutation);
    text_ = std::make_shared<const std::string>(trial.module.program->with(trial.mutation));
  }

  MutantResult run() {
    for (const size_t at : trial_.order)
      if (trial_.cases[at].reach.has(trial_.module.name, trial_.mutation.function,
                                     trial_.mutation.instruction))
        reaching_.push_back(at);
    result_.mutant.reached_by = static_cast<int64_t>(reaching_.size());
    try {
      decide_outcome();
    } catch (const BadInput&) {
      result_.born = false;
    }
    result_.mutant.cases = static_cast<int64_t>(result_.tried.size());
    return std::move(result_);
  }

 private:
  void decide_outcome() {
    Mutant& m = result_.mutant;
    vm::decoded({trial_.module.name, trial_.module.path, text_}, function_name());
    if (shown_by_a_case()) return;
    if (m.token.empty()) {
      m.reason = why_equivalent(trial_.module.program->module(), trial_.mutation, m.replacement);
      if (!m.reason.empty()) return void(m.outcome = kEquivalent);
    }
    if (shown_by_checks() || shown_by_properties()) return;
    m.outcome = m.token.empty() ? kSurvived : kWithinBound;
    if (m.token.empty()) m.reason = how_far();
  }

  /// An entry through which the instruction is reached; that of a called function is any of the launched
  /// ones.
  std::string function_name() const {
    const ptx::Module& program = trial_.module.program->module();
    const ptx::Function& own = program.functions[static_cast<size_t>(trial_.mutation.function)];
    if (own.entry) return own.name;
    for (const CleanCase& clean : trial_.cases)
      for (const Launch& launch : clean.plan.launches)
        if (launch.module == trial_.module.name) return launch.function;
    return own.name;
  }

  Plan changed_plan(const CleanCase& clean) const {
    Plan plan = clean.plan;
    for (Module& module : plan.modules)
      if (module.name == trial_.module.name) module.ptx = text_;
    return plan;
  }

  vm::MachineOptions machine(const CleanCase& clean) const {
    vm::MachineOptions options = trial_.machine;
    options.instruction_budget = kLonger * clean.reach.longest_warp + kMore;
    return options;
  }

  bool killed(const CleanCase& clean, const std::string& cause) {
    result_.mutant.outcome = kKilled;
    result_.mutant.reason = cause;
    result_.mutant.token = clean.token;
    return true;
  }

  bool shown_by_a_case() {
    for (const size_t at : reaching_) {
      const CleanCase& clean = trial_.cases[at];
      result_.tried.push_back(clean.row);
      const Outcome outcome = vm::run(changed_plan(clean), clean.inputs, machine(clean));
      const Verification v = judged(clean, trial_.kernel, outcome, &clean.outcome);
      if (v.verdict == "finding") {
        result_.killed_by_case = true;
        return killed(clean, v.cause);
      }
      if (!v.outputs.empty()) {
        differing_.push_back(at);
        if (result_.mutant.token.empty()) result_.mutant.token = clean.token;
      }
    }
    return false;
  }

  /// Those where the bits differ first, then those that cost least.
  std::vector<size_t> small_cases() const {
    std::vector<size_t> chosen = reaching_;
    const auto rank = [&](size_t at) {
      const bool differs = std::find(differing_.begin(), differing_.end(), at) != differing_.end();
      return std::pair{!differs, trial_.cases[at].outcome.lane_instructions};
    };
    std::stable_sort(chosen.begin(), chosen.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
    return chosen;
  }

  bool shown_by_checks() {
    size_t runs = 0;
    for (const size_t at : small_cases()) {
      const CleanCase& clean = trial_.cases[at];
      if (clean.outcome.lane_instructions < kLeastChecked || clean.outcome.lane_instructions > kMostChecked)
        continue;
      if (runs++ == kCheckedCases) break;
      Verification v;
      v.checks = vm::run_checked(changed_plan(clean), clean.inputs, machine(clean), {}, &v.trap);
      decide(v);
      if (v.verdict == "finding") return killed(clean, v.cause);
    }
    return false;
  }

  bool shown_by_properties() {
    const Kernel mutant = with_text(trial_.kernel, result_.mutant.id, trial_.module.name, text_);
    size_t runs = 0;
    for (const size_t at : small_cases()) {
      const CleanCase& clean = trial_.cases[at];
      if (clean.properties.empty()) continue;
      if (runs++ == kPropertyCases) break;
      const vm::MachineOptions options = machine(clean);
      // The runs that a property compares may be longer than the case.
      const auto backend = make_vm_backend({options.arch, 1, kLonger * options.instruction_budget});
      Verification v;
      v.case_ = clean.case_;
      v.lane_instructions = clean.outcome.lane_instructions;
      decide(v);
      record_failures(v, check_properties(v, mutant, *backend, clean.properties, &clean.inputs));
      if (v.verdict == "finding") return killed(clean, v.cause);
    }
    return false;
  }

  /// Reached, infected, propagated: how near a survivor came to being seen.
  std::string how_far() const {
    if (reaching_.empty()) return "no case comes to this instruction";
    for (const size_t at : small_cases()) {
      const CleanCase& clean = trial_.cases[at];
      const auto changes = result_changes(clean.plan, changed_plan(clean), clean.inputs, machine(clean),
                                          trial_.module.name, trial_.mutation);
      if (!changes) return "it runs, and has no result of its own to compare";
      if (*changes) return "its result differs, no output does";
    }
    return "it runs, and its result is always the same";
  }

  /// Below this a run has too few threads and tokens for the checks; above, they would take seconds.
  static constexpr uint64_t kLeastChecked = 20'000, kMostChecked = 20'000'000;

  const MutantTrial& trial_;
  std::shared_ptr<const std::string> text_;
  std::vector<size_t> reaching_, differing_;
  MutantResult result_;
};

}  // namespace

MutantResult try_mutant(const MutantTrial& trial, const SourceText& source) {
  return Attempt(trial, source).run();
}

}  // namespace assay
