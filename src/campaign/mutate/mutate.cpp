#include "src/campaign/mutate/mutate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <thread>

#include "kernels/mutant.h"
#include "reference/parallel.h"
#include "src/base/numerics/bad_input.h"
#include "src/campaign/engine/budget.h"
#include "src/campaign/engine/in_order.h"
#include "src/campaign/engine/journal.h"
#include "src/campaign/mutate/case_set.h"
#include "src/campaign/mutate/clean_case.h"
#include "src/campaign/mutate/mutant_record.h"
#include "src/campaign/mutate/plan_survey.h"
#include "src/campaign/mutate/population.h"
#include "src/campaign/mutate/trial_of_mutant.h"
#include "src/result/tool.h"

namespace assay {
namespace {

/// Mutants that are tried in one order of the cases; then what killed is put before what did not.
constexpr int64_t kBatch = 40;
/// What starting a run costs, in lane instructions.
constexpr double kStart = 3e5;
/// Mutants in flight are given up when the run is late by this part of its time.
constexpr double kLate = 0.1;
/// Cases above this are too long for the properties' several runs.
constexpr uint64_t kMostForProperties = 4'000'000;
/// Shares of a limited time until which cases of the table are made, and other candidates tried.
constexpr double kTimeOfTable = 0.3, kTimeOfCases = 0.45;

std::vector<Direction> directions_asked(const Kernel& kernel, const std::vector<Direction>& asked) {
  std::vector<Direction> own = directions_of(kernel);
  std::erase(own, Direction::both);
  for (const Direction direction : asked)
    if (std::find(own.begin(), own.end(), direction) == own.end())
      throw BadInput(fmt::format("{}: no entry point for direction {}; it has {}", kernel.name,
                                 name_of(direction), fmt::join(names_of(own), ", ")));
  return asked.empty() ? own : asked;
}

/// How often the cases of a row were tried and killed.
struct RowRecord {
  double tried = 0, killed = 0;
};

class Campaign {
 public:
  Campaign(const Kernel& kernel, const MutateOptions& options,
           const std::function<void(const MutationProgress&)>& progress)
      : kernel_(kernel),
        options_(options),
        progress_(progress),
        source_(kernel.name),
        budget_(options.time_s, options.interrupted),
        journal_(options.journal, "mutate", identity()) {
    options_.machine.threads = 1;
    if (options_.jobs <= 0)
      options_.jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }

  MutationRun run() {
    run_.kernel = kernel_.name;
    run_.backend = "vm " + options_.machine.arch;
    run_.seed = options_.seed;
    make_cases();
    if (budget_.over()) return std::move(run_);
    const Population& population = population_.emplace(cases_, options_.jobs);
    survey_ = PlanSurvey(kernel_, directions_asked(kernel_, options_.directions), options_.jobs);
    const std::vector<PossibleMutant> sequence =
        options_.again.empty() ? population.sequence(options_.seed) : asked_again(population);
    const auto most = options_.again.empty() ? options_.mutants : static_cast<int64_t>(sequence.size());
    const int64_t asked = std::min(most, population.possible());
    run_.asked = options_.shard.end(asked) - options_.shard.begin(asked);
    run_.possible = population.possible();
    run_.places = static_cast<int64_t>(population.places().size());
    run_.cases = static_cast<int64_t>(cases_.size());
    run_.instructions = population.instructions();
    run_.instructions_reached = population.instructions_reached();
    for (const PossibleMutant& possible : sequence)
      if (options_.shard.takes(drawn_++)) sequence_.push_back(possible);
    Engine engine;
    engine.run(options_.jobs, [this] { return next(); });
    for (MutantResult& result : results_.rest()) add(std::move(result));
    run_.seconds = budget_.seconds();
    return std::move(run_);
  }

 private:
  /// All that a mutant's record depends on.
  std::string identity() const {
    return nlohmann::json{{"commit", tool_commit()},        {"kernel", kernel_.name},
                          {"shard", options_.shard.text()}, {"own", options_.own},
                          {"arch", options_.machine.arch},  {"directions", names_of(options_.directions)},
                          {"drawn", options_.drawn},        {"mutants", options_.mutants},
                          {"seed", options_.seed},          {"again", options_.again}}
        .dump();
  }

