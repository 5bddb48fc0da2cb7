#include "src/campaign/mutate/trial_of_mutant.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kernels/mutant.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/fnv.h"
#include "src/base/vm/checks/checks.h"
#include "src/base/vm/exact_run.h"
#include "src/base/vm/launch.h"
#include "src/campaign/mutate/case_choice.h"
#include "src/campaign/mutate/equivalence.h"
#include "src/campaign/mutate/infection.h"
#include "src/campaign/mutate/moved_memory.h"
#include "src/campaign/mutate/parameter_roles.h"
#include "src/campaign/mutate/propagation.h"
#include "src/campaign/mutate/same_effect.h"
#include "src/campaign/mutate/steering.h"
#include "src/verification/compare/compare.h"
#include "src/verification/compare/formula.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/verdict.h"

namespace assay {
namespace {

/// Cases for the properties, which cost several runs each.
constexpr size_t kPropertyCases = 8;
/// Cases that are tried with other values: how many, and how often each.
constexpr size_t kOtherCases = 6;
/// Cases that are run in exact arithmetic, and lane instructions of each at most.
constexpr size_t kFormulaCases = 4;
constexpr uint64_t kMostOfFormula = 2'000'000;
/// Cases that are tried with shared memory elsewhere; what is said of what shows there.
constexpr size_t kMovedCases = 4;
constexpr const char* kMoved = ", where shared memory begins at 1024";
constexpr uint64_t kOtherSeeds = 120;
/// So many times as long where what changes is a float, which few roundings show.
constexpr uint64_t kRoundedWork = 10;
/// Cases of other sizes that a mutant is tried on which nothing showed: drawn, judged and checked at most.
constexpr uint64_t kSearched = 400, kJudgedOfSearched = 6, kCheckedOfSearched = 24;
class Attempt {
 public:
  Attempt(const MutantTrial& trial, const SourceText& source) : trial_(trial), runs_{trial, nullptr} {
    Mutant& m = result_.mutant;
    const ptx::Module& program = trial.module.program->module();
    m.id = mutant_id(trial.module.name, trial.module.program->name(trial.mutation));
    m.change = trial.mutation.change->name;
    m.where = place_of(program, trial.mutation.function, trial.mutation.instruction);
    m.source_text = source.line(m.where);
    m.original = trial.module.program->original(trial.mutation);
    m.replacement = trial.module.program->replacement(trial.mutation);
    runs_.ptx_line = m.where.ptx_line;
    runs_.text = std::make_shared<const std::string>(trial.module.program->with(trial.mutation));
  }

  std::optional<MutantResult> run() {
    for (const size_t at : trial_.order)
      if (trial_.cases[at].reach.has(trial_.module.name, trial_.mutation.function,
                                     trial_.mutation.instruction))
        reaching_.push_back(at);
    result_.mutant.reached_by = static_cast<int64_t>(reaching_.size());
    try {
      decide_outcome();
    } catch (const BadInput&) {
      result_.born = false;
    } catch (const GivenUp&) {
      return std::nullopt;
    }
    result_.mutant.cases = static_cast<int64_t>(result_.tried.size()) + more_cases_;
    return std::move(result_);
  }

