#include "src/verification/verify/given_outputs.h"

#include <fmt/format.h>

#include "src/base/numerics/bad_input.h"
#include "src/verification/diagnosis/diagnose.h"
#include "src/verification/diagnosis/failing_run.h"
#include "src/verification/diagnosis/meaning.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/expected_outputs.h"
#include "src/verification/verify/judgement.h"
#include "src/verification/verify/reference_run.h"
#include "src/verification/verify/verdict.h"

namespace assay {
namespace {

void require_declared(const ResolvedCase& c, const Kernel& declares) {
  if ((c.forward() && !declares.arithmetic) || (c.backward() && !declares.adjoint_arithmetic))
    throw BadInput(fmt::format("{}: no arithmetic is declared of its direction {}; name a kernel that has it",
                               declares.name, name_of(c.direction)));
}

/// Meanings of the operator under which the wrong values would be right, and tensors with axes exchanged.
void explain_outputs(const ResolvedCase& c, const Judgement& judged, const TensorMap& inputs,
                     const TensorMap& outputs, double seconds, Verification& v) {
  const FailingRun failing = failing_run(*c.op, judged.problem, outputs, judged.reference, v.outputs);
  if (!failing.wrong().empty()) v.diagnosis = weigh_meanings(failing, seconds).fitting;
  const auto evaluate = [&](const TensorMap& changed) {
    Problem other = judged.problem;
    other.inputs = &changed;
    return evaluate_reference(c, other);
  };
  if (auto exchange = transposed_tensors(inputs, outputs, judged.reference, evaluate, seconds))
    v.diagnosis.push_back(*std::move(exchange));
  rank(v.diagnosis);
}

}  // namespace

Verification judge_outputs(const Case& c, const Kernel& declares, const TensorMap& inputs,
                           const TensorMap& outputs, const VerifyOptions& options) {
  const ResolvedCase resolved = resolve(c, find_operator(declares.operator_name));
  require_declared(resolved, declares);
  require_memory(resolved);
  Verification v;
  v.kernel = c.kernel, v.case_ = c;
  v.backend = "given outputs", v.arithmetic = declares.arithmetic_text;
  v.domain = domain_faults(inputs, declares, *resolved.op);
  if (!v.domain.empty()) {
    decide(v);
    return v;
  }
  Claim claim = claim_of(declares, resolved);
  claim.exponents_nonpositive = false;  // a promise of launches
  ProgramRun run;
  run.outcome.outputs = outputs;
  const Judgement judged = judge(claim, inputs, run, options, v);
  v.outputs = compare_expected(outputs, judged.reference);
  VerifyOptions statistics = options;
  if (!declares.declares_roundings) statistics.rounding_work = 0;
  judge_roundings(claim, run, judged, statistics, v);
  decide(v);
  if (!options.diagnose || options.meaning_seconds <= 0 || v.verdict != Verdict::finding) return v;
  explain_outputs(resolved, judged, inputs, outputs, options.meaning_seconds, v);
  decide(v);
  return v;
}

}  // namespace assay
