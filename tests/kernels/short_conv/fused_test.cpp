#include <gtest/gtest.h>

#include "tests/kernels/elementwise/extreme_inputs.h"
#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace short_conv_fused_test {

constexpr Dtype kDtypes[] = {Dtype::bf16, Dtype::fp16, Dtype::fp32};

struct Shape {
  int64_t B, T, D, K;
};
/// Around the edges of chunks of 64 tokens and blocks of 128 channels; sequences shorter than the filter.
const Shape kShapes[] = {{1, 1, 1, 1},   {1, 0, 8, 4},     {2, 3, 7, 5},   {1, 63, 4, 4},
                         {1, 64, 5, 64}, {2, 65, 129, 17}, {1, 130, 3, 2}, {3, 200, 2, 33}};

Case case_of(const Shape& s, Dtype dtype, uint64_t seed) {
  Case c;
  c.kernel = "short_conv.fused", c.direction = Direction::both;
  c.B = s.B, c.T = s.T, c.V = s.D, c.K = s.K;
  c.dtype = dtype, c.seed = seed;
  c.initial_state = c.final_state_gradient = seed % 4 != 0;
  return c;
}

TEST(ShortConv, StaysWithinTheProvedBoundOnEveryShapeAndFormat) {
  uint64_t seed = 0;
  for (const Shape& shape : kShapes)
    for (const Dtype dtype : kDtypes) expect_within_bound(case_of(shape, dtype, ++seed));
}

TEST(ShortConv, PackedSequencesHaveWindowsOfTheirOwn) {
  Case c = case_of({1, 200, 5, 4}, Dtype::fp32, 1);
  c.cu_seqlens = {0, 0, 2, 66, 67, 200};
  expect_within_bound(c);
}

TEST(ShortConv, IsExactWhereNoOperationRounds) {
  for (const Shape& shape : {Shape{2, 33, 7, 5}, Shape{1, 20, 8, 4}})
    for (const Dtype dtype : kDtypes) {
      Case c = case_of(shape, dtype, 3);
      c.decay = "none", c.values = "exact";
      for (const OutputComparison& output : judged_run(c).outputs) {
        EXPECT_TRUE(output.pass()) << token_of(c) << ": " << output.worst.element;
        EXPECT_EQ(output.worst.bound, 0) << output.name;
      }
    }
}

TEST(ShortConv, WithoutTokensTheStateAndItsGradientPassThrough) {
  const Case c = case_of({2, 0, 3, 4}, Dtype::bf16, 1);
  const TensorMap inputs = draw_inputs(c, find_operator("short_conv"));
  const TensorMap outputs = judged_run(c, inputs, "sm_90").outcome.outputs;
  EXPECT_EQ(outputs.at("final_state").data, inputs.at("initial_state").data);
  EXPECT_EQ(outputs.at("dinitial_state").data, inputs.at("dfinal_state").data);
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(outputs.at("dweight").value(i), 0);
}

TEST(ShortConv, HoldsForTinyAndHugeInputs) {
  for (uint64_t seed = 1; seed <= 30; ++seed)
    expect_judged_at_extremes(case_of({1, 20, 9, 4}, kDtypes[seed % 3], seed));
}

TEST(ShortConv, LongSumsStayPrecise) {
  Case c = case_of({1, 2000, 4, 4}, Dtype::fp32, 1);
  c.values = "positive";
  for (const OutputComparison& output : expect_within_bound(c).outputs)
    if (output.name != "final_state") {
      EXPECT_GE(output.max_tightness, 0.01) << output.name;
    }
}

}  // namespace short_conv_fused_test
}  // namespace assay
