#include "src/verification/verify/fault_location.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "kernels/compile_ptx.h"
#include "src/base/numerics/bad_input.h"
#include "src/verification/diagnosis/diagnose.h"
#include "src/verification/diagnosis/fingerprint.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/diagnosis/thresholds.h"
#include "src/verification/verify/absent_argument.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/checked_lines.h"
#include "src/verification/verify/companion.h"
#include "src/verification/verify/explain.h"
#include "src/verification/verify/located_lines.h"
#include "src/verification/verify/misplaced_outputs.h"
#include "src/verification/verify/rounding_lines.h"
#include "src/verification/verify/telling_case.h"

namespace assay {
namespace {

/// Counted seconds (counted_work.h), at most.
constexpr double kOfFingerprint = 2;
/// Of an overflow that a wrong formula leads to: below what is said of that.
constexpr double kBehindFormula = thresholds::kFormulaOnly - 0.01;
constexpr std::string_view kFormulaDiffers = "formula-differs", kStoredElsewhere = "output-stored-elsewhere",
                           kExchanged = "operands-exchanged";

/// Evidence of what is named, and the cause before what is not.
void add_sentences(const Fingerprint& found, const std::string& where, Verification& v) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("on {}, {} of {} input elements moved in turn, in exact arithmetic:", where,
                              found.moved, found.elements));
  lines.insert(lines.end(), found.sentences.begin(), found.sentences.end());
  Diagnosis formula;
  const auto known = std::find_if(v.diagnosis.begin(), v.diagnosis.end(),
                                  [](const Diagnosis& d) { return d.cause == kFormulaDiffers; });
  if (known != v.diagnosis.end()) {
    formula = std::move(*known);
    v.diagnosis.erase(known);
  }
  formula.cause = kFormulaDiffers;
  formula.score = std::max(formula.score, found.plain ? thresholds::kFingerprint : thresholds::kFormulaOnly);
  formula.explanation = found.sentences.front();
  formula.evidence.insert(formula.evidence.end(), lines.begin(), lines.end());
  std::erase_if(v.diagnosis, [](const Diagnosis& d) { return d.cause == kUnexplained; });
  v.diagnosis.push_back(std::move(formula));
  rank(v.diagnosis);
  if (v.diagnosis.front().cause != kFormulaDiffers)
    v.diagnosis.front().evidence.insert(v.diagnosis.front().evidence.end(), lines.begin(), lines.end());
}

bool is_gate(const std::string& input, const TellingCase& told) {
  const std::vector<ArgumentSpec>& inputs = told.resolved.op->inputs;
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const ArgumentSpec& a) { return a.name == input && a.role == Role::log_decay; });
}

/// "gate-of-another-head", as the meaning of that name.
std::string cause_of(const Misread& misread, const TellingCase& told) {
  const std::string& axis = misread.axis;
  const char* const place = axis.starts_with('H')        ? "head"
                            : axis == "B" || axis == "N" ? "sequence"
                            : axis == "T"                ? "token"
                                                         : "channel";
  return fmt::format("{}-of-another-{}", is_gate(misread.input, told) ? "gate" : "operand", place);
}

/// Derivatives have told which input is read where it should not be; null: none is, or what is known better
/// says otherwise.
const Misread* add_misread(const Fingerprint& found, const TellingCase& told, Verification& v) {
  if (found.misread.empty()) return nullptr;
  const Misread& first = found.misread.front();
  Diagnosis d;
  d.cause = cause_of(first, told);
  if (!v.diagnosis.empty() && v.diagnosis.front().score >= thresholds::kMisread)
    return v.diagnosis.front().cause == d.cause ? &first : nullptr;
  std::erase_if(v.diagnosis, [&](const Diagnosis& known) { return known.cause == d.cause; });
  d.score = thresholds::kMisread;
  d.explanation = fmt::format("{} is read along {} where another element should be: check its offset there",
                              first.input, first.axis);
  d.evidence = found.sentences;
  v.diagnosis.push_back(std::move(d));
  rank(v.diagnosis);
  return &first;
}

