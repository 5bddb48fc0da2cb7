// Every kernel on inputs that are views: the bits of the dense run, no finding of the checks, every origin
// and slice named by the tensor's own elements.
#include <gtest/gtest.h>

#include "fuzz/properties.h"
#include "src/case/layouts.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/verify.h"

namespace assay {
namespace {

/// Sizes with partial chunks, no two alike, both directions where there are two.
Case case_of(const Kernel& kernel, const std::string& layout) {
  const Operator& op = find_operator(kernel.operator_name);
  Case c;
  c.kernel = kernel.name;
  c.B = 2, c.T = 21, c.H = 3, c.K = 12, c.V = 10, c.layout = layout;
  c.dtype = Dtype::bf16, c.gate_dtype = Dtype::fp16;
  for (const ArgumentSpec& input : op.inputs)
    for (const std::string_view axis : input.axes) {
      if (axis == "M") c.M = std::min<int64_t>(9, kernel.limits.max_M);
      if (axis == "HV") c.HV = 3;
    }
  c.direction = directions_of(kernel).back();
  c.initial_state = true, c.final_state_gradient = runs_backward(c);
  return c;
}

class Views : public testing::TestWithParam<std::string> {};

TEST_P(Views, GiveTheBitsOfRowByRowInputsAndPassEveryCheck) {
  const Kernel& kernel = find_kernel(GetParam());
  const auto backend = make_vm_backend({});
  int views = 0;
  for (const LayoutRow& row : layouts()) {
    const Case c = case_of(kernel, std::string(row.name));
    VerifyOptions options;
    options.twice = false, options.checks = {}, options.threads = 2;
    const Verification v = verify(c, kernel, *backend, options);
    EXPECT_EQ(v.verdict, Verdict::pass) << token_of(c) << ": " << v.cause;
    const Operator& op = find_operator(kernel.operator_name);
    const TensorMap inputs = draw_inputs(c, op);
    views += static_cast<int>(program_of(kernel, resolve_unchecked(c, op), inputs).layouts.size());
    for (const PropertyOutcome& outcome :
         check_properties(v, kernel, *backend, {&find_property("strided-equals-dense")}))
      EXPECT_FALSE(outcome.failure) << token_of(c) << ": " << *outcome.failure;
  }
  EXPECT_GE(views, 4);
}

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels()) names.push_back(kernel.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(AllKernels, Views, testing::ValuesIn(kernel_names()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

TEST(ViewsOfAKernel, ANaNIsTracedToTheElementOfTheView) {
  Case c = case_of(find_kernel("gla.fused_recurrent"), "joined,v=transposed");
  c.direction = Direction::forward, c.final_state_gradient = false, c.dtype = Dtype::fp32;
  const Operator& op = find_operator("gla");
  TensorMap inputs = draw_inputs(c, op);
  Tensor& v = inputs.at("v");
  const int64_t flat = v.offset(std::vector<int64_t>{1, 4, 2, 7});
  for (int64_t i = 0; i < v.size(); ++i) v.set(i, i == flat ? 3e38 : 0);
  for (int64_t i = 0; i < inputs.at("k").size(); ++i) inputs.at("k").set(i, 4);
  VerifyOptions options;
  options.inputs = &inputs;
  options.element = {"o", ((1 * c.T + 4) * c.H + 2) * c.V + 7};
  const auto backend = make_vm_backend({});
  const Verification result = verify(c, find_kernel(c.kernel), *backend, options);
  ASSERT_TRUE(result.origin);
  bool named = false;
  for (const InputElement& e : result.origin->inputs) named |= e.element == "v[b=1,t=4,h=2,v=7]";
  EXPECT_TRUE(named) << result.origin->inputs.size();
}

}  // namespace
}  // namespace assay
