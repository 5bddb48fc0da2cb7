#include "src/campaign/mutate/mutate_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "kernels/mutant.h"
#include "reference/parallel.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/vm/launch.h"
#include "src/campaign/engine/budget.h"
#include "src/campaign/engine/engine.h"
#include "src/campaign/mutate/equivalence.h"
#include "src/campaign/mutate/population.h"
#include "src/capsule/size_draw.h"
#include "src/verification/verify/check_program.h"
#include "src/verification/verify/expected_values.h"
#include "src/verification/verify/verdict.h"

namespace assay {
namespace {

/// Sizes that take more lane-instructions are left out where others are drawn.
constexpr uint64_t kMostOfDrawn = 20'000'000;
/// Sizes at which a mutant that gives the same values is checked, which takes several runs.
constexpr size_t kCheckedSizes = 4;

TensorMap written_by(const Outcome& outcome) {
  TensorMap all = outcome.outputs;
  for (const auto& [name, tensor] : outcome.changed_inputs) all.emplace(name, tensor);
  return all;
}

class ProgramCampaign {
 public:
  ProgramCampaign(const LaunchFile& file, const ProgramMutateOptions& options,
                  const std::function<void(const MutationProgress&)>& progress)
      : file_(file),
        options_(options),
        progress_(progress),
        source_(file.name()),
        budget_(options.time_s, options.interrupted) {
    options_.machine.threads = 1;
    options_.jobs = workers(options.jobs);
    run_.kernel = file.name(), run_.seed = options.seed;
    run_.backend = "vm " + options.machine.arch;
  }

  MutationRun run() {
    make_cases();
    const Population population(cases_, options_.jobs);
    run_.possible = population.possible();
    run_.asked = std::min(options_.mutants, run_.possible);
    run_.places = static_cast<int64_t>(population.places().size());
    run_.cases = static_cast<int64_t>(cases_.size());
    run_.instructions = population.instructions();
    run_.instructions_reached = population.instructions_reached();
    const std::vector<PossibleMutant> sequence = population.sequence(options_.seed);
    // What the machine refuses is no mutant: others take its place.
    for (size_t begun = 0; begun < sequence.size() && !budget_.over();) {
      const auto left = run_.asked - static_cast<int64_t>(run_.mutants.size());
      const auto count = std::min<int64_t>(left, static_cast<int64_t>(sequence.size() - begun));
      if (count == 0) break;
      std::vector<std::optional<Mutant>> tried(static_cast<size_t>(count));
      parallel_for(count, options_.jobs, [&](int64_t i) {
        if (budget_.over()) return;
        const PossibleMutant& possible = sequence[begun + static_cast<size_t>(i)];
        auto& mutant = tried[static_cast<size_t>(i)];
        mutant = try_mutant(population.modules()[static_cast<size_t>(possible.module)], possible.mutation);
        if (mutant) note(*mutant);
      });
      for (std::optional<Mutant>& mutant : tried)
        if (mutant) run_.mutants.push_back(std::move(*mutant));
      begun += static_cast<size_t>(count);
    }
    run_.seconds = budget_.seconds();
    return std::move(run_);
  }

 private:
  /// The declared sizes, and of those drawn what comes to an instruction, or gives a comparison an outcome,
  /// that none before does.
  void make_cases() {
    Reach known;
    for (int number = 0; number <= options_.drawn && !budget_.over(); ++number) {
      const RandomStream random(options_.seed, fmt::format("mutate {}", number));
      std::map<std::string, int64_t> sizes;
      int64_t place = 0;
      for (const NamedSize& size : file_.sizes())
        sizes[size.name] = number == 0 ? size.value : draw_size(size, random, place++);
      if (!file_.accepts(sizes)) continue;
      add_case(sizes, static_cast<uint64_t>(number) + 1, known);
      progress_({"cases", number + 1, options_.drawn + 1});
    }
    if (cases_.empty())
      throw BadInput(fmt::format("{}: no sizes at which it runs and check finds nothing{}", file_.name(),
                                 run_.set_aside.empty() ? "" : "; the first is " + run_.set_aside.front()));
  }

  void add_case(const std::map<std::string, int64_t>& sizes, uint64_t seed, Reach& known) {
    CleanCase clean;
    Capsule capsule;
    try {
      capsule = file_.make(sizes, seed);
    } catch (const BadInput&) {
      if (seed == 1) throw;
      return;  // no launch at these sizes
    }
    clean.plan = capsule.program, clean.inputs = capsule.inputs, clean.row = cases_.size();
    for (const auto& [name, value] : sizes)
      clean.token += fmt::format("{}{}={}", clean.token.empty() ? "--size " : ",", name, value);
    if (seed != 1) clean.token += fmt::format("{}--seed {}", clean.token.empty() ? "" : " ", seed);
    clean.outcome = vm::run(clean.plan, clean.inputs, options_.machine);
    if (seed != 1 && clean.outcome.lane_instructions > kMostOfDrawn) return;
    if (const std::string fault = fault_of(clean.plan, clean.inputs, capsule.partly, options_.machine);
        !fault.empty())
      return run_.set_aside.push_back(fmt::format("{}: {}", clean.token, fault));
    clean.reach = reach_of(clean.plan, clean.inputs, options_.machine);
    if (known.add(clean.reach) == 0) return;
    partly_ = capsule.partly;
    cases_.push_back(std::move(clean));
  }

