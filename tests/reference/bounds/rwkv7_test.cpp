// Bounds of rwkv7 where one error alone is declared.
#include <gtest/gtest.h>

#include "tests/reference/bounds/one_error.h"

namespace assay {
namespace bounds_rwkv7_test {

constexpr double kError = 0x1p-20;
const Operator& rwkv7() {
  return find_operator("rwkv7");
}

/// One token, two key channels, one value channel; S_0 = (1, 2), a = (3, 4) / 5, b = -a / 2.
void fill(HandProblem& p) {
  p.set(rwkv7(), "r", {1, 1}), p.set(rwkv7(), "w", {0, 0}), p.set(rwkv7(), "k", {6, 8}),
      p.set(rwkv7(), "v", {5});
  p.set(rwkv7(), "a", {0.6, 0.8}), p.set(rwkv7(), "b", {-0.3, -0.4});
  p.set(rwkv7(), "initial_state", {1, 2}), p.set(rwkv7(), "do", {1}), p.set(rwkv7(), "dfinal_state", {2, 1});
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

TEST(Rwkv7Bound, of_what_is_written_is_the_length_of_its_column) {
  HandProblem p(sizes());
  fill(p);
  p.problem.arithmetic.write = kError;
  const ReferenceResult y = rwkv7().evaluate(p.problem);
  for (size_t c = 0; c < 2; ++c)
    EXPECT_TRUE(close_to(output_of(y, "final_state").bound[c], kError * 10 * 5))
        << output_of(y, "final_state").bound[c];
  EXPECT_TRUE(close_to(output_of(y, "o").bound[0], kError * 10 * 5 * std::sqrt(2.0)))
      << output_of(y, "o").bound[0];
}

TEST(Rwkv7Bound, of_what_is_removed_is_the_length_of_b_times_what_a_may_read) {
  HandProblem p(sizes());
  fill(p);
  p.problem.arithmetic.removal = kError;
  const ReferenceResult y = rwkv7().evaluate(p.problem);
  EXPECT_TRUE(close_to(output_of(y, "final_state").bound[0], kError * 0.5 * (0.6 + 2 * 0.8)))
      << output_of(y, "final_state").bound[0];
}

/// A removal that opposes what it reads never lengthens an error: 40 tokens add 40 of them, not 1.5^40.
TEST(Rwkv7Bound, does_not_grow_where_the_transition_does_not) {
  Sizes s = sizes();
  s.T = 40;
  HandProblem p(s);
  for (const char* name : {"r", "w", "k", "v", "a", "b"}) p.set(rwkv7(), name, {});
  for (int64_t t = 0; t < s.T; ++t) {
    p.inputs.at("a").set(2 * t, 0.6), p.inputs.at("a").set(2 * t + 1, 0.8);
    p.inputs.at("b").set(2 * t, -0.6 * 0.5), p.inputs.at("b").set(2 * t + 1, -0.8 * 0.5);
  }
  p.set(rwkv7(), "initial_state", {0.8, -0.6});  // orthogonal to what is removed: it stays
  p.problem.arithmetic.step = kError;
  const ReferenceOutput state = output_of(rwkv7().evaluate(p.problem), "final_state");
  EXPECT_NEAR(state.mid[0], 0.8, 1e-6);
  EXPECT_GT(state.bound[0], 40 * kError);
  EXPECT_LT(state.bound[0], 40 * 3 * kError);
}

TEST(Rwkv7Bound, is_infinite_where_states_leave_the_range_of_fp32) {
  Sizes s = sizes();
  s.T = 160;
  HandProblem p(s);
  for (const char* name : {"r", "w", "k", "v", "a", "b"}) p.set(rwkv7(), name, {});
  for (int64_t t = 0; t < s.T; ++t) p.inputs.at("a").set(2 * t, 1), p.inputs.at("b").set(2 * t, 1);
  p.set(rwkv7(), "initial_state", {1, 1});  // doubles at every token
  p.problem.arithmetic.step = kError;
  const ReferenceOutput state = output_of(rwkv7().evaluate(p.problem), "final_state");
  EXPECT_TRUE(std::isinf(state.bound[0])) << state.bound[0];
  EXPECT_FALSE(state.undecided.empty());
}

TEST(Rwkv7Bound, of_gradients_carries_the_inner_sums_error_into_those_of_a_and_b) {
  HandProblem p(sizes());
  fill(p);
  p.problem.adjoint.inner = kError;
  const ReferenceResult y = rwkv7().evaluate_adjoint(p.problem);
  // da = S_0 (G^T b), G = dS + r do = (3, 2): the sum, then the product.
  const ReferenceOutput& da = output_of(y, "da");
  EXPECT_NEAR(da.mid[1], 2 * (-0.9 - 0.8), 1e-6);
  EXPECT_TRUE(close_to(da.bound[1], 2 * 1.7 * ((1 + kError) * (1 + kError) - 1))) << da.bound[1];
  EXPECT_LE(output_of(y, "dk").bound[0], 1e-200);
}

}  // namespace bounds_rwkv7_test
}  // namespace assay