/// What the derivatives say for certain takes the place of what is only likely.
void add_certain(const std::string& cause, std::string explanation, const Fingerprint& found,
                 Verification& v) {
  if (!v.diagnosis.empty() && v.diagnosis.front().score >= thresholds::kNamed) return;
  Diagnosis d;
  d.cause = cause;
  std::erase_if(v.diagnosis, [&](const Diagnosis& known) { return known.cause == d.cause; });
  d.score = thresholds::kMisread;
  d.explanation = std::move(explanation);
  d.evidence = found.sentences;
  v.diagnosis.push_back(std::move(d));
  rank(v.diagnosis);
}

/// One token's elements of an input take no part in an output: its term is left out, or its decay.
void add_dropped(const Fingerprint& found, const TellingCase& told, Verification& v) {
  if (found.dropped.empty()) return;
  const std::string& input = found.dropped.front();
  add_certain(
      is_gate(input, told) ? "gate-missing" : "token-dropped",
      fmt::format("{} of one token takes no part: check where a loop over tokens begins and ends", input),
      found, v);
}

/// Tokens take part that lie later. Gradients depend on those, and in packed sequences others' are no future.
void add_later(const Fingerprint& found, const TellingCase& told, Verification& v) {
  const Case& c = told.resolved.case_;
  if (found.later.empty() || runs_backward(c) || !c.cu_seqlens.empty()) return;
  add_certain("future-token-included",
              fmt::format("{} of later tokens takes part: check the causal mask", found.later.front()), found,
              v);
}

/// Not what is computed of an input is wrong, but where it is read.
bool is_misread(std::string_view cause) {
  return cause.find("-of-another-") != cause.npos || cause == "operand-shifted-one-token" ||
         cause == "operand-layout";
}

/// What says which one is read knows the block, not the thread.
bool is_of_block(std::string_view cause) {
  return cause.ends_with("-of-another-head") || cause.ends_with("-of-another-sequence");
}

using ByInput = std::map<std::string, SuspectLine> SuspectLines::*;

/// Of what was located first, if both know it; null: neither does.
const SuspectLine* line_of(const std::string& input, ByInput lines,
                           std::initializer_list<const Located*> both) {
  for (const Located* located : both)
    if (located)
      if (const auto line = (located->suspects.*lines).find(input); line != (located->suspects.*lines).end())
        return &line->second;
  return nullptr;
}

/// Of an input, or of what the plan gives in its place (a fixed decay). Without optimisation each statement
/// that says where it is read is there.
const SuspectLine* load_of(const std::string& input, ByInput lines, const Located& optimised,
                           const Located* plain) {
  if (input.empty()) return nullptr;
  const SuspectLine* const line = line_of(input, lines, {plain, &optimised});
  return line ? line : line_of("", lines, {plain, &optimised});
}

const SuspectLine* line_about(const std::string& input, bool misread, const Located& optimised,
                              const Located* plain) {
  for (const ByInput lines : {misread ? &SuspectLines::reads : &SuspectLines::alone, &SuspectLines::alone})
    if (const SuspectLine* line = line_of(input, lines, {&optimised, plain})) return line;
  return misread ? load_of(input, &SuspectLines::loads, optimised, plain) : nullptr;
}

void put_at(SuspectLine line, size_t place, std::vector<SuspectLine>& lines) {
  for (size_t i = 0; i < std::min(place, lines.size()); ++i)
    if (same_place(lines[i], line)) return;  // it is before that already
  for (const SuspectLine& other : lines)
    if (goes_through(other, line)) line.at = other.at;  // it says more
  const auto behind = lines.begin() + static_cast<ptrdiff_t>(std::min(place, lines.size()));
  lines.erase(
      std::remove_if(behind, lines.end(),
                     [&](const SuspectLine& l) { return same_place(l, line) || goes_through(line, l); }),
      lines.end());
  lines.insert(lines.begin() + static_cast<ptrdiff_t>(std::min(place, lines.size())), std::move(line));
  if (lines.size() > kLinesSaid) lines.resize(kLinesSaid);
}