 private:
  void decide_outcome() {
    Mutant& m = result_.mutant;
    vm::decoded({trial_.module.name, trial_.module.path, runs_.text}, function_name());
    if (shown_by_a_case()) return;
    if (m.token.empty()) {
      m.reason =
          why_equivalent(trial_.module.program->module(),
                         ptx::parse_functions(*runs_.text, trial_.module.path), trial_.mutation, roles());
      if (!m.reason.empty()) return void(m.outcome = MutantOutcome::equivalent);
    }
    if (shown_by_checks() || shown_by_properties() || shown_by_formula()) return;
    if (m.token.empty()) m.reason = how_far();
    if (m.token.empty() && !changing_.empty() && shown_by_other_values()) return;
    if (m.token.empty() && shown_where_shared_memory_moves()) return;
    if (m.token.empty() && shown_by_other_sizes()) return;
    if (m.token.empty())
      if (const std::string why = leaves_the_same(); !why.empty()) {
        m.reason = why;
        return void(m.outcome = MutantOutcome::equivalent);
      }
    // A number rounded in another direction is off by less than one unit of its last place.
    if (m.token.empty() && !changing_.empty() && trial_.mutation.change->name == "change-rounding") {
      m.reason = "its result differs in the last place, which all that follows rounds away: no output does";
      m.token = trial_.cases[changing_.front()].token;
      return void(m.outcome = MutantOutcome::within_bound);
    }
    m.outcome = m.token.empty() ? MutantOutcome::survived : MutantOutcome::within_bound;
    if (!m.token.empty()) m.reason.clear();
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

  /// By all launches of the mutated entry.
  ParameterRoles roles() const {
    const ptx::Module& program = trial_.module.program->module();
    const ptx::Function& own = program.functions[static_cast<size_t>(trial_.mutation.function)];
    return roles_of(trial_.cases, trial_.kernel.limits, trial_.module.name, own.name, trial_.survey);
  }

  bool killed(const CleanCase& clean, const std::string& cause) {
    result_.mutant.outcome = MutantOutcome::killed;
    result_.mutant.reason = cause;
    result_.mutant.token = clean.token;
    return true;
  }

  enum class Seen { nothing, bits, fault };

  Seen look(const CleanCase& clean) {
    runs_.go_on();
    const Outcome outcome = vm::run(runs_.changed(clean), clean.inputs, runs_.machine(clean));
    const Verification v = judged(clean, trial_.kernel, outcome, &clean.outcome);
    if (v.verdict == Verdict::finding) return killed(clean, v.cause), Seen::fault;
    if (v.outputs.empty()) return Seen::nothing;
    if (result_.mutant.token.empty()) result_.mutant.token = clean.token;
    return Seen::bits;
  }

  bool shown_by_a_case() {
    for (const size_t at : reaching_) {
      const CleanCase& clean = trial_.cases[at];
      result_.tried.push_back(clean.row);
      const Seen seen = look(clean);
      if (seen == Seen::fault) return result_.killed_by_case = true;
      if (seen == Seen::bits) differing_.push_back(at);
    }
    return false;
  }

  /// Does any output's bit depend on the mutation, on this case? Both runs' lane instructions go to `work`.
  bool bits_change(const CleanCase& clean, uint64_t& work) const {
    runs_.go_on();
    const Outcome changed = vm::run(runs_.changed(clean), clean.inputs, runs_.machine(clean));
    work += clean.outcome.lane_instructions + changed.lane_instructions;
    return !same_bits(clean.outcome, changed);
  }

  /// A changed result that no output shows, in the same cases with other values: what one rounding hides,
  /// another shows.
  bool shown_by_other_values() {
    const ptx::Form& form = runs_.own_function().body[static_cast<size_t>(trial_.mutation.instruction)].form;
    const uint64_t most = trial_.other_work * (ptx::is_float(form.type()) ? kRoundedWork : 1);
    uint64_t work = 0;
    for (uint64_t round = 1; round <= kOtherSeeds; ++round)
      for (const size_t at : changing_) {
        if (work > most) return false;
        const MutationCase other{with_other_values(trial_.cases[at].case_, trial_.kernel, round),
                                 trial_.cases[at].row};
        ++more_cases_;
        try {
          const auto own = unjudged_case(other, trial_.kernel, trial_.machine);
          if (!own || !bits_change(*own, work)) continue;
        } catch (const BadInput&) {
          continue;  // the larger case is outside what the kernel takes: that says nothing of the mutant
        }
        const CleanCase clean = make_clean_case(other, trial_.kernel, trial_.machine, 0);
        if (!clean.fault.empty()) continue;
        const Seen seen = look(clean);
        if (seen == Seen::fault) return true;
        if (seen == Seen::bits) return false;
      }
    return false;
  }

  /// Cases of sizes drawn for this mutant alone, otherwise like those that launch its function: where they
  /// come to its instruction they are held against the kernel's own bits, the cheap ones are checked.
  bool shown_by_other_sizes() {
    std::vector<MutationCase> alike;
    for (const CleanCase& clean : trial_.cases)
      if (runs_.launches_own(clean.plan)) alike.push_back({clean.case_, clean.row});
    uint64_t work = 0, judged = 0, checked = 0;
    for (uint64_t i = 0; i < kSearched && work / 2 < trial_.other_work && judged < kJudgedOfSearched; ++i) {
      if (alike.empty()) break;
      const auto drawn =
          with_searched_sizes(alike[i * 7919 % alike.size()], trial_.kernel, fnv1a(result_.mutant.id), i,
                              [&](const Program& plan) { return runs_.launches_own(plan); });
      const auto own = drawn ? unjudged_case(*drawn, trial_.kernel, trial_.machine) : std::nullopt;
      if (!own || !is_reached_in(*own, work)) continue;
      ++more_cases_;
      if (bits_change(*own, work)) {
        ++judged;
        const CleanCase clean = make_clean_case(*drawn, trial_.kernel, trial_.machine, 0);
        if (clean.fault.empty() && look(clean) == Seen::fault) return true;
      } else if (own->outcome.lane_instructions >= kLeastChecked &&
                 own->outcome.lane_instructions < kCheapChecks && checked++ < kCheckedOfSearched) {
        if (shown_by_checks_of(*own)) return true;
      }
    }
    return false;
  }

  /// Where no case of the set comes to the instruction, does this one? Else it is taken for granted.
  bool is_reached_in(const CleanCase& own, uint64_t& work) const {
    if (!reaching_.empty()) return true;
    work += own.outcome.lane_instructions;
    return reach_of(own.plan, own.inputs, trial_.machine)
        .has(trial_.module.name, trial_.mutation.function, trial_.mutation.instruction);
  }

  CaseChoice choice() const {
    return {trial_.cases, reaching_, differing_, {trial_.module.name, trial_.mutation.function}};
  }

  bool shown_by_checks() {
    const std::vector<size_t> chosen = choice().to_check();
    return std::any_of(chosen.begin(), chosen.end(),
                       [&](size_t at) { return shown_by_checks_of(trial_.cases[at]); });
  }

  Verification checked(const CleanCase& clean, const Program& plan) const {
    runs_.go_on();
    Verification v;
    v.checks = vm::run_checked(plan, clean.inputs, runs_.machine(clean), {}, &v.trap);
    decide(v);
    return v;
  }
  bool shown_by_checks_of(const CleanCase& clean) {
    const Verification v = checked(clean, runs_.changed(clean));
    return v.verdict == Verdict::finding && checked(clean, clean.plan).verdict != Verdict::finding &&
           killed(clean, v.cause);
  }

  /// The output that exact arithmetic makes wrong; empty: none.
  std::string wrong_formula(const CleanCase& clean, const Program& plan) const {
    runs_.go_on();
    const vm::ExactRun exact = vm::run_exact(plan, clean.inputs, runs_.machine(clean));
    for (const ReferenceOutput& expected : clean.reference.outputs) {
      const auto like = clean.outcome.outputs.find(expected.name);
      const auto found = exact.outputs.find(expected.name);
      if (like == clean.outcome.outputs.end() || found == exact.outputs.end()) continue;
      if (compare_formula(like->second, found->second, expected).violation > 0) return expected.name;
    }
    return {};
  }
  /// What a format's rounding hides, real numbers show. A change of a rounding is none there.
  bool shown_by_formula() {
    const std::string_view change = trial_.mutation.change->name;
    if (change == "change-rounding" || change == "round-to-bf16") return false;
    size_t runs = 0;
    for (const size_t at : choice().varied()) {
      const CleanCase& clean = trial_.cases[at];
      if (clean.outcome.trap || clean.outcome.lane_instructions > kMostOfFormula) continue;
      if (runs++ == kFormulaCases) break;
      const std::string wrong = wrong_formula(clean, runs_.changed(clean));
      if (!wrong.empty() && wrong_formula(clean, clean.plan).empty())
        return killed(clean, "formula/" + wrong);
    }
    return false;
  }

  /// Shared memory need not begin at 0: on a few cases it does not, neither the kernel's nor the mutant's.
  bool shown_where_shared_memory_moves() {
    const std::vector<size_t> chosen = choice().varied();
    for (size_t i = 0; i < std::min(chosen.size(), kMovedCases); ++i) {
      runs_.go_on();
      CleanCase clean = trial_.cases[chosen[i]];
      const Program changed = with_shared_memory_moved(runs_.changed(clean));
      clean.plan = with_shared_memory_moved(clean.plan);
      if (changed.launches.empty()) return false;
      try {
        if (!same_bits(clean.outcome, vm::run(clean.plan, clean.inputs, trial_.machine))) return false;
      } catch (const BadInput&) {
        return false;  // there is no place for more
      }
      const Verification v =
          judged(clean, trial_.kernel, vm::run(changed, clean.inputs, runs_.machine(clean)), &clean.outcome);
      if (v.verdict == Verdict::finding) return killed(clean, v.cause + kMoved);
      const Verification by_checks = checked(clean, changed);
      if (by_checks.verdict == Verdict::finding && checked(clean, clean.plan).verdict != Verdict::finding)
        return killed(clean, by_checks.cause + kMoved);
    }
    return false;
  }

  bool shown_by_properties() {
    const Kernel mutant = with_text(trial_.kernel, result_.mutant.id, trial_.module.name, runs_.text);
    size_t runs = 0;
    for (const size_t at : choice().small()) {
      const CleanCase& clean = trial_.cases[at];
      if (clean.properties.empty() || clean.outcome.lane_instructions < kLeastChecked) continue;
      if (runs++ == kPropertyCases) break;
      runs_.go_on();
      const vm::MachineOptions options = runs_.machine(clean);
      // The runs that a property compares may be longer than the case.
      const auto backend = make_vm_backend({options.arch, 1, kLonger * options.instruction_budget});
      Verification v;
      v.case_ = clean.case_;
      v.lane_instructions = clean.outcome.lane_instructions;
      decide(v);
      record_failures(v, check_properties(v, mutant, *backend, clean.properties, {&clean.inputs}));
      if (v.verdict == Verdict::finding) return killed(clean, v.cause);
    }
    return false;
  }

  /// Reached, infected, propagated: how near a survivor came to being seen.
  std::string how_far() {
    if (reaching_.empty()) return "no case comes to this instruction" + what_is_closed();
    bool has_result = true;
    for (const size_t at : choice().varied()) {
      runs_.go_on();
      const CleanCase& clean = trial_.cases[at];
      const auto changes = result_changes(clean.plan, runs_.changed(clean), clean.inputs,
                                          runs_.machine(clean), trial_.module.name, trial_.mutation);
      has_result = changes.has_value();
      if (!has_result) break;
      if (*changes) changing_.push_back(at);
      if (changing_.size() == kOtherCases) break;
    }
    if (!has_result) return where_it_goes();
    return changing_.empty() ? "it runs, and its result is always the same"
                             : "its result differs, no output does" + where_it_ends(changing_.front());
  }

  std::string what_is_closed() const {
    std::vector<bool> came_to(runs_.own_function().body.size());
    for (const CleanCase& clean : trial_.cases)
      for (size_t i = 0; i < came_to.size(); ++i)
        if (clean.reach.has(trial_.module.name, trial_.mutation.function, static_cast<int32_t>(i)))
          came_to[i] = true;
    const std::vector<int32_t> closed =
        closed_branches(runs_.own_function(), came_to, trial_.mutation.instruction);
    if (closed.empty()) return {};
    return ": never this way at " + lines_of(trial_.module.program->module(), trial_.mutation.function,
                                             closed, [](const ptx::Instruction&) { return std::string(); });
  }

  std::string where_it_ends(size_t at) const {
    const CleanCase& clean = trial_.cases[at];
    const std::vector<int32_t> ends =
        difference_ends(clean.plan, runs_.changed(clean), clean.inputs, runs_.machine(clean),
                        trial_.module.name, runs_.own_function(), trial_.mutation);
    if (ends.empty()) return {};
    return ": it ends at " +
           lines_of(trial_.module.program->module(), trial_.mutation.function, ends,
                    [](const ptx::Instruction& in) { return fmt::format(" ({})", why_it_ends(in)); });
  }

  /// Of what leaves nothing in registers: stores, barriers, branches.
  std::string where_it_goes() const {
    const std::vector<size_t> cases = choice().small();
    for (size_t i = 0; i < std::min(cases.size(), kOtherCases); ++i) {
      runs_.go_on();
      const CleanCase& clean = trial_.cases[cases[i]];
      if (runs_.goes_another_way(clean)) return "the run goes another way, no output differs";
    }
    return "it runs, the way is the same, and no output differs";
  }

  /// Of a mutant that nothing shows.
  std::string leaves_the_same() {
    const ParameterRoles parameters = roles();
    const ptx::Function& own = runs_.own_function();
    const bool steers =
        only_steers(own, ValueRanges(own, parameters), trial_.mutation.instruction, parameters);
    const std::vector<size_t> small = choice().small();
    std::string why = steers ? only_another_way(runs_, small) : std::string();
    const bool rounds = trial_.mutation.change->name == "change-rounding";  // in every term where it rounds
    return why.empty() && !rounds ? only_other_steps(runs_, small) : why;
  }

  const MutantTrial& trial_;
  MutantRuns runs_;
  std::vector<size_t> reaching_, differing_;
  std::vector<size_t> changing_;  ///< where the instruction's own result differs
  int64_t more_cases_ = 0;
  MutantResult result_;
};

}  // namespace

std::optional<MutantResult> try_mutant(const MutantTrial& trial, const SourceText& source) {
  return Attempt(trial, source).run();
}

}  // namespace assay
