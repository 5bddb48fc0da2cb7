// Bounds of gated slot attention where one error alone is declared.
#include <gtest/gtest.h>

#include "tests/reference/bounds/one_error.h"

namespace assay {
namespace {

constexpr double kError = 0x1p-20;
/// The model's exponential has an error of its own, far below what is declared here.
bool close_to(double got, double expected) {
  return std::fabs(got - expected) <= 1e-4 * expected;
}
const Operator& gsa() {
  return find_operator("gsa");
}

/// One token, two slots, all else of size one: y = (2, 4), p = softmax(y), Hv = (3, 6).
void fill(HandProblem& p) {
  p.set(gsa(), "q", {2}), p.set(gsa(), "k", {1}), p.set(gsa(), "v", {3}), p.set(gsa(), "s", {1, 2});
  p.set(gsa(), "g", {0, 0}), p.set(gsa(), "do", {1});
  p.problem.scale = 1;
}
Sizes sizes() {
  Sizes s;
  s.M = 2;
  return s;
}
double late_weight() {
  return 1 / (1 + std::exp(-2.0));
}

TEST(GsaBound, of_the_readout_is_relative_to_the_weighed_slots) {
  HandProblem p(sizes());
  fill(p);
  p.problem.arithmetic.readout = kError;
  const ReferenceOutput o = output_of(gsa().evaluate(p.problem), "o");
  EXPECT_NEAR(o.mid[0], 3 + 3 * late_weight(), 1e-12);
  EXPECT_TRUE(close_to(o.bound[0], kError * o.mid[0])) << o.bound[0];
}

/// o = 3 + 3 p_2, and p_2 moves by p_1 p_2 (eta_1 + eta_2), eta = error |y|.
TEST(GsaBound, of_the_logits_goes_through_the_softmax) {
  HandProblem p(sizes());
  fill(p);
  p.problem.arithmetic.logits = kError;
  const ReferenceOutput o = output_of(gsa().evaluate(p.problem), "o");
  const double w = late_weight(), expected = 3 * w * (1 - w) * (2 + 4) * kError;
  EXPECT_TRUE(close_to(o.bound[0], expected)) << o.bound[0] << " " << expected;
}

/// However far off the logits, weights are shares: o lies between 3 and 6, no farther than from 3.
TEST(GsaBound, of_logits_that_say_nothing_is_all_that_is_weighed) {
  for (const double error : {1e2, 1e4}) {
    HandProblem p(sizes());
    fill(p);
    p.problem.arithmetic.logits = error;
    const ReferenceOutput o = output_of(gsa().evaluate(p.problem), "o");
    EXPECT_TRUE(close_to(o.bound[0], 3 * late_weight())) << o.bound[0];
  }
}

/// y = (2, 32): p_1 is e^-30, and an error of a whole unit in y hardly moves any weight.
TEST(GsaBound, of_logits_vanishes_where_one_slot_has_all_the_weight) {
  HandProblem p(sizes());
  fill(p);
  p.set(gsa(), "s", {1, 16});
  p.problem.arithmetic.logits = 0x1p-5;
  const ReferenceOutput o = output_of(gsa().evaluate(p.problem), "o");
  EXPECT_LE(o.bound[0], 1e-10);
  EXPECT_GE(o.bound[0], 45 * (std::exp(-28.95) - std::exp(-30)));
}

/// y = (2, 2 s): p_1 is a number without digits, or 0, and yet a kernel whose logits are off by themselves
/// may give it 1 / (1 + e^-4) of the weight, and Hv_1 = 3 where o = 3 s.
TEST(GsaBound, of_a_weight_that_no_double_holds_is_all_that_is_weighed) {
  for (const double s : {300.0, 371.0, 1000.0}) {
    HandProblem p(sizes());
    fill(p);
    p.set(gsa(), "s", {1, s});
    p.problem.arithmetic.logits = 1;
    const ReferenceOutput o = output_of(gsa().evaluate(p.problem), "o");
    EXPECT_GE(o.bound[0], (3 * s - 3) / (1 + std::exp(-4.0))) << s;
    EXPECT_LE(o.bound[0], (3 * s - 3) * (1 + 1e-4)) << s;
  }
}

TEST(GsaBound, of_the_quotient_is_relative_to_every_weight) {
  HandProblem p(sizes());
  fill(p);
  p.problem.arithmetic.divide = kError;
  const ReferenceOutput o = output_of(gsa().evaluate(p.problem), "o");
  EXPECT_TRUE(close_to(o.bound[0], kError * o.mid[0])) << o.bound[0];
}

TEST(GsaBound, of_gradients_has_each_readout_where_it_belongs) {
  HandProblem p(sizes());
  fill(p);
  p.problem.adjoint.value_readout = kError;
  const ReferenceResult y = gsa().evaluate_adjoint(p.problem);
  const ReferenceOutput& dv = output_of(y, "dv");
  EXPECT_TRUE(close_to(dv.bound[0], kError * dv.mid[0])) << dv.bound[0];
  EXPECT_LE(output_of(y, "dq").bound[0], 1e-4 * kError);
}

}  // namespace
}  // namespace assay