  std::vector<PossibleMutant> asked_again(const Population& population) const {
    std::vector<PossibleMutant> found;
    std::set<std::string> left;
    for (const auto& [id, original] : options_.again) left.insert(id);
    for (const MutationPlace& place : population.places())
      for (const PossibleMutant& possible : place.mutants) {
        const MutatedModule& module = population.modules()[static_cast<size_t>(possible.module)];
        const std::string id = mutant_id(module.name, module.program->name(possible.mutation));
        if (left.erase(id) == 0) continue;
        if (module.program->original(possible.mutation) != options_.again.at(id))
          throw BadInput(fmt::format("mutant '{}': that instruction is now {}", id,
                                     module.program->original(possible.mutation)));
        found.push_back(possible);
      }
    if (!left.empty())
      throw BadInput(
          fmt::format("{}: has no mutant '{}' in what its cases launch", kernel_.name, *left.begin()));
    return found;
  }

  void make_cases() {
    const std::vector<Direction> directions = directions_asked(kernel_, options_.directions);
    add_cases(mutation_cases(kernel_, directions));
    std::vector<MutationCase> candidates;
    const auto add = [&](std::vector<MutationCase> more) {
      candidates.insert(candidates.end(), more.begin(), more.end());
    };
    const auto row = [&] { return candidates.empty() ? next_row() : candidates.back().row + 1; };
    add(absence_cases(kernel_, directions, row()));
    add(costly_cases(kernel_, directions, row()));
    add(drawn_cases(kernel_, directions, options_.drawn, options_.seed, row()));
    keep_telling(candidates);
    sizes_ = std::move(candidates);
    if (budget_.over()) return;
    const auto unmade = static_cast<int64_t>(
        std::erase_if(cases_, [](const CleanCase& clean) { return clean.token.empty(); }));
    if (unmade + unseen_ > 0)
      run_.set_aside.push_back(fmt::format(
          "{} of the table's cases and {} candidates, which --time left no time for", unmade, unseen_));
    for (const CleanCase& clean : cases_)
      if (!clean.fault.empty()) run_.set_aside.push_back(fmt::format("{}: {}", clean.token, clean.fault));
    std::erase_if(cases_, [](const CleanCase& clean) { return !clean.fault.empty(); });
    if (cases_.empty())
      throw BadInput(fmt::format("{}: passes none of the cases that mutants are tried on{}", kernel_.name,
                                 run_.set_aside.empty() ? "" : "; the first is " + run_.set_aside.front()));
    for (const CleanCase& clean : cases_) rows_.resize(std::max(rows_.size(), clean.row + 1));
  }

  size_t next_row() const { return cases_.empty() ? 0 : cases_.back().row + 1; }

  void add_cases(const std::vector<MutationCase>& wanted) {
    const size_t first = cases_.size();
    cases_.resize(first + wanted.size());
    std::mutex mutex;
    int64_t done = 0;
    parallel_for(static_cast<int64_t>(wanted.size()), options_.jobs, [&](int64_t i) {
      if (enough_cases(kTimeOfTable)) return;
      cases_[first + static_cast<size_t>(i)] =
          make_clean_case(wanted[static_cast<size_t>(i)], kernel_, options_.machine, kMostForProperties);
      const std::scoped_lock lock(mutex);
      progress_({"cases", ++done, static_cast<int64_t>(wanted.size())});
    });
  }

  /// Of the candidates those that come to an instruction, or give a comparison an outcome, that none before
  /// them does.
  void keep_telling(const std::vector<MutationCase>& candidates) {
    Reach known;
    for (const CleanCase& clean : cases_) known.add(clean.reach);
    std::vector<MutationCase> kept = telling(candidates, known), others;
    for (const MutationCase& each : kept)  // each format has modules of its own
      for (MutationCase& other : in_other_formats(each, kernel_)) others.push_back(std::move(other));
    const std::vector<MutationCase> more = telling(others, known);
    kept.insert(kept.end(), more.begin(), more.end());
    add_cases(kept);
  }

  /// Has this share of a limited time gone? The rest is the mutants'.
  bool enough_cases(double share) const {
    return budget_.over() || (budget_.timed() && budget_.left(0) < (1 - share) * options_.time_s);
  }

