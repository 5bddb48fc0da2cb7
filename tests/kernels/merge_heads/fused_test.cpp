#include <gtest/gtest.h>

#include "tests/kernels/elementwise/extreme_inputs.h"
#include "tests/kernels/gla/judged_run.h"

namespace assay {
namespace merge_heads_fused_test {

constexpr Dtype kDtypes[] = {Dtype::bf16, Dtype::fp16, Dtype::fp32};

struct Shape {
  int64_t B, T, H, V, K;
};
/// Around the edges of tiles of 64 x 64 and of 32 places; rows that are no multiple of 2 or 4 elements.
const Shape kShapes[] = {{1, 1, 1, 1, 1},    {1, 0, 2, 8, 4},     {2, 33, 1, 7, 5},    {1, 64, 2, 32, 64},
                         {1, 65, 3, 21, 66}, {1, 130, 5, 30, 18}, {3, 70, 1, 130, 129}};

Case case_of(const Shape& s, Dtype dtype, uint64_t seed) {
  Case c;
  c.kernel = "merge_heads.fused", c.direction = Direction::both;
  c.B = s.B, c.T = s.T, c.H = s.H, c.V = s.V, c.K = s.K;
  c.dtype = dtype, c.seed = seed;
  return c;
}

TEST(MergeHeads, StaysWithinTheProvedBoundOnEveryShapeAndFormat) {
  uint64_t seed = 0;
  for (const Shape& shape : kShapes)
    for (const Dtype dtype : kDtypes) expect_within_bound(case_of(shape, dtype, ++seed));
}

TEST(MergeHeads, IsExactWhereNoOperationRounds) {
  for (const Shape& shape : {Shape{2, 33, 1, 7, 5}, Shape{1, 20, 2, 8, 12}, Shape{1, 65, 3, 5, 7}})
    for (const Dtype dtype : kDtypes) {
      Case c = case_of(shape, dtype, 3);
      c.decay = "none", c.values = "exact";
      for (const OutputComparison& output : judged_run(c).outputs) {
        EXPECT_TRUE(output.pass()) << token_of(c) << ": " << output.worst.element;
        EXPECT_EQ(output.worst.bound, 0) << output.name;
      }
    }
}

TEST(MergeHeads, GradientOfTheWeightIsZeroWhereThereAreNoTokens) {
  const JudgedRun run = judged_run(case_of({1, 0, 2, 8, 4}, Dtype::bf16, 1));
  const Tensor& weight = run.outcome.outputs.at("dweight");
  EXPECT_EQ(weight.size(), 64);
  for (int64_t i = 0; i < weight.size(); ++i) EXPECT_EQ(weight.value(i), 0);
}

TEST(MergeHeads, HoldsForTinyAndHugeInputs) {
  for (uint64_t seed = 1; seed <= 30; ++seed)
    expect_judged_at_extremes(case_of({1, 20, 2, 9, 11}, kDtypes[seed % 3], seed));
}

/// Heads outermost: the elements of one head stay together.
TEST(MergeHeads, ReadsHeadsOutermost) {
  const Case c = case_of({1, 1, 2, 3, 1}, Dtype::fp32, 1);
  TensorMap inputs = draw_inputs(c, find_operator("merge_heads"));
  for (int64_t i = 0; i < 6; ++i) {
    inputs.at("x").set(i, i == 4);  // h = 1, v = 1
    inputs.at("weight").set(i, i);
  }
  EXPECT_EQ(judged_run(c, inputs, "sm_90").outcome.outputs.at("y").value(0), 4);
}

TEST(MergeHeads, LongSumsStayPrecise) {
  for (const Dtype dtype : kDtypes) {
    Case c = case_of({1, 700, 4, 64, 8}, dtype, 1);
    c.values = "positive";
    for (const OutputComparison& output : expect_within_bound(c).outputs)
      if (dtype == Dtype::fp32) {
        EXPECT_GE(output.max_tightness, 0.01) << output.name;
      }
  }
}

}  // namespace merge_heads_fused_test
}  // namespace assay
