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
#include "src/verification/diagnosis/line_repair.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/diagnosis/suspect_lines.h"
#include "src/verification/diagnosis/thresholds.h"
#include "src/verification/verify/absent_argument.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/checked_lines.h"
#include "src/verification/verify/companion.h"
#include "src/verification/verify/explain.h"
#include "src/verification/verify/rounding_lines.h"
#include "src/verification/verify/telling_case.h"

namespace assay {
namespace {

/// Counted seconds (counted_work.h), at most.
constexpr double kOfFingerprint = 2, kOfSlices = 3, kOfRepairs = 2.5, kOfPlainRepairs = 1.5,
                 kOfPlainDecisions = 5;
/// Of the errors, what a change leaves that mends some elements.
constexpr double kMostlyRepaired = 0.5;
/// Of what mends all: a slip in the source would be no more. What is less plain may only undo it.
constexpr int kDecision = 1, kPlain = 2;
/// In so small an output many changes mend what is wrong; decisions of so few lines say something all the
/// same.
constexpr size_t kFewElements = 8, kFewLines = 2;
constexpr std::string_view kAllRight = "all elements are right";
constexpr std::string_view kFormulaDiffers = "formula-differs";

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
  return fmt::format("{}-of-another-{}", is_gate(misread.input, told) ? "gate" : "operand",
                     misread.axis.starts_with('H') ? "head" : "sequence");
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

/// One token's elements of an input take no part in an output: its term is left out, or its decay.
void add_dropped(const Fingerprint& found, const TellingCase& told, Verification& v) {
  if (found.dropped.empty() || (!v.diagnosis.empty() && v.diagnosis.front().score >= thresholds::kNamed))
    return;
  const std::string& input = found.dropped.front();
  Diagnosis d;
  d.cause = is_gate(input, told) ? "gate-missing" : "token-dropped";
  std::erase_if(v.diagnosis, [&](const Diagnosis& known) { return known.cause == d.cause; });
  d.score = thresholds::kMisread;
  d.explanation =
      fmt::format("{} of one token takes no part: check where a loop over tokens begins and ends", input);
  d.evidence = found.sentences;
  v.diagnosis.push_back(std::move(d));
  rank(v.diagnosis);
}

/// One is the other's call that was inlined: the same statement, seen from without and from within.
bool is_call_of(const SuspectLine& a, const SuspectLine& b) {
  const auto goes_through = [](const SuspectLine& inner, const SuspectLine& outer) {
    const std::vector<std::string>& frames = inner.at.where.frames;
    return std::count(frames.begin(), frames.end(), place_of(outer.at.where)) > 0;
  };
  return goes_through(a, b) || goes_through(b, a);
}

/// Repairs in words: of every element, of some, where a repaired comparison is used, and what repaired guards
/// decide.
struct RepairedLines {
  std::vector<SuspectLine> whole, partial, used, decided, made;
  int plainest = INT_MAX;  ///< Repair::simplicity of what mends all
};

RepairedLines in_words(const std::vector<Repair>& repairs, const SuspectLines& suspects, size_t elements) {
  RepairedLines lines;
  std::set<std::string> decisive;  // lines of which a decision mends all
  for (const Repair& repair : repairs)
    if (repair.left == 0 && repair.simplicity <= kDecision) decisive.insert(place_of(repair.at.where));
  for (const Repair& repair : repairs) {
    if (repair.at.where.line == 0 && !repair.at.where.file.empty()) continue;  // the compiler's own
    const bool surprising = elements > kFewElements || repair.simplicity == 0 ||
                            (repair.simplicity <= kDecision && decisive.size() <= kFewLines);
    if (repair.left == 0 && surprising) {
      lines.plainest = std::min(lines.plainest, repair.simplicity);
      lines.whole.push_back({repair.at, fmt::format("with {} {}", repair.change, kAllRight)});
      if (repair.decides)
        lines.decided.push_back({*repair.decides, fmt::format("what it computes depends on it: with {} {}",
                                                              repair.change, kAllRight)});
      if (repair.maker)
        lines.made.push_back(
            {*repair.maker, fmt::format("it makes what was changed: with {} {}", repair.change, kAllRight)});
      if (repair.branch)
        lines.used.push_back(
            {*repair.branch, fmt::format("it is decided so: with {} {}", repair.change, kAllRight)});
    } else if (repair.left > 0 && repair.left < kMostlyRepaired &&
               suspects.explain.contains(place_of(repair.at.where))) {
      lines.partial.push_back({repair.at, fmt::format("with {} {:.0f} % of the errors are gone",
                                                      repair.change, 100 * (1 - repair.left))});
    }
  }
  return lines;
}

/// Lines of which a changed instruction makes everything right, where the first such comparison is used, what
/// a repaired guard decides, and those whose values explain what is wrong.
std::vector<SuspectLine> ranked(const RepairedLines& repaired, const std::vector<SuspectLine>& suspects) {
  std::vector<SuspectLine> lines;
  const auto add = [&](const SuspectLine& line) {
    const auto known = [&](const SuspectLine& other) {
      return same_place(other, line) || is_call_of(other, line);
    };
    if (std::none_of(lines.begin(), lines.end(), known)) lines.push_back(line);
  };
  for (const SuspectLine& line : repaired.whole)
    if (holds(suspects, line)) add(line);
  for (const SuspectLine& line : repaired.whole)
    if (lines.empty()) add(line);
  if (!repaired.used.empty()) add(repaired.used.front());
  if (!repaired.made.empty()) add(repaired.made.front());
  for (const SuspectLine& line : repaired.whole) add(line);
  if (!repaired.decided.empty()) add(repaired.decided.front());
  if (lines.empty() && !repaired.partial.empty() && holds(suspects, repaired.partial.front()))
    add(repaired.partial.front());
  for (const SuspectLine& line : suspects) {
    add(line);
    if (!repaired.partial.empty()) add(repaired.partial.front());
  }
  if (lines.size() > kLinesSaid) lines.resize(kLinesSaid);
  return lines;
}

/// How near a line is to one whose values explain what is wrong: 1 there, half of it some lines away. What is
/// missing, or was decided, stands around it and has no part in its values.
double nearness(const SourceLocation& where, const std::vector<SuspectLine>& lines) {
  constexpr double kHalf = 4;  // lines
  constexpr double kOfRank = 0.95;
  double nearest = 0, most = 1;
  const std::string file = where.file + ":";
  for (const SuspectLine& line : lines) {
    const auto to = [&](int other) {
      nearest = std::max(nearest, most * std::exp2(-std::abs(other - where.line) / kHalf));
    };
    if (where.line > 0 && line.at.where.file == where.file) to(line.at.where.line);
    for (const std::string& frame : line.at.where.frames)  // of calls on the way too
      if (where.line > 0 && frame.starts_with(file)) to(std::atoi(frame.c_str() + file.size()));
    most *= kOfRank;
  }
  return nearest;
}

/// `near`: lines that explain what is wrong.
std::vector<Repair> repairs_of(const TellingCase& told, const vm::MachineOptions& machine,
                               const SuspectLines& suspects, const std::vector<SuspectLine>& near,
                               double decision_seconds, double seconds) {
  const SourceText source(told.program.name);
  vm::ChangedRuns runs(told.program, told.inputs, machine);
  if (!runs.can_run()) return {};
  RepairSearch search;
  search.judge = [&](const vm::RealOutputs& changed) { return told.judge(changed, runs.unchanged()); };
  search.wrong = told.most_wrong();
  search.left = [&](const vm::RealOutputs& changed, const std::vector<vm::OutputElement>& of) {
    return told.left_of(changed, of);
  };
  search.may_compute_wrong = [&](const SourceLocation& where) {
    return suspects.explain.empty() || suspects.explain.contains(place_of(where));
  };
  size_t wrong = 0, right = 0;  // slices
  for (const auto& [site, behind] : suspects.behind)
    wrong = std::max<size_t>(wrong, behind.wrong), right = std::max<size_t>(right, behind.right);
  std::map<const ptx::Module*, Locations> locations;
  search.suspicion = [&, wrong, right](const ptx::Module* module, int32_t function, int32_t at) {
    const auto known = suspects.behind.find({module, function, at});
    if (known == suspects.behind.end())
      return nearness(locations.try_emplace(module, *module).first->second.of(function, at), near);
    const double of_wrong = known->second.wrong / std::max(1.0, static_cast<double>(wrong));
    const double of_right = known->second.right / std::max(1.0, static_cast<double>(right));
    return known->second.worth * of_wrong / (of_wrong + of_right + 0.01);
  };
  search.decision_seconds = decision_seconds;
  search.seconds = seconds;
  return find_repairs(runs, source, search);
}

/// What one program for the case says: changes that mend it, and lines that explain what is wrong.
struct Located {
  RepairedLines repaired;
  SuspectLines suspects;
};

Located located(const TellingCase& told, const vm::MachineOptions& machine, double seconds) {
  SuspectLines suspects = suspect_lines(told.program, told.inputs, machine, told.sample(), Values::all,
                                        std::min(kOfSlices, seconds));
  const std::vector<Repair> repairs =
      repairs_of(told, machine, suspects, suspects.likeliest, 0, std::min(kOfRepairs, seconds));
  RepairedLines repaired = in_words(repairs, suspects, told.judged_elements());
  return {std::move(repaired), std::move(suspects)};
}

/// Lines of both lists: each place counts by its reciprocal, so that what both name comes before what one
/// does, but for the best of either.
std::vector<SuspectLine> fused(const std::vector<SuspectLine>& first,
                               const std::vector<SuspectLine>& second) {
  std::vector<std::pair<double, SuspectLine>> all;
  for (const std::vector<SuspectLine>* list : {&first, &second})
    for (size_t i = 0; i < list->size(); ++i) {
      const auto known = std::find_if(all.begin(), all.end(),
                                      [&](const auto& line) { return same_place(line.second, (*list)[i]); });
      const double claim = 1 / static_cast<double>(i + 1);
      if (known == all.end())
        all.emplace_back(claim, (*list)[i]);
      else
        known->first += claim;
    }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<SuspectLine> lines;
  for (auto& [claim, line] : all) lines.push_back(std::move(line));
  return lines;
}

/// The same without optimisation: there a statement that has no instruction of its own any more is still
/// seen. Changes are tried where no plain one has mended the optimised program. None where the fault is not
/// in both.
std::optional<Located> located_plainly(const Kernel& kernel, const TellingCase& told,
                                       const Located& optimised, const vm::MachineOptions& machine,
                                       double seconds) {
  const auto plain = told.with(kernel.plainly(told.program), machine);
  if (!plain) return std::nullopt;
  Located found;
  SuspectLines& suspects = found.suspects;
  suspects = suspect_lines(plain->program, plain->inputs, machine, plain->sample(), Values::telling,
                           std::min(kOfSlices, seconds));
  std::vector<Repair> repairs;
  if (optimised.repaired.plainest > kDecision)
    repairs = repairs_of(*plain, machine, suspects, fused(suspects.likeliest, optimised.suspects.likeliest),
                         std::min(kOfPlainDecisions, seconds),
                         optimised.repaired.plainest > kPlain ? std::min(kOfPlainRepairs, seconds) : 0);
  found.repaired = in_words(repairs, suspects, plain->judged_elements());
  RepairedLines& repaired = found.repaired;
  const auto of_the_source = [](const SuspectLine& line) { return line.at.where.line > 0; };
  const auto tell = [](SuspectLine& line) {
    line.reason = "compiled without optimisation, " + line.reason;
    line.at.where.ptx_line = 0;  // of another text than the kernel's
  };
  for (std::vector<SuspectLine>* lines :
       {&suspects.likeliest, &suspects.related, &suspects.passed_on, &suspects.superfluous,
        &suspects.displaced, &suspects.addressed, &repaired.whole, &repaired.partial, &repaired.used,
        &repaired.decided, &repaired.made}) {
    std::erase_if(*lines, std::not_fn(of_the_source));
    for (SuspectLine& line : *lines) tell(line);
  }
  for (auto* lines :
       {&suspects.alone, &suspects.reads, &suspects.loads, &suspects.places, &suspects.blocks}) {
    std::erase_if(*lines, [&](const auto& line) { return !of_the_source(line.second); });
    for (auto& [input, line] : *lines) tell(line);
  }
  return found;
}

/// Of both programs. A change that makes everything right was tried, whichever of them it was tried on. Of
/// what explains neither knows more: without optimisation no statement is missing, but copies and conversions
/// of many explain alike.
std::vector<SuspectLine> ranked(const Located& optimised, const Located& plain) {
  const bool plainer = plain.repaired.plainest < optimised.repaired.plainest;
  RepairedLines repaired = plainer ? plain.repaired : optimised.repaired;
  const RepairedLines& other = plainer ? optimised.repaired : plain.repaired;
  const auto join = [](std::vector<SuspectLine>& to, const std::vector<SuspectLine>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  join(repaired.whole, other.whole);
  join(repaired.used, other.used);
  join(repaired.decided, other.decided);
  join(repaired.made, other.made);
  join(repaired.partial, other.partial);
  return ranked(repaired, fused(plain.suspects.likeliest, optimised.suspects.likeliest));
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

void put_at(const SuspectLine& line, size_t place, std::vector<SuspectLine>& lines) {
  std::erase_if(lines, [&](const SuspectLine& l) { return same_place(l, line); });
  lines.insert(lines.begin() + static_cast<ptrdiff_t>(std::min(place, lines.size())), line);
  if (lines.size() > kLinesSaid) lines.resize(kLinesSaid);
}

/// The cause says that one input is read otherwise than it should be: where it is still alone, later lines
/// only pass on what is wrong. A line that was changed and made all right goes before it.
void put_about(const SuspectLine& line, std::vector<SuspectLine>& lines) {
  const bool mended =
      !lines.empty() && lines.front().reason.ends_with(kAllRight) && !same_place(lines.front(), line);
  put_at(line, mended ? 1 : 0, lines);
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
  const Located optimised = located(told, machine, seconds);
  std::optional<Located> plain;
  std::string untried;
  try {
    if (kernel.plainly) plain = located_plainly(kernel, told, optimised, machine, seconds);
  } catch (const CannotCompile& e) {
    untried = fmt::format("; not looked at without optimisation: {}", e.what());
  }
  const Located* const without = plain ? &*plain : nullptr;
  v.lines = plain ? ranked(optimised, *plain) : ranked(optimised.repaired, optimised.suspects.likeliest);
  const int plainest = std::min(optimised.repaired.plainest, plain ? plain->repaired.plainest : INT_MAX);
  const bool decided = plainest <= kDecision;
  // behind what was tried and mends all: of decisions there may be two
  const size_t place = decided ? 2 : plainest <= kPlain ? 1 : 0;
  for (const Located* located : {without, &optimised}) {
    if (!located) continue;
    const SuspectLines& of = located->suspects;
    if (of.related.empty() && of.displaced.empty()) continue;
    if (of.along && plainest <= kPlain) continue;
    const SuspectLine& line = of.related.empty() ? of.displaced.front() : of.related.front();
    const size_t at = of.related.empty() ? (decided ? 1 : 0) : place;
    put_at(line, at, v.lines);
    if (!of.related.empty() && !of.passed_on.empty()) put_at(of.passed_on.front(), at + 1, v.lines);
    if (!of.related.empty() && !of.superfluous.empty()) put_at(of.superfluous.front(), at, v.lines);
    if (!of.addressed.empty() && same_place(line, of.displaced.front()))
      put_at(of.addressed.front(), decided ? 2 : 1, v.lines);
  }
  if (auto absent = absent_argument(kernel, told, machine)) {
    std::erase_if(v.diagnosis, [&](const Diagnosis& known) { return known.cause == absent->cause; });
    v.diagnosis.push_back(*std::move(absent));
    rank(v.diagnosis);
  }
  add_dropped(found, told, v);
  const Misread* const by_derivatives = add_misread(found, told, v);
  const std::string& input = by_derivatives ? by_derivatives->input : about;
  const bool misread = by_derivatives || (!v.diagnosis.empty() && is_misread(v.diagnosis.front().cause));
  if (const SuspectLine* line = line_about(input, misread, optimised, without)) put_about(*line, v.lines);
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

}  // namespace

void locate_fault(const Kernel& kernel, const Program& program, const TensorMap& inputs,
                  const std::string& about, const VerifyOptions& options, Verification& v) {
  if (!has_code(program)) return;  // of a test's engine
  if (options.meaning_seconds <= 0) return;
  vm::MachineOptions machine = options.origin.machine;
  machine.threads = 1;  // of runs of a few blocks
  if (v.trap) put_trapped(program, v);
  if (is_checks_own(v)) put_checked_first(program, inputs, machine, options.meaning_seconds / 4, v);
  if (!v.case_.blocks.empty() || !is_finite_fault(v)) return;
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
