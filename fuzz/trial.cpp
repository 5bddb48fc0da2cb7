#include "fuzz/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>

#include "fuzz/choice.h"
#include "fuzz/cost.h"
#include "kernels/compile_ptx.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/time_limit.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/explain.h"
#include "src/verification/verify/verify.h"

namespace assay {
namespace {

/// Above this many lane instructions a case checks properties in a quarter of their share only.
constexpr double kExpensive = 8e6;

/// Lane instructions that a case spends on the checking machine, on average: an eighth of what a case costs.
constexpr double kCheckedWork = 1e5;

/// Most lane instructions of a case whose formula is judged, of a recurrence that only decays: some twentieth
/// of a second. Of the first 500 cases of a run 64 to 66 % have no more; the 5 % that have up to 12 million
/// took a fifth of the time of all shadows.
constexpr uint64_t kFormulaInstructions = 10'500'000;
/// The same where nothing else decides.
constexpr uint64_t kFormulaWhereOpen = 70'000'000;

/// How much dearer shadows are beside a kernel's instructions: of what removes from its state, and of two
/// recurrences, bounds without signs are wide, and a second run lessens them.
uint64_t shadow_runs(const Kernel& kernel) {
  const Operator& op = find_operator(kernel.operator_name);
  return removes_from_state(op) || has_slots(op) ? 2 : 1;
}

/// Multiplications of samples of a case whose roundings are judged: some hundredths of a second.
constexpr double kRoundingWork = 4e6;

/// Spent on the meanings under which wrong values would be right, once per finding.
constexpr double kExplainSeconds = 10;
/// Meanings, further cases, lines and repairs may each take that long, or half of it.
constexpr double kExplainings = 4;
/// Begun in time, an explanation may still go on for so long after it; then it is given up.
constexpr double kBeyondTime = 5;
/// In less nothing is found out.
constexpr double kLeastExplainSeconds = 0.2;

/// Most lane instructions of a shrunk case that runs once more under the checks: seconds at most.
constexpr uint64_t kCheckedInstructions = 20'000'000;

/// How much a verification tells of a fault: that it is there, what the checks say, where a bad value was
/// born, or also what the checks say and which inputs would mend it (many runs more).
enum class Tracing { none, checks, origin, full };

Verification verify_once(const Case& c, const Kernel& kernel, Backend& backend, const FuzzOptions& options,
                         Tracing tracing, double explain_seconds = 0,
                         std::optional<KeptRun>* kept = nullptr) {
  VerifyOptions verify_options;
  verify_options.threads = 1;
  verify_options.twice = false;  // a property of its own
  verify_options.diagnose = tracing == Tracing::origin || tracing == Tracing::full;
  verify_options.peer = options.peer;
  verify_options.kept = kept;
  verify_options.origin = options.origin;
  verify_options.meaning_seconds = 0;
  verify_options.formula_instructions = kFormulaInstructions / shadow_runs(kernel);
  verify_options.formula_where_open = kFormulaWhereOpen;
  verify_options.rounding_work = kRoundingWork;
  if (tracing == Tracing::origin) verify_options.origin.nearest_inputs = 0;
  // A few blocks are cheap, and most of their values have no reference.
  if (!c.blocks.empty()) verify_options.checks = vm::Checks{};
  if (tracing == Tracing::full) verify_options.meaning_seconds = explain_seconds;
  if (tracing == Tracing::checks) {
    verify_options.checks = vm::Checks{};
    if (c.blocks.empty()) verify_options.check_instructions = kCheckedInstructions;
  }
  Verification v = verify(c, kernel, backend, verify_options);
  if (const auto own = options.replay_suffixes.find(kernel.name); own != options.replay_suffixes.end())
    v.replay += own->second;
  return v;
}

/// The verification with its trace; as it is where the machine cannot run what another backend ran, or has
/// not the memory.
Verification traced(const Verification& plain, const Kernel& kernel, Backend& backend,
                    const FuzzOptions& options, Tracing tracing, double explain_seconds = 0) {
  try {
    return verify_once(plain.case_, kernel, backend, options, tracing, explain_seconds);
  } catch (const BadInput&) {
    return plain;
  } catch (const std::bad_alloc&) {
    return plain;
  }
}

/// Why the kernel's plan does not take the case; empty if it does.
std::string plan_rejects(const Trial& trial) {
  const Kernel& kernel = *trial.kernel;
  const ResolvedCase c = resolve_unchecked(trial.case_, find_operator(kernel.operator_name));
  if (kernel.refuses)
    if (const std::string why = kernel.refuses(c); !why.empty()) return why;
  try {
    kernel.plan(c, draw_inputs(c));
    return {};
  } catch (const BadInput& reason) {
    return reason.what();
  }
}

const Property* first_failed(const std::vector<PropertyOutcome>& outcomes) {
  for (const PropertyOutcome& outcome : outcomes)
    if (outcome.failure) return outcome.property;
  return nullptr;
}

KnownRun known(const std::optional<KeptRun>& kept) {
  return kept ? KnownRun{&kept->inputs, &kept->outcome} : KnownRun{};
}

/// The trial, its properties included.
TrialReport judged(const Trial& trial, Backend& backend, const FuzzOptions& options) {
  TrialReport report;
  report.trial = trial;
  std::optional<KeptRun> kept;
  try {
    report.verification = verify_once(trial.case_, *trial.kernel, backend, options, Tracing::none, 0, &kept);
  } catch (const NotEnoughMemory&) {
    throw;
  } catch (const Refused& why) {
    report.rejected = why.what();
    return report;
  } catch (const BadInput&) {
    report.rejected = plan_rejects(trial);
    if (report.rejected.empty()) throw;
    return report;
  }
  const bool alone = report.verification.verdict == Verdict::finding;
  report.plain_cause = report.verification.cause;
  report.outcomes =
      check_properties(report.verification, *trial.kernel, backend, trial.properties, known(kept));
  kept.reset();
  if (alone && trial.diagnose)
    report.verification = traced(report.verification, *trial.kernel, backend, options, Tracing::origin);
  record_failures(report.verification, report.outcomes);
  if (!alone && (report.property = first_failed(report.outcomes)) != nullptr)
    report.plain_cause = report.verification.cause;
  return report;
}

}  // namespace

std::vector<const Property*> properties_due(const Case& c, uint64_t seed, int64_t index) {
  const double factor = estimated_cost(c) > kExpensive ? 0.25 : 1;
  std::vector<const Property*> due;
  for (const Property& property : properties()) {
    const bool by_cost = property.share == kByCost;
    const uint64_t number = by_cost ? 0 : static_cast<uint64_t>(&property - properties().data()) + 1;
    const uint64_t bits = mixed(mixed(seed ^ number << 56) + static_cast<uint64_t>(index));
    const double at = static_cast<double>(bits >> 11) * 0x1p-53;
    if (by_cost && at * estimated_cost(c) < kCheckedWork) due.push_back(&property);
    if (property.share >= 1 || at < property.share * factor) due.push_back(&property);
  }
  return due;
}

TrialReport run_trial(const Trial& trial, Backend& backend, const FuzzOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const double compiling = seconds_compiling_here();
  TrialReport report;
  try {
    report = judged(trial, backend, options);
  } catch (const NotEnoughMemory&) {
    report = {trial, "", true};
  } catch (const std::bad_alloc&) {
    report = {trial, "", true};
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() -
                   (seconds_compiling_here() - compiling);  // it says nothing of what the kernel's cases cost
  return report;
}

namespace {

Verification explained(const TrialReport& original, const Verification& smallest, Backend& backend,
                       const FuzzOptions& options, double explain_seconds) {
  if (original.property != nullptr) {
    Verification v = smallest;
    VerifyOptions explaining;
    explaining.threads = 1;
    explaining.meaning_seconds = explain_seconds;
    const Kernel& kernel = *original.trial.kernel;
    if (!v.checks) v.checks = verify_once(v.case_, kernel, backend, options, Tracing::checks).checks;
    explaining.origin = options.origin;
    std::vector<DerivedRun> derived;
    for (PropertyOutcome& outcome : check_properties(v, kernel, backend, {original.property}))
      derived = std::move(outcome.derived);
    explain_properties(kernel, backend, explaining, derived, v);
    const ResolvedCase c = resolve_unchecked(v.case_, find_operator(kernel.operator_name));
    v.entry = entry_of(program_of(kernel, c, draw_inputs(c)));
    return v;
  }
  Verification v = traced(smallest, *original.trial.kernel, backend, options, Tracing::full, explain_seconds);
  v.properties_failed = smallest.properties_failed;
  return v;
}

Verification unexplained(Verification v, const std::string& why) {
  v.unexplained = why + "; its replay explains it";
  return v;
}

}  // namespace

Verification fully_traced(const TrialReport& original, const Verification& smallest, Backend& backend,
                          const FuzzOptions& options, double seconds) {
  const double explain_seconds = std::min(kExplainSeconds, seconds / kExplainings);
  if (!original.trial.diagnose) return smallest;
  if (explain_seconds < kLeastExplainSeconds) return unexplained(smallest, "no time was left for it");
  try {
    const TimeLimit limit(seconds + kBeyondTime);
    return explained(original, smallest, backend, options, explain_seconds);
  } catch (const Abandoned&) {
    return unexplained(smallest, fmt::format("it was given up after {:.0f} s", seconds + kBeyondTime));
  }
}

std::optional<Verification> with_same_cause(const TrialReport& original, const Case& candidate,
                                            Backend& backend, const FuzzOptions& options, double seconds) {
  const Kernel& kernel = *original.trial.kernel;
  try {
    const TimeLimit limit(seconds);
    std::optional<KeptRun> kept;
    Verification v = verify_once(candidate, kernel, backend, options, Tracing::none, 0, &kept);
    if (original.property != nullptr) {
      if (v.verdict == Verdict::finding) return std::nullopt;
      record_failures(v, check_properties(v, kernel, backend, {original.property}, known(kept)));
    } else {
      if (v.cause != original.plain_cause) return std::nullopt;
      if (original.trial.diagnose) v = traced(v, kernel, backend, options, Tracing::origin);
    }
    if (v.verdict != original.verification.verdict || v.cause != original.verification.cause)
      return std::nullopt;
    return v;
  } catch (const BadInput&) {
    return std::nullopt;  // the smaller case is outside what the kernel accepts
  } catch (const Abandoned&) {
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

}  // namespace assay