  /// What `assay check` finds, architectures aside; empty: nothing.
  std::string fault_of(const Program& program, const TensorMap& inputs, const std::set<std::string>& partly,
                       const vm::MachineOptions& machine) const {
    ProgramCheckOptions options;
    options.machine = options.origin.machine = machine;
    options.births = options.architectures = false;
    options.partly = partly, options.repeat_instructions = kMostOfDrawn;
    options.origin.nearest_inputs = 0;
    return check_program(file_.name(), program, inputs, options).cause;
  }

  /// Nothing where the machine refuses the changed text.
  std::optional<Mutant> try_mutant(const MutatedModule& module, const ptx::Mutation& mutation) const {
    Mutant m;
    const ptx::Module& program = module.program->module();
    m.id = mutant_id(module.name, module.program->name(mutation));
    m.change = mutation.change->name;
    m.where = place_of(program, mutation.function, mutation.instruction);
    m.source_text = source_.line(m.where);
    m.original = module.program->original(mutation);
    m.replacement = module.program->replacement(mutation);
    const auto text = std::make_shared<const std::string>(module.program->with(mutation));
    try {
      decide_outcome(module, mutation, text, m);
    } catch (const BadInput&) {
      return std::nullopt;
    }
    return m;
  }

  void decide_outcome(const MutatedModule& module, const ptx::Mutation& mutation,
                      const std::shared_ptr<const std::string>& text, Mutant& m) const {
    std::vector<const CleanCase*> same;
    for (const CleanCase& clean : cases_) {
      if (!clean.reach.has(module.name, mutation.function, mutation.instruction)) continue;
      ++m.reached_by, ++m.cases;
      const auto [cause, bits] = difference(clean, changed(clean, module.name, text));
      if (!cause.empty()) return kill(m, clean, cause);
      if (bits && m.token.empty()) m.token = clean.token;
      if (!bits) same.push_back(&clean);
    }
    if (m.token.empty())
      m.reason =
          why_equivalent(module.program->module(), ptx::parse_functions(*text, module.path), mutation, {});
    if (!m.reason.empty()) return void(m.outcome = MutantOutcome::equivalent);
    std::stable_sort(same.begin(), same.end(), [](const CleanCase* a, const CleanCase* b) {
      return a->outcome.lane_instructions < b->outcome.lane_instructions;
    });
    // The smallest sizes have one warp, in which nothing races: the largest are checked first.
    std::reverse(same.begin(), same.end());
    for (size_t i = 0; i < std::min(kCheckedSizes, same.size()); ++i)
      if (const std::string cause =
              fault_of(changed(*same[i], module.name, text), same[i]->inputs, partly_, machine(*same[i]));
          !cause.empty())
        return kill(m, *same[i], cause);
    m.outcome = m.token.empty() ? MutantOutcome::survived : MutantOutcome::within_bound;
    if (m.outcome == MutantOutcome::survived)
      m.reason = m.reached_by == 0 ? "no sizes come to this instruction"
                                   : "it runs, and what comes out is always the same";
  }

  static void kill(Mutant& m, const CleanCase& clean, const std::string& cause) {
    m.outcome = MutantOutcome::killed, m.reason = cause, m.token = clean.token;
  }

  static Program changed(const CleanCase& clean, const std::string& module,
                         const std::shared_ptr<const std::string>& text) {
    Program program = clean.plan;
    for (Module& each : program.modules)
      if (each.name == module) each.ptx = text;
    return program;
  }

  vm::MachineOptions machine(const CleanCase& clean) const {
    vm::MachineOptions machine = options_.machine;
    machine.instruction_budget = most_of_a_mutant(clean.reach);
    return machine;
  }

  /// The cause of a verdict against the program's own values, and whether any bit differs.
  std::pair<std::string, bool> difference(const CleanCase& clean, const Program& program) const {
    const Outcome outcome = vm::run(program, clean.inputs, machine(clean));
    Verification v;
    v.kernel = file_.name(), v.trap = outcome.trap;
    bool bits = false;
    if (!outcome.trap) {
      TensorMap expected = written_by(clean.outcome), got = written_by(outcome);
      // What only one of the two changed in place is held against the input itself.
      for (const auto& [name, tensor] : got)
        if (!expected.contains(name)) expected.emplace(name, clean.inputs.at(name));
      for (const auto& [name, tensor] : expected)
        if (!got.contains(name)) got.emplace(name, clean.inputs.at(name));
      std::erase_if(expected, [&](const auto& item) {
        return differing_elements(item.second, got.at(item.first)) == 0;
      });
      bits = !expected.empty();
      hold_against_expected(got, expected, options_.tolerance, v);
    }
    decide(v);
    return {v.verdict == Verdict::finding ? v.cause : "", bits};
  }

  void note(const Mutant& mutant) {
    const std::scoped_lock lock(mutex_);
    ++done_, killed_ += mutant.outcome == MutantOutcome::killed;
    survived_ += mutant.outcome == MutantOutcome::survived;
    progress_({"mutants", done_, run_.asked, killed_, survived_});
  }

  const LaunchFile& file_;
  ProgramMutateOptions options_;
  const std::function<void(const MutationProgress&)>& progress_;
  SourceText source_;
  const Budget budget_;
  std::vector<CleanCase> cases_;
  std::set<std::string> partly_;
  std::mutex mutex_;
  int64_t done_ = 0, killed_ = 0, survived_ = 0;
  MutationRun run_;
};

}  // namespace

MutationRun mutate_program(const LaunchFile& file, const ProgramMutateOptions& options,
                           const std::function<void(const MutationProgress&)>& progress) {
  return ProgramCampaign(file, options, progress).run();
}

}  // namespace assay
