// Outputs of nobody's kernel: the reference's own pass, changed ones are found and explained.
#include "src/verification/verify/given_outputs.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "src/verification/verify/reference_run.h"

namespace assay {
namespace {

struct Given {
  Case case_;
  const Kernel& kernel;
  ResolvedCase resolved;
  TensorMap inputs;

  explicit Given(const char* token)
      : case_(parse_token(token)),
        kernel(find_kernel(case_.kernel)),
        resolved(resolve(case_, find_operator(kernel.operator_name))),
        inputs(draw_inputs(resolved)) {}

  /// The reference's midpoints, times `factor`, in a format.
  TensorMap outputs(double factor, Dtype dtype) const {
    const Claim claim = claim_of(kernel, resolved);
    TensorMap made;
    for (const ReferenceOutput& o :
         evaluate_reference(resolved, declared_problem(claim, inputs, 2)).outputs) {
      Tensor& tensor = made[o.name] = Tensor(o.name, dtype, o.axes);
      for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, factor * o.mid[static_cast<size_t>(i)]);
    }
    return made;
  }
  Verification judged(const TensorMap& outputs) const {
    return judge_outputs(case_, kernel, inputs, outputs, {});
  }
};

constexpr const char *kForward = "gla.chunk/B1/T20/H2/K16/V16/fp32/g-fp32/logsigmoid/s3",
                     *kBackward = "gla.chunk/B1/T20/H2/K16/V16/fp32/g-fp32/logsigmoid/s3/backward";

TEST(GivenOutputs, TheReferencesOwnPassInEveryFormat) {
  for (const char* token : {kForward, kBackward})
    for (const Dtype dtype : {Dtype::fp64, Dtype::fp32, Dtype::bf16}) {
      const Given given(token);
      const Verification v = given.judged(given.outputs(1, dtype));
      EXPECT_EQ(v.verdict, Verdict::pass) << token << " " << format(dtype).name << ": " << v.cause;
      EXPECT_EQ(v.outputs.size(), given.resolved.outputs.size());
    }
}

TEST(GivenOutputs, OneWrongElementIsFoundInItsOutput) {
  const Given given(kForward);
  TensorMap outputs = given.outputs(1, Dtype::fp32);
  Tensor& state = outputs.at("final_state");
  state.set(17, state.value(17) + 1);
  const Verification v = given.judged(outputs);
  EXPECT_EQ(v.verdict, Verdict::finding);
  EXPECT_EQ(v.cause, "violation/final_state");
  EXPECT_EQ(v.outputs.at(1).worst.flat, 17);
}

TEST(GivenOutputs, WhatWasComputedInsteadIsNamed) {
  const Given given(kForward);
  TensorMap outputs = given.outputs(4, Dtype::fp32);  // the scale is 1/4
  outputs.erase("final_state");
  const Verification v = given.judged(outputs);
  ASSERT_FALSE(v.diagnosis.empty());
  EXPECT_EQ(v.diagnosis.front().cause, "scale-missing");
}

TEST(GivenOutputs, AKernelThatDeclaresNothingOfTheDirectionIsRefused) {
  const Given given(kBackward);
  Kernel forward_only = given.kernel;
  forward_only.adjoint_arithmetic = nullptr;
  EXPECT_THROW(judge_outputs(given.case_, forward_only, given.inputs, given.outputs(1, Dtype::fp32), {}),
               BadInput);
}

}  // namespace
}  // namespace assay
