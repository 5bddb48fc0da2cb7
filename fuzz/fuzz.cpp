// The loop. Cases are made in blocks; block b knows what blocks up to known_block(b) reached, and reports are
// taken in the order of the cases. So what is drawn, found and counted depends on the seed alone. A run's
// first blocks soon know of each other; later ones leave so many cases between them that one that costs a
// hundred times the others holds up no thread.
#include "fuzz/fuzz.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <system_error>

#include "fuzz/choice.h"
#include "fuzz/coverage.h"
#include "fuzz/covering_draw.h"
#include "fuzz/generator.h"
#include "fuzz/kernel_record.h"
#include "fuzz/run_store.h"
#include "fuzz/settle.h"
#include "fuzz/shrink.h"
#include "fuzz/trial.h"
#include "fuzz/trial_runner.h"
#include "kernels/compile_ptx.h"
#include "reference/parallel.h"
#include "src/base/numerics/bad_input.h"
#include "src/campaign/engine/budget.h"
#include "src/campaign/engine/engine.h"
#include "src/campaign/engine/fair_shares.h"
#include "src/campaign/engine/in_order.h"
#include "src/result/one_per_defect.h"

namespace assay {
namespace {

constexpr int64_t kBlock = 32;
constexpr int64_t kMostBlocksBehind = 48;
/// So many faults of a kernel are traced each; later ones one in eight.
constexpr int64_t kTracedFaults = 24;
/// So many causes are shrunk, of one kernel among many fewer; further ones are kept as they were found.
constexpr int64_t kShrunkFindings = 16, kLeastShrunkFindings = 4;
/// A kernel none of whose first cases was accepted is given up.
constexpr int64_t kMostRejections = 64;
/// Explaining a finding may go on for that share of the time after it; what is still to shrink then is kept
/// as it was found. Shrinking itself leaves the explanation a share of the time, but no more than it needs.
constexpr double kBeyond = 0, kLeftToExplain = 0.2, kMostToExplain_s = 15;
constexpr const char* kUnfinished = "the process ended before the run did";
/// One case in so many runs a few blocks of a case with indices past 2^31.
constexpr uint64_t kCasesPerFarCase = 40;

/// The last block whose reports block `block` is drawn from; negative where there is none.
int64_t known_block(int64_t block) {
  return block - std::clamp<int64_t>(block / 2, 2, kMostBlocksBehind);
}

/// What the cases taken so far have shown of one kernel: all that drawing further cases depends on.
struct Knowledge {
  Feedback feedback;
  int64_t faults = 0;
};

struct Finding {
  TrialReport report;
  std::shared_ptr<int64_t> row;  ///< in the database; 0 until it is written there
};

class Fuzzer {
 public:
  Fuzzer(const std::vector<const Kernel*>& kernels, Backend& backend, const FuzzOptions& options,
         Listener& listener)
      : kernels_(kernels),
        trials_(runner(kernels, backend, options)),
        options_(options),
        listener_(listener),
        // Each thread compiles kernels for the case that it runs, and that is not what the time is for.
        budget_(options.cases == 0 ? options.time_s : 0, options.interrupted,
                [jobs = workers(options.jobs)] { return seconds_compiling() / jobs; }),
        store_(options.db, listener),
        shares_(kernels.size()) {
    for (const Kernel* kernel : kernels) run_.kernels.push_back(kernel->name);
    make_records();
    run_.backend = backend.name() + (options.peer ? " and " + options.peer->name() : "");
    run_.seed = options.seed;
    run_.checkout = options.checkout;
    run_.ended_early = kUnfinished;  // as the database has it of a process that was killed
    for (const Property& property : properties())
      run_.properties.push_back({std::string(property.name), 0, 0});
    if (store_.database() != nullptr) resume_corpus();
    known_at_start_ = knowledge();
    if (Database* db = store_.database()) row_ = db->begin_run(run_);
    queue_known();
  }

  FuzzRun run() {
    listener_.started(kernels_, options_, run_.backend);
    try {
      engine_.run(options_.jobs, [this] { return next(); });
      run_.ended_early.clear();
      if (budget_.interrupted() && !finished()) run_.ended_early = "interrupted";
    } catch (...) {
      end_early();
    }
    run_.not_shrunk = static_cast<int64_t>(to_shrink_.size());
    count_too_few();
    store_block();
    store_.finish();
    run_.database_lost = store_.lost();
    if (run_.cases == 0 && !budget_.interrupted()) refuse_empty();
    if (options_.baseline != nullptr) mark_familiar(*options_.baseline, run_.findings);
    run_.findings = one_per_defect(std::move(run_.findings));
    return run_;
  }

