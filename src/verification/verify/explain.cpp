#include "src/verification/verify/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "src/base/numerics/bad_input.h"
#include "src/base/vm/shadow_run.h"
#include "src/verification/diagnosis/diagnose.h"
#include "src/verification/diagnosis/meaning.h"
#include "src/verification/diagnosis/origin.h"
#include "src/verification/diagnosis/origin_groups.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/diagnosis/thresholds.h"
#include "src/verification/diagnosis/unexplained.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/checked_lines.h"
#include "src/verification/verify/companion.h"
#include "src/verification/verify/fault_location.h"
#include "src/verification/verify/further_meanings.h"

namespace assay {
namespace {

constexpr std::string_view kNoPositiveExponent = "exponents-nonpositive";
constexpr std::string_view kSumOverflow = "sum-overflow", kRounding = "rounding-beyond-declared",
                           kOtherFormula = "formula-differs";
using namespace thresholds;

/// The first element judged non-finite, in the operator's order of outputs.
std::optional<std::pair<std::string, int64_t>> nonfinite_element(const Verification& v) {
  for (const OutputComparison& output : v.outputs) {
    const auto at = std::find(output.verdicts.begin(), output.verdicts.end(), ElementVerdict::nonfinite);
    if (at != output.verdicts.end()) return std::pair{output.name, int64_t{at - output.verdicts.begin()}};
  }
  return std::nullopt;
}

/// Where an element lies whose axes are in another order there; -1 where they are not the same ones.
int64_t in_order_of(const std::vector<Axis>& from, int64_t flat, const std::vector<Axis>& to) {
  Tensor shape;
  shape.axes = from;
  const std::vector<int64_t> index = shape.index(flat);
  int64_t at = 0;
  for (const Axis& axis : to) {
    const auto same = [&](const Axis& other) { return other.name == axis.name && other.size == axis.size; };
    const auto found = std::find_if(from.begin(), from.end(), same);
    if (found == from.end() || from.size() != to.size()) return -1;
    at = at * axis.size + index[static_cast<size_t>(found - from.begin())];
  }
  return at;
}

/// The inputs that a trace of what was launched has come to, as the case has them.
void put_in_order(const JudgedRun& run, OriginTrace& trace) {
  std::vector<std::pair<std::string, int64_t>> kept;
  for (const auto& [name, flat] : trace.input_elements) {
    const auto own = run.inputs.find(name), there = run.launched->inputs.find(name);
    if (own == run.inputs.end() || there == run.launched->inputs.end()) continue;
    const int64_t at = in_order_of(there->second.axes, flat, own->second.axes);
    if (at >= 0) kept.emplace_back(name, at);
  }
  trace.input_elements = std::move(kept);
}

/// The element in what was launched: itself where a launch wrote it, else the first value that is not finite
/// of the tensor that stands in for it.
std::optional<std::pair<std::string, int64_t>> traced_element(const LaunchedRun& launched,
                                                              const std::pair<std::string, int64_t>& element,
                                                              const TensorMap& own_outputs,
                                                              const vm::MachineOptions& machine) {
  const std::vector<ProgramOutput>& outputs = launched.program.outputs;
  for (const ProgramOutput& output : outputs) {
    const auto own = own_outputs.find(element.first);
    if (output.name != element.first || own == own_outputs.end()) continue;
    const int64_t at = in_order_of(own->second.axes, element.second, output.axes);
    if (at >= 0) return std::pair{element.first, at};
  }
  if (outputs.empty()) return std::nullopt;
  for (const auto& [name, tensor] : vm::run(launched.program, launched.inputs, machine).outputs)
    for (int64_t i = 0; i < tensor.size(); ++i)
      if (!std::isfinite(tensor.value(i))) return std::pair{name, i};
  return std::nullopt;
}

/// Meanings under which the wrong values would be right, on real numbers where the exact run says that the
/// formula is wrong.
Weighed weigh(const FailingRun& failing, const vm::ExactRun* exact, double seconds) {
  if (!exact) return weigh_meanings(failing, seconds);
  const RealRun real(failing, *exact);
  return weigh_meanings(real.wrong_by() == WrongBy::formula ? real.run() : failing, seconds, real.wrong_by());
}

/// Values that coincide for many reasons, as a shrunk case has them.
bool is_degenerate(const Case& c) {
  return c.values == "ones" || c.values == "sparse" || (c.T <= 2 && c.H == 1 && c.K == 1 && c.V == 1);
}

/// Does one meaning stand out, and not by chance?
bool is_decided(const Weighed& w, const Case& c) {
  if (w.fitting.empty() || w.fitting.front().score < kSure || w.bits < kSurelyNoChance || is_degenerate(c))
    return false;
  if (w.by_numbers.contains(w.fitting.front().cause)) return false;  // until another run gives them again
  return w.fitting.size() == 1 || w.fitting[1].score < w.fitting[0].score - kApart;
}

/// A fit that is no surprise does not stand before what is known of the formula.
void put_behind_formula(const std::vector<Diagnosis>& known, Weighed& weighed) {
  const auto formula =
      std::find_if(known.begin(), known.end(), [](const Diagnosis& d) { return d.cause == kOtherFormula; });
  if (formula == known.end()) return;
  for (Diagnosis& d : weighed.fitting)
    if (weighed.by_nothing.count(d.cause)) d.score = std::min(d.score, kApartFromFormula * formula->score);
}

/// A rounding of this or that which few values show may be one of something else.
void put_behind_rounding(Weighed& weighed) {
  for (Diagnosis& d : weighed.fitting)
    if (weighed.by_little.count(d.cause)) d.score = std::min(d.score, kRoundingByLittle);
  rank(weighed.fitting);
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
  for (Diagnosis& d : v.diagnosis)  // what overflowed or cancelled has a factor that should not be above 1
    if (!growth.empty() && (d.cause == kSumOverflow || d.cause == kRounding)) d.score *= kOfTheProduct;
  std::move(growth.begin(), growth.end(), std::back_inserter(v.diagnosis));
  for (Diagnosis& d : weighed.fitting) {
    if (explains_growth(d.cause)) continue;
    d.score *= kOfTheRest;
    d.against.push_back("it has no exponential with an argument above 0, and the run has");
  }
}

/// What the checks see in the runs that a property derived.
void add_derived_checks(const Kernel& kernel, const Operator& op, const VerifyOptions& options,
                        const std::vector<DerivedRun>& derived, Verification& v) {
  for (const DerivedRun& run : derived) try {
      if (v.lane_instructions > kCheckInstructions) return;
      const Program program = program_of(kernel, accepted(run.case_, kernel), run.inputs);
      if (!has_code(program) || !domain_faults(run.inputs, kernel, op).empty()) continue;
      const CheckReport report = vm::run_checked(program, run.inputs, options.origin.machine, vm::Checks{});
      Evidence evidence;
      evidence.case_ = &run.case_, evidence.op = &op, evidence.checks = &report;
      for (Diagnosis& d : diagnose(evidence)) {
        for (std::string& line : d.evidence)
          line = fmt::format("on the run that it derived, {}: {}", token_of(run.case_), line);
        v.diagnosis.push_back(std::move(d));
      }
    } catch (const BadInput&) {
      continue;  // outside what the kernel takes
    }
  rank(v.diagnosis);
}

/// What the checks say of a finding where nobody has asked them and the run is small.
std::optional<CheckReport> checks_unasked(const JudgedRun& run, const VerifyOptions& options,
                                          const Verification& v) {
  if (v.checks || v.trap || options.meaning_seconds <= 0 || v.lane_instructions > kCheckInstructions ||
      !has_code(run.traced()))
    return std::nullopt;
  return vm::run_checked(run.traced(), run.traced_inputs(), options.origin.machine, vm::Checks{});
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

/// Weighs the meanings on further cases of one finding: as many as it takes to decide, at most so many.
class Further {
 public:
  Further(const Kernel& kernel, const Operator& op, Backend& backend, const VerifyOptions& options,
          bool formula)
      : op_(op),
        seconds_(options.meaning_seconds / 2),
        cases_(kernel, op, backend,
               {options.threads, options.origin.machine, options.meaning_seconds / 2, formula},
               [this](const Companion& c) { return is_enough(c); }) {}

  FurtherCases& cases() { return cases_; }
  size_t count() const { return said_.size(); }  ///< of cases that said something
  /// The cause of a case that is wrong by itself, whatever fits: where it is.
  std::vector<Diagnosis> wrong_themselves() const {
    std::vector<Diagnosis> causes;
    for (size_t i = 0; i < said_.size(); ++i) {
      if (said_[i].second.by == WrongBy::unknown) continue;
      const bool formula = said_[i].second.by == WrongBy::formula;
      Diagnosis d;
      d.cause = formula ? kOtherFormula : kRounding, d.score = kWrongItself;
      d.explanation = fmt::format("what the property ran is wrong by itself: the {} there",
                                  formula ? "formula differs, not the rounding,"
                                          : "formula is right, and more is rounded than is declared,");
      for (const std::string& line : places_[i])
        d.evidence.push_back(fmt::format("on {}: {}", said_[i].first, line));
      causes.push_back(std::move(d));
    }
    return causes;
  }
  /// Adds what they said, traps among it.
  void add_to(Weighed& own, bool own_is_silent) const {
    merge_further(said_, own_is_silent, own);
    if (!cases_.trapped()) return;
    for (Diagnosis& d : causes_of(*cases_.trapped(), op_)) own.fitting.push_back(std::move(d));
    rank(own.fitting);
  }

 private:
  static constexpr size_t kMost = 3;

  bool is_enough(const Companion& c) {
    const double share = seconds_ / static_cast<double>(kMost);
    said_.emplace_back(c.text, weigh(c.failing(op_), c.exact ? &*c.exact : nullptr, share));
    places_.push_back(wrong_places(c.outputs));
    return said_.size() == kMost || is_decided(said_.back().second, c.case_);
  }

  const Operator& op_;
  const double seconds_;
  OnFurther said_;
  std::vector<std::vector<std::string>> places_;  ///< of each
  FurtherCases cases_;
};

bool is_open(const Weighed& w) {
  return w.fitting.empty() || w.fitting.front().score < kNamed;
}

/// What no meaning explains may be plainer where gradients are left out: a fault of both directions.
void add_forward(const Case& c, const Kernel& kernel, const Operator& op, Backend& backend,
                 const VerifyOptions& options, Weighed& own) {
  if (!runs_backward(c)) return;
  Case forward = c;
  forward.direction = Direction::forward, forward.final_state_gradient = false;
  Further further(kernel, op, backend, options, false);
  further.cases().run_companions(forward);
  further.add_to(own, true);
}

/// The run on real numbers where the formula was not judged for its cost.
std::optional<vm::ExactRun> exact_unasked(const JudgedRun& run, const VerifyOptions& options,
                                          const Verification& v) {
  if (run.exact || !has_code(run.plan) || v.lane_instructions == 0 ||
      v.lane_instructions > kExactInstructions)
    return std::nullopt;
  return vm::run_exact(run.plan, run.inputs, options.origin.machine);
}

/// Meanings that fit this run; where it is too small to tell them apart, or nothing in it is finite, what
/// further cases of the same kernel say as well.
Weighed weigh(const JudgedRun& run, const VerifyOptions& options, const Verification& v, bool overflow) {
  Weighed own;
  if (options.meaning_seconds <= 0 || run.outcome.trap || run.reference.outputs.empty()) return own;
  const FailingRun failing = failing_run(run.op, run.problem, run.outcome.outputs, run.reference, v.outputs);
  const bool violated = !failing.wrong().empty(), formula = v.formula && v.formula->violated();
  if (violated || formula) {
    const std::optional<vm::ExactRun> unasked = exact_unasked(run, options, v);
    own = weigh(failing, unasked ? &*unasked : run.exact, options.meaning_seconds / 2);
  }
  const bool wrong = own.tried > 0;
  if ((!wrong && !overflow) || is_decided(own, v.case_) || options.inputs || !v.case_.blocks.empty())
    return own;
  Further further(run.kernel, run.op, run.backend, options, !violated && formula);
  further.cases().run_companions(v.case_);
  further.add_to(own, !wrong);
  if (wrong && is_open(own)) add_forward(v.case_, run.kernel, run.op, run.backend, options, own);
  return own;
}

/// Of a read of what nothing wrote, beside where the origin is.
std::vector<SuspectLine> lines_beside_origin(const JudgedRun& run, const UnwrittenMemory& unwritten,
                                             const VerifyOptions& options, const Origin& origin) {
  std::vector<SuspectLine> lines =
      lines_behind_unwritten(run.traced(), run.traced_inputs(), options.origin.machine, unwritten,
                             SourceText(run.traced().name), options.meaning_seconds / 4);
  std::erase_if(lines, [&](const SuspectLine& line) {
    return line.at.where.file == origin.where.file && line.at.where.line == origin.where.line;
  });
  if (lines.size() >= kLinesSaid) lines.resize(kLinesSaid - 1);
  return lines;
}

}  // namespace

std::optional<std::pair<std::string, int64_t>> violating_element(const Verification& v) {
  const OutputComparison* worst = nullptr;
  for (const OutputComparison& o : v.outputs)
    if (o.violation > 0 && o.worst.flat >= 0 && (!worst || o.worst.ratio > worst->worst.ratio)) worst = &o;
  if (!worst) return std::nullopt;
  return std::pair{worst->name, worst->worst.flat};
}

std::string explain(const JudgedRun& run, const VerifyOptions& options, Verification& v) {
  const bool has_program = has_code(run.traced());  // a test's engine may have none
  auto element = options.element ? options.element : nonfinite_element(v);
  auto own_element = element;  // as the case has it
  if (element && run.launched)
    element = traced_element(*run.launched, *element, run.outcome.outputs, options.origin.machine);
  if (!has_program) element.reset();
  if (element && (options.all_origins || (options.first && !options.element))) {
    AllOrigins all = find_all_origins(run.traced(), run.traced_inputs(), options.origin, options.all_origins);
    v.origins = std::move(all.groups);
    if (options.first && all.first) element = all.first;
    if (!run.launched) own_element = element;
  }
  std::optional<OriginTrace> trace;
  if (element)
    trace = find_origin(run.traced(), run.traced_inputs(), element->first, element->second, options.origin);
  if (trace && run.launched) put_in_order(run, *trace);
  if (trace) v.origin = trace->origin;
  if (trace && trace->unwritten && options.meaning_seconds > 0)
    v.lines = lines_beside_origin(run, *trace->unwritten, options, trace->origin);
  Evidence evidence{&v.case_, &run.inputs, trace ? &*trace : nullptr, &v.outputs, &v.exponents, &run.op};
  evidence.shadow = v.shadow ? &*v.shadow : nullptr;
  evidence.formula = v.formula ? &*v.formula : nullptr;
  evidence.trap = v.trap ? &*v.trap : nullptr;
  evidence.checks = v.checks ? &*v.checks : nullptr;
  evidence.properties = &v.properties_failed;
  const bool overflow = trace && trace->origin.kind == OriginKind::exp_overflow;
  const bool left_range = overflow || (trace && (trace->origin.kind == OriginKind::accumulation_overflow ||
                                                 trace->origin.kind == OriginKind::conversion_overflow));
  if (overflow && options.meaning_seconds > 0)
    evidence.finite_when_padded = finite_when_padded(v.case_, run.kernel, run.inputs, run.backend,
                                                     own_element->first, own_element->second);
  if (overflow && options.meaning_seconds > 0)
    evidence.spans_rows = exponents_span_rows(v.case_, run.kernel, run.backend);
  const std::optional<CheckReport> unasked = has_program ? checks_unasked(run, options, v) : std::nullopt;
  if (unasked) evidence.checks = &*unasked;
  if (unasked && !unasked->findings.empty()) v.checks = *unasked;
  v.diagnosis = diagnose(evidence);
  Weighed weighed = weigh(run, options, v, left_range);
  put_behind_rounding(weighed);
  std::optional<ShadowReport> shadow;
  const bool named = !weighed.fitting.empty() && weighed.fitting.front().score >= kNamed;
  if (weighed.tried > 0 && !named && !v.shadow && has_program && v.lane_instructions <= kShadowInstructions) {
    shadow = vm::run_shadow(run.traced(), run.traced_inputs(), options.origin.machine,
                            {.element = violating_element(v), .locate = location_of});
    evidence.shadow = &*shadow;
    v.diagnosis = diagnose(evidence);
  }
  if (!overflow && !v.trap && grew(run.kernel, v)) add_growth(run, options, weighed, v);
  put_behind_formula(v.diagnosis, weighed);
  std::copy(weighed.fitting.begin(), weighed.fitting.end(), std::back_inserter(v.diagnosis));
  rank(v.diagnosis);
  add_unexplained(v.outputs, weighed, v.diagnosis);
  const auto about =
      v.diagnosis.empty() ? weighed.about.end() : weighed.about.find(v.diagnosis.front().cause);
  return about == weighed.about.end() ? "" : about->second;
}

void explain_properties(const Kernel& kernel, Backend& backend, const VerifyOptions& options,
                        const std::vector<DerivedRun>& derived, Verification& v) {
  const Operator& op = find_operator(kernel.operator_name);
  Evidence evidence;
  evidence.case_ = &v.case_, evidence.op = &op, evidence.properties = &v.properties_failed;
  evidence.checks = v.checks ? &*v.checks : nullptr;
  v.diagnosis = diagnose(evidence);
  if (options.meaning_seconds <= 0 || !v.case_.blocks.empty()) return;
  add_derived_checks(kernel, op, options, derived, v);
  Weighed none;
  Further further(kernel, op, backend, options, true);
  further.cases().run(derived);
  for (Diagnosis& d : further.wrong_themselves()) v.diagnosis.push_back(std::move(d));
  const size_t of_derived = further.count();
  further.cases().run_companions(v.case_);
  further.add_to(none, true);
  const bool by_derived_alone = further.count() == of_derived;
  if (is_open(none) || by_derived_alone) add_forward(v.case_, kernel, op, backend, options, none);
  std::move(none.fitting.begin(), none.fitting.end(), std::back_inserter(v.diagnosis));
  rank(v.diagnosis);
  locate_failed_property(kernel, options, derived, v);
}

void explain_some_blocks(const Operator& op, Verification& v) {
  Evidence evidence;
  evidence.case_ = &v.case_, evidence.op = &op, evidence.properties = &v.properties_failed;
  evidence.trap = v.trap ? &*v.trap : nullptr;
  evidence.checks = v.checks ? &*v.checks : nullptr;
  v.diagnosis = diagnose(evidence);
}

}  // namespace assay