/// The cause says that one input is read otherwise than it should be: where it is still alone, later lines
/// only pass on what is wrong. A line that was changed and made all right goes before it, and those `first`.
void put_about(const SuspectLine& line, size_t first, std::vector<SuspectLine>& lines) {
  const bool mended =
      !lines.empty() && lines.front().reason.ends_with(kAllRight) && !same_place(lines.front(), line);
  put_at(line, std::max<size_t>(first, mended ? 1 : 0), lines);
}

/// Where slices are taken, and what they tell.
struct Sliced {
  std::optional<TellingCase> fewer, tiny;
  SuspectLines suspects;
};

/// In as few tokens as the shrunk case has, where that says something of what is wrong, else in the telling
/// case.
Sliced sliced_in(const Kernel& kernel, const TellingCase& told, const Case& shrunk,
                 const vm::MachineOptions& machine, double seconds) {
  const auto of = [&](std::optional<TellingCase> fewer) {
    const TellingCase& sliced = fewer ? *fewer : told;
    std::optional<TellingCase> tiny = with_tiny_gates(sliced, kernel, machine);
    SuspectLines found = suspects_in({told, sliced, tiny ? &*tiny : nullptr}, machine, seconds);
    return Sliced{std::move(fewer), std::move(tiny), std::move(found)};
  };
  if (auto fewer = with_fewer_tokens(told, shrunk, kernel, machine)) {
    Sliced found = of(std::move(fewer));
    if (!found.suspects.says_nothing()) return found;
    Sliced whole = of(std::nullopt);
    return found.suspects.changes != SIZE_MAX && whole.suspects.says_nothing() ? std::move(found)
                                                                               : std::move(whole);
  }
  return of(std::nullopt);
}

/// Behind what was tried and mends all: of decisions there may be two.
size_t place_behind(int plainest) {
  return plainest <= kDecision ? 2 : plainest <= kPlain ? 1 : 0;
}

/// Lines of one program that lack a value, or take one too many: before those that any values would mend,
/// behind changes that mend all. True: what is lacking is known.
bool put_explained(const SuspectLines& of, int plainest, std::vector<SuspectLine>& lines) {
  const bool decided = plainest <= kDecision;
  const size_t place = place_behind(plainest);
  if (of.related.empty() && !of.superfluous.empty()) {  // a number that is one factor too many
    for (size_t i = std::min(of.superfluous.size(), kLinesSaid - 1); i-- > 0;)
      put_at(of.superfluous[i], place, lines);
    return false;
  }
  if (of.related.empty() && !of.in_product.empty()) {
    for (size_t i = std::min(of.in_product.size(), kLinesSaid - 1); i-- > 0;)
      put_at(of.in_product[i], place + 1, lines);
    return false;
  }
  if (of.related.empty() && of.displaced.empty()) return false;
  if (of.along && plainest <= kPlain) return false;
  const SuspectLine& line = of.related.empty() ? of.displaced.front() : of.related.front();
  const size_t at = of.related.empty() ? (decided ? 1 : 0) : place;
  put_at(line, at, lines);
  if (!of.related.empty() && !of.passed_on.empty()) put_at(of.passed_on.front(), at + 1, lines);
  for (size_t i = of.related.empty() ? 0 : of.in_product.size(); i-- > 0;)
    put_at(of.in_product[i], at + 1, lines);
  if (!of.related.empty() && !of.alike.empty()) put_at(of.alike.front(), at + 1, lines);
  if (!of.related.empty() && !of.superfluous.empty()) put_at(of.superfluous.front(), at, lines);
  if (!of.addressed.empty() && same_place(line, of.displaced.front()))
    put_at(of.addressed.front(), decided ? 2 : 1, lines);
  return !of.related.empty();
}

