#include "src/verification/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/threads.h"
#include "src/base/program/block_choice.h"
#include "src/result/finding_kind.h"
#include "src/verification/diagnosis/element_slice.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/excuse.h"
#include "src/verification/verify/explain.h"
#include "src/verification/verify/fault_location.h"
#include "src/verification/verify/judgement.h"
#include "src/verification/verify/verdict.h"

namespace assay {
namespace {

Verification begin(const Case& c, const Kernel& kernel, const Backend& backend) {
  Verification v;
  v.kernel = kernel.name;
  v.case_ = c;
  v.token = token_of(c);
  v.replay = "assay replay " + v.token;
  v.backend = backend.name();
  v.arithmetic = kernel.arithmetic_text;
  return v;
}

/// Throws BadInput where the plan does not write the output that the caller asks about.
void require_written(const Program& plan, const VerifyOptions& options) {
  if (!options.element) return;
  std::string written;
  for (const ProgramOutput& o : plan.outputs) {
    if (o.name == options.element->first) return;
    written += (written.empty() ? "" : ", ") + o.name;
  }
  throw BadInput(fmt::format("element of {}: this run does not write it; it writes {}",
                             options.element->first, written.empty() ? "nothing" : written));
}

bool some_undecided(const Verification& v) {
  return std::any_of(v.outputs.begin(), v.outputs.end(),
                     [](const OutputComparison& output) { return output.undecided > 0; });
}

/// Runs that are worth their formula where nothing else decides.
VerifyOptions longer_formula(VerifyOptions options, const Verification& v) {
  const uint64_t times = some_undecided(v) ? 4 : 1;
  if (options.formula_where_open < UINT64_MAX / times) options.formula_where_open *= times;
  options.formula_instructions = std::max(options.formula_instructions, options.formula_where_open);
  return options;
}

bool formula_would_decide(const Verification& v, const VerifyOptions& options) {
  const auto inconclusive = [](const PowerOutput& output) { return output.inconclusive; };
  const bool open = some_undecided(v) ||
                    (v.power && std::any_of(v.power->outputs.begin(), v.power->outputs.end(), inconclusive));
  return open && v.formula && !v.formula->skipped.empty() &&
         v.lane_instructions <= options.formula_instructions;
}

/// Where a finding comes from: a slice, origins, named causes.
void explain_finding(const JudgedRun& run, const VerifyOptions& options, Verification& v) {
  const auto element = options.element ? options.element : violating_element(v);
  if (options.slice && !run.outcome.trap && element)
    v.slice = slice_element(run.plan, run.inputs, options.origin.machine, element->first, element->second);
  const bool only_expected = v.cause.starts_with(name_of(FindingKind::expected));  // nothing of the kernel's
  const bool asked = (v.verdict == Verdict::finding && !only_expected) || options.element;
  if (!options.diagnose || !asked) return;
  const std::string about = explain(run, options, v);
  locate_fault(run.kernel, run.plan, run.inputs, about, options, v);
  decide(v);  // the cause now names the origin
  v.source_shape = shape_of_cause(v);
  const bool placed = v.trap || (v.origin && !v.origin->where.file.empty());
  if (v.verdict == Verdict::finding && !only_expected && !placed) v.entry = entry_of(run.plan);
}

}  // namespace

Verification verify(const Case& c, const Kernel& kernel, Backend& backend, const VerifyOptions& options) {
  const ResolvedCase resolved = accepted(c, kernel);
  require_memory(resolved);
  Verification v = begin(c, kernel, backend);
  TensorMap drawn =
      options.inputs ? TensorMap{} : draw_inputs(resolved, static_cast<int>(threads_or_all(options.threads)));
  const TensorMap& inputs = options.inputs ? *options.inputs : drawn;
  v.domain = domain_faults(inputs, kernel, *resolved.op);
  if (!v.domain.empty()) {
    decide(v);
    return v;
  }
  const Program program = program_of(kernel, resolved, inputs);
  const Claim claim = claim_of(kernel, resolved);
  require_written(program, options);
  require_blocks(program);

  // The program: what it does, whatever it may be for.
  ProgramRun run = run_program(program, inputs, backend, options, v);

  // The claim: what is right, and how far from it the declared arithmetic may be.
  const Judgement judged = judge(claim, inputs, run, options, v);

  VerifyOptions formula = options;
  if (!kernel.has_formula) formula.formula_instructions = 0;
  std::optional<vm::ExactRun> exact = judge_formula(program, inputs, run, judged, formula, v);
  VerifyOptions statistics = options;
  if (!kernel.declares_roundings && options.rounding_work < HUGE_VAL) statistics.rounding_work = 0;
  judge_roundings(claim, run, judged, statistics, v);
  if (const VerifyOptions more = longer_formula(formula, v);
      v.lane_instructions > formula.formula_instructions && formula_would_decide(v, more)) {
    exact = judge_formula(program, inputs, run, judged, more, v);
    judge_roundings(claim, run, judged, statistics, v);
  }

  // The program again, where the judgement says to look.
  shadow_program(program, inputs, run, options, options.element ? options.element : violating_element(v), v);
  triage_program(program, inputs, run, options, v);
  decide(v);
  excuse_growth(resolved, run, judged, inputs, v);
  if (v.verdict == Verdict::undecided) settle_by_formula(run, judged, v), decide(v);
  excuse_lost_states(resolved, run, judged, inputs, v);

  if (!program.blocks.empty()) {
    if (options.diagnose && v.verdict == Verdict::finding) {
      explain_some_blocks(*resolved.op, v);
      locate_fault(kernel, program, inputs, "", options, v);
      v.source_shape = shape_of_cause(v);
    }
    return v;
  }
  std::optional<LaunchedRun> launched;
  if (options.diagnose && v.verdict == Verdict::finding) launched = backend.launched(program, inputs);
  explain_finding({kernel, backend, program, *resolved.op, judged.problem, inputs, run.outcome,
                   judged.reference, exact ? &*exact : nullptr, launched ? &*launched : nullptr},
                  options, v);
  if (options.diagnose) explain_expected(claim, judged, inputs, options, v);
  if (options.kept) options.kept->emplace(KeptRun{std::move(drawn), std::move(run.outcome)});
  return v;
}

}  // namespace assay
