// Bounds of normalised linear attention where one error alone is declared.
#include <gtest/gtest.h>

#include "tests/reference/bounds/one_error.h"

namespace assay {
namespace bounds_linear_attn_norm_test {

constexpr double kError = 0x1p-20;
const Operator& norm() {
  return find_operator("linear_attn_norm");
}

/// One channel each: o_1 = v_1 = 8, o_2 = (2 v_1 + 3 v_2) / 5 with all weights positive, up to eps.
void fill(HandProblem& p) {
  p.set(norm(), "q", {1, 1}), p.set(norm(), "k", {2, 3}), p.set(norm(), "v", {8, 1});
  p.set(norm(), "do", {1, 2});
}
Sizes sizes() {
  Sizes s;
  s.T = 2;
  return s;
}

TEST(LinearAttnNormBound, of_a_quotient_alone_is_its_share_of_the_output) {
  HandProblem p(sizes());
  fill(p);
  p.problem.arithmetic.divide = kError;
  const ReferenceResult y = norm().evaluate(p.problem);
  const ReferenceOutput& o = output_of(y, "o");
  EXPECT_NEAR(o.mid[1], 19 / 5.0, 1e-9);
  for (size_t t = 0; t < 2; ++t) EXPECT_TRUE(near(o.bound[t], kError * o.mid[t])) << t << " " << o.bound[t];
  for (const char* state : {"final_state", "zt"}) EXPECT_LE(output_of(y, state).bound[0], 1e-200) << state;
}

TEST(LinearAttnNormBound, of_a_readout_counts_numerator_and_denominator) {
  HandProblem p(sizes());
  fill(p);
  p.problem.arithmetic.readout = kError;
  const ReferenceOutput o = output_of(norm().evaluate(p.problem), "o");
  for (size_t t = 0; t < 2; ++t)
    EXPECT_TRUE(near(o.bound[t], 2 * kError * o.mid[t] / (1 - kError))) << t << " " << o.bound[t];
}

TEST(LinearAttnNormBound, is_infinite_where_the_normaliser_may_be_zero) {
  HandProblem p(sizes());
  fill(p);
  p.set(norm(), "k", {2, -2});  // z_2 = 0: d_2 is eps
  p.problem.arithmetic.readout = kError;
  const ReferenceOutput o = output_of(norm().evaluate(p.problem), "o");
  EXPECT_TRUE(std::isfinite(o.bound[0]));
  EXPECT_TRUE(std::isinf(o.bound[1])) << o.bound[1];
}

TEST(LinearAttnNormBound, of_gradients_carries_the_errors_of_the_quotients_into_all_of_them) {
  HandProblem p(sizes());
  fill(p);
  p.problem.adjoint.inner = kError;
  const ReferenceResult y = norm().evaluate_adjoint(p.problem);
  // dv_2 = k_2 q_2 do_2 / d_2: one quotient. dv_1 is a sum of two of them.
  const ReferenceOutput& dv = output_of(y, "dv");
  for (size_t t = 0; t < 2; ++t)
    EXPECT_TRUE(near(dv.bound[t], kError * dv.mid[t])) << t << " " << dv.bound[t];
  for (const char* gradient : {"dq", "dk"})
    EXPECT_GT(output_of(y, gradient).bound[1], kError / 4) << gradient;
}

}  // namespace bounds_linear_attn_norm_test
}  // namespace assay