/// What a search within a telling case finds.
void locate_in(const Kernel& kernel, const TellingCase& told, const std::string& about,
               const vm::MachineOptions& machine, double seconds, Verification& v) {
  const Fingerprint found = fingerprint(
      told.inputs, told.wrong,
      [&](const vm::InputMoves& moves) -> std::optional<vm::RealOutputs> {
        return vm::run_moved(told.program, told.inputs, moves, machine);
      },
      [&](const vm::InputMoves& moves) { return told.reference(moves); }, std::min(kOfFingerprint, seconds));
  Sliced in = sliced_in(kernel, told, v.case_, machine, seconds);
  const ToldCases cases{told, in.fewer ? *in.fewer : told, in.tiny ? &*in.tiny : nullptr};
  const Located optimised = located(cases, std::move(in.suspects), machine, seconds);
  std::optional<Located> plain;
  std::string untried;
  try {
    if (kernel.plainly) plain = located_plainly(kernel, cases, optimised, machine, seconds);
  } catch (const CannotCompile& e) {
    untried = fmt::format("; not looked at without optimisation: {}", e.what());
  }
  const Located* const without = plain ? &*plain : nullptr;
  v.lines = ranked(optimised, without);
  const int plainest = std::min(optimised.repaired.plainest, plain ? plain->repaired.plainest : INT_MAX);
  const bool decided = plainest <= kDecision;
  const size_t place = place_behind(plainest);
  bool related = false;
  for (const Located* located : {without, &optimised})
    if (located) related |= put_explained(located->suspects, plainest, v.lines);
  std::vector<SuspectLine> misplaced;
  if (v.diagnosis.empty() || v.diagnosis.front().score < thresholds::kNamed ||
      v.diagnosis.front().cause == kStoredElsewhere)  // no other cause explains what is wrong
    misplaced = lines_of_misplaced(cases.sliced, machine);
  for (size_t i = std::min(misplaced.size(), kLinesSaid - 1); i-- > 0;) put_at(misplaced[i], place, v.lines);
  if (auto absent = absent_argument(kernel, told, machine)) {
    std::erase_if(v.diagnosis, [&](const Diagnosis& known) { return known.cause == absent->cause; });
    v.diagnosis.push_back(*std::move(absent));
    rank(v.diagnosis);
  }
  add_dropped(found, told, v);
  add_later(found, told, v);
  const Misread* const by_derivatives = add_misread(found, told, v);
  const std::string& input = by_derivatives ? by_derivatives->input : about;
  const bool misread = by_derivatives || (!v.diagnosis.empty() && is_misread(v.diagnosis.front().cause));
  const bool exchanged = !by_derivatives && !v.diagnosis.empty() && v.diagnosis.front().cause == kExchanged;
  const SuspectLine* const own = exchanged ? line_of(input, &SuspectLines::takers, {without, &optimised})
                                           : line_about(input, misread, optimised, without);
  if (own) put_about(*own, related ? kLinesSaid - 1 : 0, v.lines);
  if (misread && !decided)
    if (const SuspectLine* line = load_of(input, &SuspectLines::places, optimised, without))
      put_at(*line, 1, v.lines);
  // Without optimisation what is passed to a function is in memory, and behind that nothing is known.
  if (misread && !decided && is_of_block(v.diagnosis.front().cause))
    if (const SuspectLine* line = line_of(input, &SuspectLines::blocks, {&optimised, without}))
      put_at(*line, 1, v.lines);
  if (!v.lines.empty()) v.lines.front().reason += untried;
  if (!found.sentences.empty()) add_sentences(found, token_of(told.resolved.case_), v);
}

/// What overflows is a sum or a value that is stored: it may be as large as it should be, or not.
bool is_overflow(const Verification& v) {
  return v.origin && !v.diagnosis.empty() &&
         (v.diagnosis.front().cause == "format-overflow" || v.diagnosis.front().cause == "sum-overflow");
}