 private:
  static std::unique_ptr<TrialRunner> runner(const std::vector<const Kernel*>& kernels, Backend& backend,
                                             const FuzzOptions& options) {
    if (options.leader != nullptr) return std::make_unique<SharedTrials>(*options.leader, kernels);
    return std::make_unique<OwnTrials>(backend, options);
  }

  /// Of an interrupted run all are.
  void count_too_few() {
    run_.min_cases = options_.min_cases;
    for (const KernelRecord& record : records_)
      if (record.accepted < options_.min_cases && !budget_.interrupted())
        run_.too_few.push_back({record.kernel().name, record.accepted});
  }

  /// What pairs of features a kernel takes is looked for by drawing: on all threads.
  void make_records() {
    std::vector<std::optional<KernelRecord>> made(kernels_.size());
    parallel_for(std::ssize(kernels_), workers(options_.jobs),
                 [&](int64_t k) { made[static_cast<size_t>(k)].emplace(*kernels_[static_cast<size_t>(k)]); });
    records_.reserve(made.size());
    for (std::optional<KernelRecord>& record : made) records_.push_back(*std::move(record));
  }

  /// In a handler of what failed. What was found before is not given up for it; our own faults are not hidden
  /// by it.
  void end_early() {
    try {
      throw;
    } catch (const BadInput& error) {
      run_.ended_early = error.what();
    } catch (const CannotCompile& error) {
      run_.ended_early = error.what();
    } catch (const std::system_error& error) {
      run_.ended_early = error.what();
    } catch (const std::bad_alloc&) {
      run_.ended_early = "not enough memory for a case";
    }
    if (run_.findings.empty()) throw;  // nothing to lose
  }

  /// A run that judged nothing is no pass.
  void refuse_empty() const {
    for (const KernelRecord& record : records_)
      if (record.rejected > 0) throw BadInput(record.all_refused());
    for (const KernelRecord& record : records_)
      if (record.too_large > 0)
        throw BadInput(fmt::format("{}: there is not enough memory for any of the {} cases drawn",
                                   record.kernel().name, record.too_large));
    throw BadInput(fmt::format("no case was judged in {:.1f} s: give more --time", budget_.seconds()));
  }

  /// The next thing to do: a finding to shrink, else a case. Nothing while blocks before the next one are not
  /// taken, and when the run is over.
  Task next() {
    if (!to_shrink_.empty() && !budget_.over()) {
      const size_t finding = to_shrink_.front();
      to_shrink_.pop_front();
      ++shrinking_;
      return [this, finding] { return shrink_finding(finding); };
    }
    if (ready_.empty()) make_block();
    if (ready_.empty() || budget_.over()) return nullptr;
    const Trial trial = std::move(ready_.front());
    ready_.pop_front();
    return [this, trial] {
      return Merge([this, report = trials_->run(trial)]() mutable { take(std::move(report)); });
    };
  }

  bool finished() const { return !budget_.timed() && taken() == wanted(); }
  int64_t taken() const { return reports_.taken(); }
  int64_t wanted() const {
    return options_.shard.end(options_.cases) - options_.shard.begin(options_.cases) + known_cases_;
  }
  /// Number, in the whole run, of the first case that this shard draws.
  int64_t first_drawn() const {
    constexpr int64_t kFarApart = int64_t{1} << 40;
    return budget_.timed() ? (options_.shard.number - 1) * kFarApart : options_.shard.begin(options_.cases);
  }