  std::vector<MutationCase> telling(const std::vector<MutationCase>& candidates, Reach& known) {
    std::vector<Reach> reaches(candidates.size());
    parallel_for(static_cast<int64_t>(candidates.size()), options_.jobs, [&](int64_t i) {
      if (enough_cases(kTimeOfCases))
        ++unseen_;
      else
        reaches[static_cast<size_t>(i)] =
            reach_of_case(candidates[static_cast<size_t>(i)].case_, kernel_, options_.machine);
    });
    std::vector<MutationCase> kept;
    for (size_t i = 0; i < candidates.size(); ++i)
      if (known.add(reaches[i]) > 0) kept.push_back(candidates[i]);
    return kept;
  }

  /// Most kills for their cost first; at the beginning as the table has them.
  std::vector<size_t> order() const {
    std::vector<size_t> positions(cases_.size());
    std::iota(positions.begin(), positions.end(), size_t{0});
    const auto worth = [&](size_t at) {
      const RowRecord& record = rows_[cases_[at].row];
      if (first_) return -static_cast<double>(cases_[at].row);
      const double cost = kStart + static_cast<double>(cases_[at].outcome.lane_instructions);
      return (record.killed + 0.2) / (record.tried + 1) / cost;
    };
    std::stable_sort(positions.begin(), positions.end(),
                     [&](size_t a, size_t b) { return worth(a) > worth(b); });
    return positions;
  }

  /// The next batch, where the one before it is merged entirely: that decides the order of the cases.
  void begin_batch() {
    if (results_.taken() < static_cast<int64_t>(begun_)) return;
    const auto left = static_cast<size_t>(run_.asked) - run_.mutants.size();
    batch_end_ = begun_ + std::min<size_t>({sequence_.size() - begun_, kBatch, left});
    order_of_batch_ = order();
    first_ = false;
  }

  Task next() {
    if (begun_ == batch_end_) begin_batch();
    if (begun_ == batch_end_ || budget_.over()) return nullptr;
    const size_t number = begun_++;
    return journaled(
        journal_, std::to_string(number),
        [this, number] {
          const std::optional<MutantResult> result = tried(sequence_[number]);
          return result ? to_json(*result) : nlohmann::json();
        },
        [this, number](const nlohmann::json& record) {
          MutantResult result = mutant_result_from_json(record);
          done_ += result.born;
          killed_ += result.mutant.outcome == MutantOutcome::killed;
          survived_ += result.mutant.outcome == MutantOutcome::survived;
          progress_({"mutants", done_, run_.asked, killed_, survived_});
          results_.add(static_cast<int64_t>(number), std::move(result));
          while (auto in_order = results_.next()) add(std::move(*in_order));
        });
  }

  std::optional<MutantResult> tried(const PossibleMutant& possible) const {
    const MutatedModule& module = population_->modules()[static_cast<size_t>(possible.module)];
    return try_mutant({kernel_, cases_, module, possible.mutation, options_.machine, order_of_batch_, &sizes_,
                       &survey_, [this] { return budget_.late_by() > kLate * options_.time_s; }},
                      source_);
  }

  /// In the order of the sequence.
  void add(MutantResult result) {
    if (!result.born) return;
    for (const size_t row : result.tried) rows_[row].tried += 1;
    if (result.killed_by_case) rows_[result.tried.back()].killed += 1;
    run_.mutants.push_back(std::move(result.mutant));
  }

  const Kernel& kernel_;
  MutateOptions options_;
  const std::function<void(const MutationProgress&)>& progress_;
  SourceText source_;
  const Budget budget_;
  Journal journal_;
  std::vector<CleanCase> cases_;
  std::vector<MutationCase> sizes_;  ///< what was drawn, kept or not
  std::vector<RowRecord> rows_;
  std::optional<Population> population_;
  PlanSurvey survey_;
  std::vector<PossibleMutant> sequence_;
  std::vector<size_t> order_of_batch_;  ///< positions of cases
  int64_t drawn_ = 0;                   ///< of all shards
  std::atomic<int64_t> unseen_{0};      ///< candidates that there was no time for
  size_t begun_ = 0, batch_end_ = 0;    ///< in the sequence
  InOrder<MutantResult> results_;
  bool first_ = true;
  int64_t done_ = 0, killed_ = 0, survived_ = 0;
  MutationRun run_;
};

}  // namespace

MutationRun mutate(const Kernel& kernel, const MutateOptions& options,
                   const std::function<void(const MutationProgress&)>& progress) {
  return Campaign(kernel, options, progress).run();
}

}  // namespace assay