/// Where the formula is wrong of these values and of values in range too, the overflow is what comes of it.
void locate_behind_overflow(const Kernel& kernel, const TensorMap& inputs, const std::string& about,
                            const vm::MachineOptions& machine, const VerifyOptions& options,
                            Verification& v) {
  if (v.lane_instructions > thresholds::kExactInstructions ||
      !find_telling_case(v.case_, kernel, &inputs, machine, options.meaning_seconds / 4))
    return;
  const auto told = find_telling_case(v.case_, kernel, nullptr, machine, options.meaning_seconds / 4);
  if (!told) return;
  v.diagnosis.front().score = std::min(v.diagnosis.front().score, kBehindFormula);
  std::erase_if(v.diagnosis, [](const Diagnosis& d) { return d.cause == kFormulaDiffers; });
  Diagnosis formula;
  formula.cause = kFormulaDiffers, formula.score = thresholds::kFormulaOnly;
  formula.explanation =
      fmt::format("the formula is wrong in {} too, where nothing overflows", token_of(told->resolved.case_));
  v.diagnosis.push_back(std::move(formula));
  rank(v.diagnosis);
  locate_in(kernel, *told, about, machine, options.meaning_seconds, v);
}

}  // namespace

void locate_fault(const Kernel& kernel, const Program& program, const TensorMap& inputs,
                  const std::string& about, const VerifyOptions& options, Verification& v) {
  if (!has_code(program)) return;  // of a test's engine
  if (options.meaning_seconds <= 0) return;
  vm::MachineOptions machine = options.origin.machine;
  machine.threads = 1;  // of runs of a few blocks
  if (v.trap) put_trapped(program, v);
  if (is_checks_own(v)) put_checked_first(program, inputs, machine, options.meaning_seconds / 4, v);
  if (!v.case_.blocks.empty()) return;
  if (is_overflow(v) && !options.inputs) locate_behind_overflow(kernel, inputs, about, machine, options, v);
  if (!is_finite_fault(v)) return;
  const auto told = find_telling_case(v.case_, kernel, options.inputs, machine, options.meaning_seconds / 4);
  if (told)
    locate_in(kernel, *told, about, machine, options.meaning_seconds, v);
  else
    v.lines = lines_of_rounding(kernel, program, inputs, options, v);
  put_checked_first(program, inputs, machine, options.meaning_seconds / 4, v);
}

void locate_failed_property(const Kernel& kernel, const VerifyOptions& options,
                            const std::vector<DerivedRun>& derived, Verification& v) {
  vm::MachineOptions machine = options.origin.machine;
  machine.threads = 1;
  const double seconds = options.meaning_seconds;
  std::optional<TellingCase> told = find_telling_case(v.case_, kernel, nullptr, machine, seconds / 4);
  for (size_t i = 0; i < derived.size() && !told; ++i) try {
      told = find_telling_case(derived[i].case_, kernel, &derived[i].inputs, machine, seconds / 4);
    } catch (const BadInput&) {
      continue;  // outside what the kernel takes
    }
  if (told) locate_in(kernel, *told, "", machine, seconds, v);
  if (v.lines.empty() && is_checks_own(v)) {
    const ResolvedCase own = accepted(v.case_, kernel);
    const TensorMap inputs = draw_inputs(own);
    put_checked_first(program_of(kernel, own, inputs), inputs, machine, seconds / 4, v);
  }
  const SourceText source(v.kernel);
  for (size_t i = 0; i < derived.size() && v.lines.empty(); ++i) try {
      const DerivedRun& run = derived[i];
      const Program program = program_of(kernel, accepted(run.case_, kernel), run.inputs);
      if (!has_code(program)) continue;
      put_checked_first(program, run.inputs, machine, seconds / 4, v);
      const Outcome outcome = v.lines.empty() ? vm::run(program, run.inputs, machine) : Outcome();
      if (outcome.trap && outcome.trap->where.line > 0)
        v.lines.push_back(
            {{outcome.trap->where, "", source.line(outcome.trap->where)}, outcome.trap->message});
      if (v.lines.empty()) v.lines = lines_of_rounding(kernel, program, run.inputs, options, v);
    } catch (const BadInput&) {
      continue;
    }
}

}  // namespace assay
