// Gradients of the rwkv6 kernels on the machine: of the bonus, and over thousands of tokens.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/gradient_cases.h"

namespace assay {
namespace {

class Rwkv6Gradients : public testing::TestWithParam<std::string> {};

TEST_P(Rwkv6Gradients, StayFiniteAndBoundedOverThousandsOfTokensWithGatesToMinusTenThousand) {
  for (const char* profile : {"extreme", "reset", "spike"}) {
    const JudgedRun judged = expect_within_bound(
        gradient_case(GetParam(), {1, 3072, 1, 16, 16, {}}, Dtype::fp32, Dtype::fp32, profile, 4));
    for (const auto& [name, tensor] : judged.outcome.outputs)
      for (int64_t i = 0; i < tensor.size(); ++i)
        ASSERT_TRUE(std::isfinite(tensor.value(i))) << profile << ' ' << tensor.element_name(i);
  }
}

/// The bonus is shared by all sequences: its gradient is the sum over them, which the others' gradients are
/// not.
TEST_P(Rwkv6Gradients, OfTheBonusAddUpOverSequencesInOneOrder) {
  const Case c = gradient_case(GetParam(), {1, 300, 2, 20, 12, {0, 70, 70, 71, 299, 300}}, Dtype::fp32,
                               Dtype::fp32, "mild", 2);
  const TensorMap inputs = draw_inputs(c, operator_of(c));
  const Outcome first = outcome_of(c, inputs), second = outcome_of(c, inputs);
  EXPECT_EQ(bits_of(first, "du"), bits_of(second, "du"));
  expect_within_bound(c);
}

INSTANTIATE_TEST_SUITE_P(EachMode, Rwkv6Gradients, testing::ValuesIn(kernels_with_gradients({"rwkv6"})),
                         kernel_test_name);

}  // namespace
}  // namespace assay
