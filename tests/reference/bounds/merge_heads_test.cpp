// Bounds of merge_heads where one error alone is declared.
#include <gtest/gtest.h>

#include "tests/reference/bounds/one_error.h"

namespace assay {
namespace bounds_merge_heads_test {

constexpr double kError = 0x1p-20;
const Operator& merge_heads() {
  return find_operator("merge_heads");
}

/// Two tokens, two heads of one channel each, one column: y = 3 x_0 - 4 x_1.
void fill(HandProblem& p) {
  p.set(merge_heads(), "x", {1, 2, -5, 6}), p.set(merge_heads(), "weight", {3, -4}),
      p.set(merge_heads(), "dy", {1, 2});
}
Sizes sizes() {
  Sizes s;
  s.T = 2, s.H = s.HV = 2;
  return s;
}

TEST(MergeHeadsBound, is_relative_to_the_sum_of_the_terms_magnitudes) {
  HandProblem p(sizes());
  fill(p);
  p.problem.arithmetic.readout = kError;
  const ReferenceResult result = merge_heads().evaluate(p.problem);
  const ReferenceOutput& y = output_of(result, "y");
  EXPECT_EQ(y.mid[0], 3 - 8);
  EXPECT_TRUE(near(y.bound[0], kError * 11)) << y.bound[0];
  EXPECT_TRUE(near(y.bound[1], kError * 39)) << y.bound[1];
}

TEST(MergeHeadsBound, of_the_weights_gradient_counts_the_sum_over_all_tokens) {
  HandProblem p(sizes());
  fill(p);
  p.problem.adjoint.value_readout = kError, p.problem.adjoint.total = kError;
  const ReferenceResult result = merge_heads().evaluate_adjoint(p.problem);
  const ReferenceOutput& dW = output_of(result, "dweight");
  EXPECT_EQ(dW.mid[0], 1 - 10);
  EXPECT_TRUE(near(dW.bound[0], ((1 + kError) * (1 + kError) - 1) * 11)) << dW.bound[0];
  EXPECT_LE(output_of(result, "dx").bound[0], 1e-200);
}

}  // namespace bounds_merge_heads_test
}  // namespace assay