  /// Draws the next block, once the block that it has to know has been taken entirely.
  void make_block() {
    const int64_t block = made_ / kBlock;
    const int64_t last = known_block(block);
    if (made_ % kBlock != 0 || taken() < (last + 1) * kBlock || budget_.over()) return;
    const int64_t end = budget_.timed() ? made_ + kBlock : std::min(made_ + kBlock, wanted());
    const std::vector<Knowledge>& known = last < 0 ? known_at_start_ : known_after_.at(last);
    for (; made_ < end; ++made_) {
      if (!known_queue_.empty()) {
        ready_.push_back(std::move(known_queue_.front()));
        known_queue_.pop_front();
        ready_.back().index = made_;
        shares_.begin(index_of(*ready_.back().kernel));
        continue;
      }
      const size_t k = budget_.timed() ? shares_.least_served()
                                       : static_cast<size_t>(first_drawn() + made_) % kernels_.size();
      shares_.begin(k);
      Trial trial;
      trial.index = made_;
      trial.kernel = kernels_[k];
      const auto index = static_cast<uint64_t>(first_drawn() + made_ - known_cases_);
      const Operator& op = find_operator(trial.kernel->operator_name);
      const bool far = options_.far && far_due(options_.seed, index);
      trial.case_ = far ? draw_far_case(*trial.kernel, op, options_.seed, index)
                        : drawn_case(k, op, known[k].feedback, index);
      trial.properties = properties_due(trial.case_, options_.seed, static_cast<int64_t>(index));
      trial.diagnose = known[k].faults < kTracedFaults || made_ % 8 == 0;
      ready_.push_back(std::move(trial));
    }
  }

  /// For its pairs of features, where that is its turn.
  Case drawn_case(size_t k, const Operator& op, const Feedback& feedback, uint64_t index) {
    FeaturePairs& pairs = records_[k].pairs();
    std::optional<Case> c;
    if (covers_pairs(pairs, options_.seed, index) && !begins_with_few_formats({*kernels_[k], op, feedback}))
      c = draw_covering_case(pairs, *kernels_[k], op, options_.seed, index);
    if (!c) c = draw_case(*kernels_[k], op, feedback, options_.seed, index);
    if (const auto group = static_cast<uint64_t>(kernels_[k]->cases_per_shape); group > 1) {
      Case alike = *c;
      share_shape(alike, draw_case(*kernels_[k], op, {}, options_.seed, index - index % group), op);
      if (!refused(alike, *kernels_[k])) c = alike;
    }
    pairs.note_drawn(*c);
    return *std::move(c);
  }

  static bool far_due(uint64_t seed, uint64_t index) {
    return (index + seed % kCasesPerFarCase) % kCasesPerFarCase == kCasesPerFarCase - 1;
  }

  /// What earlier runs kept: drawing starts from it.
  void resume_corpus() {
    for (const CorpusEntry& entry : store_.database()->corpus())
      for (size_t k = 0; k < kernels_.size(); ++k) {
        if (entry.kernel != kernels_[k]->name) continue;
        try {
          records_[k].resume(entry);
        } catch (const BadInput& error) {
          throw BadInput(
              fmt::format("{}: corpus entry '{}' of {} cannot be read: {}; name another file by --db",
                          options_.db, entry.token, entry.kernel, error.what()));
        }
      }
  }

  /// The cases of earlier findings, all properties checked.
  void queue_known() {
    for (const Case& c : options_.first) queue_rerun(c, true);
    if (Database* db = store_.database(); db != nullptr && options_.known_first)
      for (const StoredFinding& stored : db->findings()) queue_rerun(db->case_of(stored), stored.shrunk);
    known_cases_ = static_cast<int64_t>(known_queue_.size());
  }

  void queue_rerun(const Case& c, bool shrunk) {
    if (!options_.shard.takes(reruns_++)) return;
    const auto named = [&](const Kernel* kernel) { return kernel->name == c.kernel; };
    const auto kernel = std::find_if(kernels_.begin(), kernels_.end(), named);
    const auto queued = [&](const Trial& trial) { return trial.case_ == c; };
    if (kernel == kernels_.end() || std::any_of(known_queue_.begin(), known_queue_.end(), queued)) return;
    Trial trial;
    trial.kernel = *kernel;
    trial.case_ = c;
    trial.rerun = true;
    trial.shrunk = shrunk;
    for (const Property& property : properties()) trial.properties.push_back(&property);
    known_queue_.push_back(std::move(trial));
  }

  void take(TrialReport report) {
    const int64_t index = report.trial.index;
    reports_.add(index, std::move(report));
    while (std::optional<TrialReport> next = reports_.next()) {
      absorb(*next);
      if (taken() % kBlock != 0) continue;
      known_after_[taken() / kBlock - 1] = knowledge();
      known_after_.erase(taken() / kBlock - 2 - kMostBlocksBehind);
      store_block();
    }
    report_progress();
  }

