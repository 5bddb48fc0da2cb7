// Gradients of the simple_gla kernels on the machine: of one decay per head, and of a kernel in one pass
// beside that in chunks.
#include <gtest/gtest.h>

#include "tests/kernels/gradient_cases.h"

namespace assay {
namespace {

class SimpleGlaGradientsCampaign : public testing::TestWithParam<std::string> {};

TEST_P(SimpleGlaGradientsCampaign, StayWithinTheProvedBoundOnEveryProfileOfAGatePerHead) {
  for (uint64_t seed = 0; seed < gradient_cases; ++seed) {
    Case c = gradient_case(GetParam(), seed);
    c.without = {"g"};
    const JudgedRun run = expect_within_bound(c);
    EXPECT_TRUE(run.outcome.outputs.contains("dg_gamma")) << token_of(c);
  }
}

TEST_P(SimpleGlaGradientsCampaign, AreTheSameBitsWithoutAGateAsWithZeros) {
  for (const Dtype dtype : gradient_dtypes) {
    Case with = gradient_case(GetParam(), {1, 150, 1, 24, 40, {}}, dtype, Dtype::bf16, "none", 2),
         without = with;
    without.without = {"g", "g_gamma"};
    const JudgedRun a = judged_run(with), b = judged_run(without);
    for (const char* output : {"dq", "dk", "dv", "dinitial_state"})
      EXPECT_EQ(bits_of(a.outcome, output), bits_of(b.outcome, output)) << output << ' ' << token_of(with);
  }
}

INSTANTIATE_TEST_SUITE_P(EachMode, SimpleGlaGradientsCampaign,
                         testing::ValuesIn(kernels_with_gradients({"simple_gla"})), kernel_test_name);

TEST(FusedChunkGradients, HaveTheBitsOfTheChunkedKernel) {
  for (const Dtype dtype : gradient_dtypes) {
    const Case fused =
        gradient_case("simple_gla.fused_chunk", {1, 130, 2, 24, 40, {}}, dtype, Dtype::bf16, "logsigmoid", 4);
    Case chunked = fused;
    chunked.kernel = "simple_gla.chunk";
    const TensorMap inputs = draw_inputs(fused, operator_of(fused));
    const Outcome a = outcome_of(fused, inputs), b = outcome_of(chunked, inputs);
    for (const auto& [name, tensor] : a.outputs) EXPECT_EQ(tensor.data, b.outputs.at(name).data) << name;
  }
}

}  // namespace
}  // namespace assay
