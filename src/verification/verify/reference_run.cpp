#include "src/verification/verify/reference_run.h"

#include <algorithm>
#include <iterator>

#include "src/base/numerics/threads.h"
#include "src/verification/diagnosis/evaluation_work.h"

namespace assay {

Problem declared_problem(const Claim& claim, const TensorMap& inputs, int threads) {
  const ResolvedCase& c = *claim.of;
  Problem problem;
  problem.sizes = c.sizes;
  problem.cu_seqlens = c.case_.cu_seqlens;
  problem.scale = c.scale;
  problem.inputs = &inputs;
  problem.parameters = c.case_.parameters;
  problem.threads = static_cast<int>(threads_or_all(threads));
  problem.arithmetic = claim.arithmetic;
  problem.adjoint = claim.adjoint;
  return problem;
}

ReferenceResult evaluate_reference(const ResolvedCase& c, const Problem& declared) {
  Problem problem = declared;
  if (c.values->name == "exact") {
    problem.arithmetic = {};
    problem.adjoint = {};
    problem.adjoint.gate_output_roundoff = declared.adjoint.gate_output_roundoff;
  }
  count_evaluation(*c.op, problem, c.forward(), c.backward());
  ReferenceResult result;
  if (c.forward()) result = c.op->evaluate(problem);
  if (c.backward()) {
    ReferenceResult gradients = c.op->evaluate_adjoint(problem);
    result.seconds += gradients.seconds;
    std::move(gradients.outputs.begin(), gradients.outputs.end(), std::back_inserter(result.outputs));
  }
  return result;
}

}  // namespace assay
