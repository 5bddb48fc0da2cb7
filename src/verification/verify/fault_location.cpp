#include "src/verification/verify/fault_location.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "src/base/vm/shadow_run.h"
#include "src/verification/diagnosis/diagnose.h"
#include "src/verification/diagnosis/fingerprint.h"
#include "src/verification/diagnosis/line_repair.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/diagnosis/suspect_lines.h"
#include "src/verification/diagnosis/thresholds.h"
#include "src/verification/verify/companion.h"
#include "src/verification/verify/explain.h"
#include "src/verification/verify/telling_case.h"

namespace assay {
namespace {

constexpr size_t kLinesSaid = 3;
/// Warp instructions of a mutant on a telling case, which takes a small part of it.
constexpr uint64_t kOfMutant = 2'000'000;
constexpr std::string_view kFormulaDiffers = "formula-differs";

bool is_finite_fault(const Verification& v) {
  const auto nonfinite = [](const OutputComparison& o) { return o.nonfinite > 0; };
  const auto wrong = [](const OutputComparison& o) { return o.violation + o.wrong_class > 0; };
  if (v.trap || std::any_of(v.outputs.begin(), v.outputs.end(), nonfinite)) return false;
  return std::any_of(v.outputs.begin(), v.outputs.end(), wrong) || (v.formula && v.formula->violated());
}

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

/// Lines of which a changed instruction makes everything right go before all others.
void put_repaired_first(const TellingCase& told, const vm::MachineOptions& machine, double seconds,
                        std::vector<SuspectLine>& lines) {
  const auto start = std::chrono::steady_clock::now();
  const auto late = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds;
  };
  vm::MachineOptions bounded = machine;
  bounded.instruction_budget = kOfMutant;  // some never end
  const auto is_right = [&](const Program& changed) { return told.is_right(changed, bounded); };
  std::vector<SuspectLine> repaired, others;
  for (SuspectLine& line : lines) {
    const auto repair = late() ? std::nullopt : repair_of(told.program, line.at.where, is_right, late);
    if (repair) line.reason = fmt::format("with {} all elements are right", *repair);
    (repair ? repaired : others).push_back(std::move(line));
  }
  lines = std::move(repaired);
  lines.insert(lines.end(), others.begin(), others.end());
  if (lines.size() > kLinesSaid) lines.resize(kLinesSaid);
}

/// Where no formula is wrong: the lines whose roundings make most of the errors.
std::vector<SuspectLine> lines_of_rounding(const Program& program, const TensorMap& inputs,
                                           const VerifyOptions& options, const Verification& v) {
  std::optional<ShadowReport> own;
  if (!v.shadow && v.lane_instructions <= thresholds::kShadowInstructions)
    own = vm::run_shadow(program, inputs, options.origin.machine,
                         {.element = violating_element(v), .locate = location_of});
  const ShadowReport* shadow = v.shadow ? &*v.shadow : own ? &*own : nullptr;
  std::vector<SuspectLine> lines;
  const SourceText source(v.kernel);
  for (size_t i = 0; shadow && i < std::min(kLinesSaid, shadow->lines.size()); ++i) {
    const ShadowLine& line = shadow->lines[i];
    lines.push_back({{line.where, line.instruction, source.line(line.where)},
                     fmt::format("{:.1f} % of all rounding errors", line.share)});
  }
  return lines;
}

}  // namespace

void locate_fault(const Kernel& kernel, const Program& program, const TensorMap& inputs,
                  const VerifyOptions& options, Verification& v) {
  if (!has_code(program)) return;  // of a test's engine
  if (options.meaning_seconds <= 0 || !v.case_.blocks.empty() || !is_finite_fault(v)) return;
  vm::MachineOptions machine = options.origin.machine;
  machine.threads = 1;  // of runs of a few blocks
  const auto told = find_telling_case(v.case_, kernel, options.inputs, machine, options.meaning_seconds / 4);
  if (!told) {
    v.lines = lines_of_rounding(program, inputs, options, v);
    return;
  }
  const Fingerprint found = fingerprint(
      told->inputs, told->wrong,
      [&](const vm::InputMoves& moves) -> std::optional<vm::RealOutputs> {
        return vm::run_moved(told->program, told->inputs, moves, machine);
      },
      [&](const vm::InputMoves& moves) { return told->reference(moves); }, options.meaning_seconds / 2);
  v.lines = suspect_lines(told->program, told->inputs, machine, told->sample(), options.meaning_seconds / 2);
  put_repaired_first(*told, machine, options.meaning_seconds / 4, v.lines);
  if (!found.sentences.empty()) add_sentences(found, token_of(told->resolved.case_), v);
}

}  // namespace assay
