// Bounds of comba where one error alone is declared, by hand.
#include <gtest/gtest.h>

#include "tests/reference/bounds/one_error.h"

namespace assay {
namespace bounds_comba_test {

constexpr double kError = 0x1p-20;
const Operator& comba() {
  return find_operator("comba");
}

/// One token, two key channels, one value channel: |k| = 1, p = k / 2, beta = 1/2, S_0 = (1, 2).
void fill(HandProblem& p) {
  p.set(comba(), "q", {1, 1}), p.set(comba(), "k", {0.6, 0.8}), p.set(comba(), "v", {5}),
      p.set(comba(), "p", {0.3, 0.4}), p.set(comba(), "g", {0}), p.set(comba(), "beta", {0.5});
  p.set(comba(), "initial_state", {1, 2}), p.set(comba(), "do", {1}), p.set(comba(), "dfinal_state", {2, 1});
  p.problem.scale = 1;
}
Sizes sizes() {
  Sizes s;
  s.K = 2;
  return s;
}
/// The norm of the transition is proved up to 2^-20.
bool close_to(double got, double expected) {
  return std::fabs(got - expected) <= 1e-5 * expected;
}

TEST(CombaBound, of_what_is_written_is_the_length_of_its_column) {
  HandProblem p(sizes());
  fill(p);
  p.problem.arithmetic.write = kError;
  const ReferenceResult y = comba().evaluate(p.problem);
  EXPECT_TRUE(close_to(output_of(y, "final_state").bound[0], kError * 0.5 * 5));
  EXPECT_TRUE(close_to(output_of(y, "o").bound[0], kError * 0.5 * 5 * std::sqrt(2.0)));
}

TEST(CombaBound, of_what_is_removed_is_what_p_may_read) {
  HandProblem p(sizes());
  fill(p);
  p.problem.arithmetic.removal = kError;
  const ReferenceOutput state = output_of(comba().evaluate(p.problem), "final_state");
  EXPECT_TRUE(close_to(state.bound[0], kError * 0.5 * (0.3 + 2 * 0.4))) << state.bound[0];
}

/// Each of them a sum, then the product, per the sum of its terms' magnitudes.
TEST(CombaBound, of_gradients_has_the_inner_sums_error_of_both_sides) {
  HandProblem p(sizes());
  fill(p);
  p.problem.adjoint.inner = kError;
  const ReferenceResult y = comba().evaluate_adjoint(p.problem);
  const ReferenceOutput dbeta = output_of(y, "dbeta"), dp = output_of(y, "dp");
  // r = 5 - (0.3 + 0.8), du = k (dS + q do) = 0.6 * 3 + 0.8 * 2; magnitudes 6.1 and 3.4.
  const double r = 3.9, r_size = 6.1, du = 3.4;
  EXPECT_NEAR(dbeta.mid[0], du * r, 1e-5);
  EXPECT_TRUE(close_to(dbeta.bound[0], du * r_size * (std::pow(1 + kError, 3) - 1))) << dbeta.bound[0];
  // dp = -S beta du: du's sum, the product with beta, dp's own sum.
  EXPECT_NEAR(dp.mid[1], -2 * 0.5 * du, 1e-5);
  EXPECT_TRUE(close_to(dp.bound[1], 2 * 0.5 * du * (std::pow(1 + kError, 2) - 1))) << dp.bound[1];
}

/// With p along k, however the rates are: 40 tokens add 40 errors.
TEST(CombaBound, does_not_grow_where_the_transition_does_not) {
  Sizes s = sizes();
  s.T = 40;
  HandProblem p(s);
  for (const char* name : {"q", "k", "v", "p", "g", "beta"}) p.set(comba(), name, {});
  for (int64_t t = 0; t < s.T; ++t)
    p.inputs.at("k").set(2 * t, 1), p.inputs.at("p").set(2 * t, 0.5), p.inputs.at("beta").set(t, t % 3);
  p.set(comba(), "initial_state", {0, 1});  // orthogonal to what is removed: it stays
  p.problem.arithmetic.step = kError;
  const ReferenceOutput state = output_of(comba().evaluate(p.problem), "final_state");
  EXPECT_NEAR(state.mid[1], 1, 1e-6);
  EXPECT_GT(state.bound[1], 40 * kError);
  EXPECT_LT(state.bound[1], 40 * 3 * kError);
}

}  // namespace bounds_comba_test
}  // namespace assay
