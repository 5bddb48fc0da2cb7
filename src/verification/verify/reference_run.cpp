#include "src/verification/verify/reference_run.h"

#include <algorithm>
#include <iterator>
#include <thread>

#include "src/verification/verify/verify.h"

namespace assay {

Problem declared_problem(const Case& c, const Kernel& kernel, const Operator& op, const TensorMap& inputs,
                         int threads) {
  Problem problem;
  problem.sizes = sizes_of(c);
  problem.cu_seqlens = c.cu_seqlens;
  problem.scale = scale_of(c, op);
  problem.inputs = &inputs;
  problem.parameters = c.parameters;
  problem.threads =
      threads > 0 ? threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (runs_forward(c)) problem.arithmetic = kernel.arithmetic(c);
  if (runs_backward(c)) problem.adjoint = kernel.adjoint_arithmetic(c);
  return problem;
}

ReferenceResult evaluate_reference(const Case& c, const Operator& op, const Problem& declared) {
  Problem problem = declared;
  if (c.values == "exact") {
    problem.arithmetic = {};
    problem.adjoint = {};
    problem.adjoint.gate_output_roundoff = declared.adjoint.gate_output_roundoff;
  }
  ReferenceResult result;
  if (runs_forward(c)) result = op.evaluate(problem);
  if (runs_backward(c)) {
    ReferenceResult gradients = op.evaluate_adjoint(problem);
    result.seconds += gradients.seconds;
    std::move(gradients.outputs.begin(), gradients.outputs.end(), std::back_inserter(result.outputs));
  }
  return result;
}

ReferenceResult reference_of(const Case& c, const Kernel& kernel, const Operator& op, const TensorMap& inputs,
                             int threads) {
  return evaluate_reference(c, op, declared_problem(c, kernel, op, inputs, threads));
}

}  // namespace assay