  /// In the order of the cases, one at a time.
  void absorb(TrialReport& report) {
    const size_t k = index_of(*report.trial.kernel);
    KernelRecord& record = records_[k];
    shares_.end(k, report.seconds);
    if (report.trial.case_.blocks.empty()) record.count_drawn(report.trial.case_);
    if (report.trial.rerun) note_rerun(report);
    if (!report.rejected.empty()) {
      ++record.rejected;
      ++record.refusals[report.rejected];
      if (record.accepted == 0 && record.rejected >= kMostRejections) throw BadInput(record.all_refused());
      return;
    }
    if (report.too_large) {
      ++record.too_large;
      listener_.left_out(report.trial.case_);
      return;
    }
    const Verification& v = report.verification;
    record.accepted += v.verdict != Verdict::domain;
    ++run_.cases;
    run_.passed += v.verdict == Verdict::pass;
    run_.undecided += v.verdict == Verdict::undecided;
    run_.domain += v.verdict == Verdict::domain;
    coverage_.add(v);
    for (const PropertyOutcome& outcome : report.outcomes) {
      PropertyRow& row = run_.properties[static_cast<size_t>(outcome.property - properties().data())];
      ++row.checked;
      row.failed += outcome.failure.has_value();
      KernelPropertyRow& own = record.property(row.name);
      ++own.checked;
      own.failed += outcome.failure.has_value();
    }
    for (CorpusEntry& entry : record.add(v)) new_corpus_.push_back(std::move(entry));
    if (v.verdict == Verdict::finding || v.verdict == Verdict::undecided) {
      ++record.faults;
      found(std::move(report), record);
    }
  }

  void note_rerun(const TrialReport& report) {
    const Verification& v = report.verification;
    const std::string now = v.cause.empty() ? std::string(name_of(v.verdict)) : v.cause;
    run_.reruns.push_back({report.trial.kernel->name, token_of(report.trial.case_),
                           report.too_large          ? "not enough memory"
                           : report.rejected.empty() ? now
                                                     : report.rejected});
  }

  std::vector<Knowledge> knowledge() const {
    std::vector<Knowledge> known;
    for (const KernelRecord& record : records_) known.push_back({record.feedback(), record.faults});
    return known;
  }

  size_t index_of(const Kernel& kernel) const {
    return static_cast<size_t>(std::find(kernels_.begin(), kernels_.end(), &kernel) - kernels_.begin());
  }

  /// One finding per kernel and cause. An untraced fault belongs to the first finding with its plain cause.
  void found(TrialReport&& report, KernelRecord& record) {
    const Verification& v = report.verification;
    for (Finding& finding : findings_) {
      const Verification& other = finding.report.verification;
      const bool same = other.cause == v.cause ||
                        (!report.trial.diagnose && finding.report.plain_cause == report.plain_cause);
      if (other.kernel != v.kernel || !same) continue;
      store_.write([row = finding.row](Database& db) { db.count_occurrence(*row); });
      return;
    }
    Finding finding{std::move(report), std::make_shared<int64_t>()};
    store_.write([run = row_, row = finding.row, v = finding.report.verification](Database& db) {
      *row = db.add_finding(run, v);
    });
    listener_.found(finding.report.verification);
    run_.findings.push_back(finding.report.verification);
    findings_.push_back(std::move(finding));
    const auto most = std::max(kLeastShrunkFindings, kShrunkFindings / static_cast<int64_t>(kernels_.size()));
    if (++record.shrunk <= most) to_shrink_.push_back(findings_.size() - 1);
  }

  double to_explain() const {
    return options_.cases == 0 ? std::min(kMostToExplain_s, (kBeyond + kLeftToExplain) * options_.time_s) : 0;
  }

  Merge shrink_finding(size_t number) {
    TrialReport original;
    engine_.exclusively([&] { original = findings_[number].report; });
    const double began = budget_.seconds();
    const Operator& op = find_operator(original.trial.kernel->operator_name);
    const Shrunk shrunk =
        shrink(original.verification, op, original.trial.shrunk ? 0 : options_.shrink_evaluations,
               [&](const Case& candidate) {
                 const double left = budget_.left(kBeyond) - to_explain();
                 if (budget_.interrupted() || left < 0) return std::optional<Verification>();
                 engine_.exclusively([&] { report_progress(); });
                 return trials_->with_same_cause(original, candidate, left);
               });
    return [this, number, began, original,
            smallest = trials_->fully_traced(original, shrunk.smallest,
                                             budget_.interrupted() ? 0 : budget_.left(kBeyond))] {
      store_.write(
          [row = findings_[number].row, smallest](Database& db) { db.replace_finding(*row, smallest); });
      run_.findings[number] = smallest;
      shares_.spend(index_of(*original.trial.kernel), budget_.seconds() - began);
      --shrinking_;
      listener_.shrunk(original.verification, smallest);
    };
  }

