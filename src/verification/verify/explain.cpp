#include "src/verification/verify/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "src/base/vm/shadow_run.h"
#include "src/verification/diagnosis/diagnose.h"
#include "src/verification/diagnosis/meaning.h"
#include "src/verification/diagnosis/origin.h"
#include "src/verification/diagnosis/origin_groups.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/diagnosis/thresholds.h"
#include "src/verification/diagnosis/unexplained.h"
#include "src/verification/verify/companion.h"

namespace assay {
namespace {

constexpr std::string_view kNoPositiveExponent = "exponents-nonpositive";
constexpr std::string_view kSumOverflow = "sum-overflow";
using namespace thresholds;

/// The first element judged non-finite, in the operator's order of outputs.
std::optional<std::pair<std::string, int64_t>> nonfinite_element(const Verification& v) {
  for (const OutputComparison& output : v.outputs) {
    const auto at = std::find(output.verdicts.begin(), output.verdicts.end(), ElementVerdict::nonfinite);
    if (at != output.verdicts.end()) return std::pair{output.name, int64_t{at - output.verdicts.begin()}};
  }
  return std::nullopt;
}

/// Meanings under which the wrong values would be right.
Weighed weigh(const Operator& op, const Problem& problem, const TensorMap& got,
              const ReferenceResult& reference, const std::vector<OutputComparison>& judged, double seconds) {
  FailingRun failing;
  failing.op = &op, failing.problem = problem;
  failing.outputs = &got, failing.reference = &reference, failing.judged = &judged;
  for (const OutputComparison* o : failing.wrong()) {
    const bool gradient = std::none_of(op.outputs.begin(), op.outputs.end(),
                                       [&](const ArgumentSpec& a) { return a.name == o->name; });
    (gradient ? failing.backward : failing.forward) = true;
  }
  return weigh_meanings(failing, seconds);
}

/// Values that coincide for many reasons, as a shrunk case has them.
bool is_degenerate(const Case& c) {
  return c.values == "ones" || c.values == "sparse" || (c.T <= 2 && c.H == 1 && c.K == 1 && c.V == 1);
}

/// Does one meaning stand out, and not by chance?
bool is_decided(const Weighed& w, const Case& c) {
  if (w.fitting.empty() || w.fitting.front().score < kSure || w.bits < kSurelyNoChance || is_degenerate(c))
    return false;
  return w.fitting.size() == 1 || w.fitting[1].score < w.fitting[0].score - kApart;
}

/// What a further case says, with what this one says: a meaning has to fit both.
void merge(const Weighed& further, const std::string& token, bool own_is_silent, Weighed& own) {
  for (Diagnosis& d : own.fitting) {
    const auto same = std::find_if(further.fitting.begin(), further.fitting.end(),
                                   [&](const Diagnosis& f) { return f.cause == d.cause; });
    const double there = same == further.fitting.end() ? 0 : same->score;
    if (there == 0) d.against.push_back(fmt::format("it does not fit {}", token));
    if (there > 0) d.evidence.push_back(fmt::format("on {}: {}", token, same->evidence.front()));
    d.score = (1 - kFurther) * d.score + kFurther * there;
  }
  for (const Diagnosis& f : further.fitting) {
    const bool known = std::any_of(own.fitting.begin(), own.fitting.end(),
                                   [&](const Diagnosis& d) { return d.cause == f.cause; });
    if (known) continue;
    Diagnosis d = f;
    d.score *= own_is_silent ? kFurtherAlone : kFurther;
    for (std::string& line : d.evidence) line = fmt::format("on {}: {}", token, line);
    own.fitting.push_back(std::move(d));
  }
  own.tried += further.tried, own.left += further.left;
  rank(own.fitting);
}

bool failed(const Verification& v, std::string_view property) {
  return std::any_of(v.properties_failed.begin(), v.properties_failed.end(),
                     [&](const std::string& failure) { return failure.starts_with(property); });
}

/// Did an exponential see an argument above 0 in a kernel whose own are never above it?
bool grew(const Kernel& kernel, const Verification& v) {
  if (failed(v, kNoPositiveExponent)) return true;
  return kernel.exponents_meant_nonpositive && std::any_of(v.exponents.begin(), v.exponents.end(),
                                                           [](const ExponentRange& r) { return r.max > 0; });
}

/// Has what is computed so exponentials with arguments above 0?
bool explains_growth(const std::string& cause) {
  return std::any_of(meanings().begin(), meanings().end(),
                     [&](const Meaning& m) { return m.name == cause && m.grows; });
}

/// Named causes of a positive exponent in a run that stays finite.
std::vector<Diagnosis> causes_of_growth(const JudgedRun& run, const VerifyOptions& options,
                                        const Verification& v) {
  const auto overflow = find_overflow(v.case_, run.kernel, run.op, run.backend, options.origin);
  if (!overflow) return {};
  const OriginTrace& trace = overflow->trace;
  Evidence evidence;
  evidence.case_ = &overflow->case_, evidence.inputs = &overflow->inputs, evidence.op = &run.op,
  evidence.trace = &trace;
  evidence.finite_when_padded = finite_when_padded(overflow->case_, run.kernel, overflow->inputs, run.backend,
                                                   trace.output, trace.flat);
  evidence.spans_rows = exponents_span_rows(overflow->case_, run.kernel, run.backend);
  std::vector<Diagnosis> causes = diagnose(evidence);
  for (Diagnosis& d : causes)
    for (std::string& line : d.evidence) line = fmt::format("on {}: {}", token_of(overflow->case_), line);
  return causes;
}

/// Adds the named causes of a positive exponent, before what fits and leaves it unexplained.
void add_growth(const JudgedRun& run, const VerifyOptions& options, Weighed& weighed, Verification& v) {
  std::vector<Diagnosis> growth = causes_of_growth(run, options, v);
  for (Diagnosis& d : v.diagnosis)  // the product that overflowed has a factor that should not be above 1
    if (!growth.empty() && d.cause == kSumOverflow) d.score *= kOfTheProduct;
  std::move(growth.begin(), growth.end(), std::back_inserter(v.diagnosis));
  for (Diagnosis& d : weighed.fitting) {
    if (explains_growth(d.cause)) continue;
    d.score *= kOfTheRest;
    d.against.push_back("it has no exponential with an argument above 0, and the run has");
  }
}

/// What the checks say of a finding where nobody has asked them and the run is small.
std::optional<CheckReport> checks_unasked(const JudgedRun& run, const VerifyOptions& options,
                                          const Verification& v) {
  if (v.checks || v.trap || options.meaning_seconds <= 0 || v.lane_instructions > kCheckInstructions)
    return std::nullopt;
  return vm::run_checked(run.plan, run.inputs, options.origin.machine, vm::Checks{});
}

/// The causes of a trap on a further case.
std::vector<Diagnosis> causes_of(const TrappedCase& trapped, const Operator& op) {
  Evidence evidence;
  evidence.case_ = &trapped.case_, evidence.op = &op, evidence.trap = &trapped.trap;
  std::vector<Diagnosis> causes = diagnose(evidence);
  for (Diagnosis& d : causes)
    for (std::string& line : d.evidence) line = fmt::format("on {}: {}", token_of(trapped.case_), line);
  return causes;
}

/// Adds what further cases say: meanings that fit there too, and traps.
void add_further(const FurtherCases& further, const Operator& op, const VerifyOptions& options,
                 bool own_is_silent, Weighed& own) {
  if (const Companion* c = further.companion.get())
    merge(weigh(op, c->problem, c->outcome.outputs, c->reference, c->outputs, options.meaning_seconds / 2),
          token_of(c->case_), own_is_silent, own);
  if (!further.trapped) return;
  for (Diagnosis& d : causes_of(*further.trapped, op)) own.fitting.push_back(std::move(d));
  rank(own.fitting);
}

bool is_open(const Weighed& w) {
  return w.fitting.empty() || w.fitting.front().score < kNamed;
}

/// What no meaning explains may be plainer elsewhere: gradients in the outputs, where the fault is one of
/// both directions; an error that a short format hides in fp32.
void add_plainer(const Case& c, const Kernel& kernel, const Operator& op, Backend& backend,
                 const VerifyOptions& options, Weighed& own) {
  Case forward = c, precise = c;
  forward.direction = Direction::forward, forward.final_state_gradient = false;
  precise.dtype = Dtype::fp32;
  for (const Case& plainer : {forward, precise}) {
    if (!is_open(own) || token_of(plainer) == token_of(c)) continue;
    const FurtherCases further =
        find_further_cases(plainer, kernel, op, backend, options.threads, options.meaning_seconds / 4);
    add_further(further, op, options, true, own);
  }
}

/// Meanings that fit this run; where it is too small to tell them apart, or nothing in it is finite, what
/// further cases of the same kernel say as well.
Weighed weigh(const JudgedRun& run, const VerifyOptions& options, const Verification& v, bool overflow) {
  Weighed own;
  if (options.meaning_seconds <= 0 || run.outcome.trap || run.reference.outputs.empty()) return own;
  own =
      weigh(run.op, run.problem, run.outcome.outputs, run.reference, v.outputs, options.meaning_seconds / 2);
  const bool violated = own.tried > 0;
  if ((!violated && !overflow) || is_decided(own, v.case_) || options.inputs || !v.case_.blocks.empty())
    return own;
  const FurtherCases further = find_further_cases(v.case_, run.kernel, run.op, run.backend, options.threads,
                                                  options.meaning_seconds / 4);
  add_further(further, run.op, options, !violated, own);
  if (violated) add_plainer(v.case_, run.kernel, run.op, run.backend, options, own);
  return own;
}

}  // namespace

std::optional<std::pair<std::string, int64_t>> violating_element(const Verification& v) {
  const OutputComparison* worst = nullptr;
  for (const OutputComparison& o : v.outputs)
    if (o.violation > 0 && o.worst.flat >= 0 && (!worst || o.worst.ratio > worst->worst.ratio)) worst = &o;
  if (!worst) return std::nullopt;
  return std::pair{worst->name, worst->worst.flat};
}

void explain(const JudgedRun& run, const VerifyOptions& options, Verification& v) {
  auto element = options.element ? options.element : nonfinite_element(v);
  if (element && (options.all_origins || (options.first && !options.element))) {
    AllOrigins all = find_all_origins(run.plan, run.inputs, options.origin, options.all_origins);
    v.origins = std::move(all.groups);
    if (options.first && all.first) element = all.first;
  }
  std::optional<OriginTrace> trace;
  if (element) trace = find_origin(run.plan, run.inputs, element->first, element->second, options.origin);
  if (trace) v.origin = trace->origin;
  Evidence evidence{&v.case_, &run.inputs, trace ? &*trace : nullptr, &v.outputs, &v.exponents, &run.op};
  evidence.shadow = v.shadow ? &*v.shadow : nullptr;
  evidence.trap = v.trap ? &*v.trap : nullptr;
  evidence.checks = v.checks ? &*v.checks : nullptr;
  evidence.properties = &v.properties_failed;
  const bool overflow = trace && trace->origin.kind == OriginKind::exp_overflow;
  const bool has_program = !run.plan.modules.empty();  // a test's engine may have none
  if (overflow && options.meaning_seconds > 0)
    evidence.finite_when_padded =
        finite_when_padded(v.case_, run.kernel, run.inputs, run.backend, element->first, element->second);
  if (overflow && options.meaning_seconds > 0)
    evidence.spans_rows = exponents_span_rows(v.case_, run.kernel, run.backend);
  const std::optional<CheckReport> unasked = has_program ? checks_unasked(run, options, v) : std::nullopt;
  if (unasked) evidence.checks = &*unasked;
  v.diagnosis = diagnose(evidence);
  Weighed weighed = weigh(run, options, v, overflow);
  std::optional<ShadowReport> shadow;
  const bool named = !weighed.fitting.empty() && weighed.fitting.front().score >= kNamed;
  if (weighed.tried > 0 && !named && !v.shadow && has_program && v.lane_instructions <= kShadowInstructions) {
    shadow = vm::run_shadow(run.plan, run.inputs, options.origin.machine,
                            {.element = violating_element(v), .locate = location_of});
    evidence.shadow = &*shadow;
    v.diagnosis = diagnose(evidence);
  }
  if (!overflow && !v.trap && grew(run.kernel, v)) add_growth(run, options, weighed, v);
  std::copy(weighed.fitting.begin(), weighed.fitting.end(), std::back_inserter(v.diagnosis));
  rank(v.diagnosis);
  add_unexplained(v.outputs, weighed, v.diagnosis);
}

void explain_properties(const Kernel& kernel, Backend& backend, const VerifyOptions& options,
                        Verification& v) {
  const Operator& op = find_operator(kernel.operator_name);
  Evidence evidence;
  evidence.case_ = &v.case_, evidence.op = &op, evidence.properties = &v.properties_failed;
  evidence.checks = v.checks ? &*v.checks : nullptr;
  v.diagnosis = diagnose(evidence);
  if (options.meaning_seconds <= 0 || !v.case_.blocks.empty()) return;
  Weighed none;
  add_further(find_further_cases(v.case_, kernel, op, backend, options.threads, options.meaning_seconds / 2),
              op, options, true, none);
  add_plainer(v.case_, kernel, op, backend, options, none);
  std::move(none.fitting.begin(), none.fitting.end(), std::back_inserter(v.diagnosis));
  rank(v.diagnosis);
}

void explain_some_blocks(const Operator& op, Verification& v) {
  Evidence evidence;
  evidence.case_ = &v.case_, evidence.op = &op, evidence.properties = &v.properties_failed;
  evidence.trap = v.trap ? &*v.trap : nullptr;
  evidence.checks = v.checks ? &*v.checks : nullptr;
  v.diagnosis = diagnose(evidence);
}

}  // namespace assay
