// One case on the machine, judged against the proved reference: what the tests of the kernels' sources share.
#pragma once
#include <gtest/gtest.h>

#include "kernels/kernel.h"
#include "src/base/vm/machine.h"
#include "src/case/case.h"
#include "src/verification/compare/compare.h"

namespace assay {

struct JudgedRun {
  Outcome outcome;
  std::vector<OutputComparison> outputs;
};

/// Inputs of the test's own in place of the drawn ones.
inline JudgedRun judged_run(const Case& c, const TensorMap& inputs, const std::string& arch) {
  const Kernel& kernel = find_kernel(c.kernel);
  const Operator& op = find_operator(kernel.operator_name);
  const ResolvedCase resolved = resolve_unchecked(c, op);
  JudgedRun run;
  vm::MachineOptions options;
  options.arch = arch;
  run.outcome = vm::run(kernel.plan(resolved, inputs), inputs, options);
  EXPECT_FALSE(run.outcome.trap) << token_of(c) << ": " << run.outcome.trap->message;
  if (run.outcome.trap) return run;

  Problem problem;
  problem.sizes = sizes_of(c);
  problem.cu_seqlens = c.cu_seqlens;
  problem.scale = scale_of(c, op);
  problem.inputs = &inputs;
  problem.parameters = c.parameters;
  if (c.values != "exact") problem.arithmetic = kernel.arithmetic(resolved);
  problem.threads = 2;
  const auto judge_all = [&](const ReferenceResult& reference) {
    for (const ReferenceOutput& expected : reference.outputs)
      run.outputs.push_back(compare_output(run.outcome.outputs.at(expected.name), expected));
  };
  if (runs_forward(c)) judge_all(op.evaluate(problem));
  if (!runs_backward(c)) return run;
  problem.adjoint.gate_output_roundoff = unit_roundoff(c.gate_dtype);
  if (c.values != "exact") problem.adjoint = kernel.adjoint_arithmetic(resolved);
  judge_all(op.evaluate_adjoint(problem));
  return run;
}
inline JudgedRun judged_run(const Case& c) {
  return judged_run(c, draw_inputs(c, find_operator(find_kernel(c.kernel).operator_name)), "sm_90");
}

/// Runs the case and expects every element within the bound and every exponent at most 0.
inline JudgedRun expect_within_bound(const Case& c) {
  JudgedRun run = judged_run(c);
  for (const OutputComparison& output : run.outputs)
    EXPECT_TRUE(output.pass()) << token_of(c) << ": " << output.worst.element << " got " << output.worst.got
                               << " expected " << output.worst.expected << " bound " << output.worst.bound;
  for (const ExponentRange& range : run.outcome.exponents)
    EXPECT_LE(range.max, 0) << token_of(c) << ": " << range.where.file << ":" << range.where.line;
  return run;
}

/// Bit patterns of an output.
inline const std::vector<std::byte>& bits_of(const Outcome& outcome, const std::string& output) {
  return outcome.outputs.at(output).data;
}

}  // namespace assay