  /// At the end of a block, and of the run.
  void store_block() {
    run_.seconds = budget_.seconds();
    run_.coverage = coverage_.coverage();
    run_.reached.clear();
    run_.kernel_properties.clear();
    for (const KernelRecord& record : records_) {
      if (record.rejected > 0)
        run_.coverage.push_back({"rejected by the kernel's plan", record.kernel().name, record.rejected});
      if (record.too_large > 0)
        run_.coverage.push_back({"not enough memory", record.kernel().name, record.too_large});
      for (ReachedRow& row : record.reached()) run_.reached.push_back(std::move(row));
      for (const auto& [name, row] : record.properties()) run_.kernel_properties.push_back(row);
    }
    run_.tightness = coverage_.tightness();
    store_.write([row = row_, reached = std::exchange(new_corpus_, {})](Database& db) {
      db.add_corpus(row, reached);
    });
    store_.write([row = row_, run = run_](Database& db) { db.update_run(row, run); });
  }

  void report_progress() {
    FuzzProgress progress;
    progress.cases = run_.cases;
    progress.findings = static_cast<int64_t>(findings_.size());
    progress.shrinking = shrinking_ + static_cast<int64_t>(to_shrink_.size());
    progress.seconds = budget_.seconds();
    progress.fraction = budget_.fraction(taken(), wanted());
    listener_.progress(progress);
  }

  const std::vector<const Kernel*>& kernels_;
  const std::unique_ptr<TrialRunner> trials_;
  const FuzzOptions& options_;
  Listener& listener_;
  const Budget budget_;
  Engine engine_;
  RunStore store_;
  int64_t row_ = 0;  ///< of the run in the database

  std::deque<Trial> ready_, known_queue_;
  std::deque<size_t> to_shrink_;
  InOrder<TrialReport> reports_;
  FairShares shares_;   ///< of the kernels, where time is the budget
  int64_t reruns_ = 0;  ///< of all shards
  int64_t known_cases_ = 0, made_ = 0, shrinking_ = 0;

  std::vector<KernelRecord> records_;
  std::vector<Knowledge> known_at_start_;
  std::map<int64_t, std::vector<Knowledge>> known_after_;  ///< by block; the last few
  Coverage coverage_;
  std::vector<CorpusEntry> new_corpus_;
  std::vector<Finding> findings_;
  FuzzRun run_;
};

}  // namespace

std::string text_of(const FuzzProgress& p) {
  return fmt::format("{} case{}, {} finding{}{}, {:.0f} s", p.cases, p.cases == 1 ? "" : "s", p.findings,
                     p.findings == 1 ? "" : "s",
                     p.shrinking > 0 ? fmt::format(" ({} shrinking)", p.shrinking) : "", p.seconds);
}

void Listener::started(const std::vector<const Kernel*>&, const FuzzOptions&, const std::string&) {}
void Listener::progress(const FuzzProgress&) {}
void Listener::found(const Verification&) {}
void Listener::shrunk(const Verification&, const Verification&) {}
void Listener::left_out(const Case&) {}
void Listener::database_away(const std::string&) {}
void Listener::database_lost(const std::string&) {}

FuzzRun fuzz(const std::vector<const Kernel*>& kernels, Backend& backend, const FuzzOptions& options,
             Listener& listener) {
  if (kernels.empty()) throw BadInput("fuzz: no kernel given; see 'assay list kernels'");
  if (options.cases < 0 || !(options.time_s > 0))
    throw BadInput("fuzz: the budget must be positive; give --cases N or --time SECONDS");
  if (options.cases > 0 && options.cases < options.shard.of)
    throw BadInput(fmt::format("{} cases for {} shards: give at least one for each by --cases", options.cases,
                               options.shard.of));
  return Fuzzer(kernels, backend, options, listener).run();
}

}  // namespace assay
