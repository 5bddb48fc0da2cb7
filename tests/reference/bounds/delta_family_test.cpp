// Bounds of the delta rules where one error alone is declared, and what the three have in common.
#include <gtest/gtest.h>

#include <map>

#include "tests/reference/bounds/one_error.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace bounds_delta_family_test {

constexpr double kError = 0x1p-20;
const char* const kMembers[] = {"delta_rule", "gated_delta_rule", "kda"};

/// One token, two key channels, one value channel: |k| = 1, beta = 1/2.
void fill(const Operator& op, HandProblem& p) {
  p.set(op, "q", {1, 1}), p.set(op, "k", {0.6, 0.8}), p.set(op, "v", {5}), p.set(op, "beta", {0.5});
  p.set(op, "initial_state", {1, 2}), p.set(op, "do", {1}), p.set(op, "dfinal_state", {2, 1});
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

TEST(DeltaFamilyBound, of_what_is_written_is_the_length_of_its_column) {
  for (const char* member : kMembers) {
    const Operator& op = find_operator(member);
    HandProblem p(sizes());
    fill(op, p);
    p.problem.arithmetic.write = kError;
    const ReferenceResult y = op.evaluate(p.problem);
    const ReferenceOutput& state = output_of(y, "final_state");
    for (const double bound : state.bound)
      EXPECT_TRUE(close_to(bound, kError * 0.5 * 5)) << member << ' ' << bound;
    EXPECT_TRUE(close_to(output_of(y, "o").bound[0], kError * 0.5 * 5 * std::sqrt(2.0))) << member;
  }
}

TEST(DeltaFamilyBound, of_what_is_removed_is_what_the_key_may_read) {
  for (const char* member : kMembers) {
    const Operator& op = find_operator(member);
    HandProblem p(sizes());
    fill(op, p);
    p.problem.arithmetic.removal = kError;
    const ReferenceOutput state = output_of(op.evaluate(p.problem), "final_state");
    EXPECT_TRUE(close_to(state.bound[0], kError * 0.5 * (0.6 + 2 * 0.8))) << member << ' ' << state.bound[0];
  }
}

/// Unit keys, beta up to 2: 40 tokens add 40 errors.
TEST(DeltaFamilyBound, does_not_grow_where_the_transition_does_not) {
  for (const char* member : kMembers) {
    const Operator& op = find_operator(member);
    Sizes s = sizes();
    s.T = 40;
    HandProblem p(s);
    for (const char* name : {"q", "k", "v", "beta"}) p.set(op, name, {});
    for (int64_t t = 0; t < s.T; ++t)
      p.inputs.at("k").set(2 * t, 1), p.inputs.at("beta").set(t, t % 2 == 0 ? 2 : 0.5);
    p.set(op, "initial_state", {0, 1});  // orthogonal to what is removed: it stays
    p.problem.arithmetic.step = kError;
    const ReferenceOutput state = output_of(op.evaluate(p.problem), "final_state");
    EXPECT_NEAR(state.mid[1], 1, 1e-6);
    EXPECT_GT(state.bound[1], 40 * kError) << member;
    EXPECT_LT(state.bound[1], 40 * 3 * kError) << member;
  }
}

/// dbeta = du . r: each of them a sum, then the product, per the sum of its terms' magnitudes.
TEST(DeltaFamilyBound, of_the_rates_gradient_has_the_inner_sums_error_of_both_sides) {
  for (const char* member : kMembers) {
    const Operator& op = find_operator(member);
    HandProblem p(sizes());
    fill(op, p);
    p.problem.adjoint.inner = kError;
    const ReferenceOutput dbeta = output_of(op.evaluate_adjoint(p.problem), "dbeta");
    // r = 5 - (0.6 + 1.6), du = k (dS + q do) = 0.6 * 3 + 0.8 * 2; magnitudes 7.2 and 3.4.
    const double r = 2.8, r_size = 7.2, du = 3.4;
    EXPECT_NEAR(dbeta.mid[0], du * r, 1e-5) << member;
    EXPECT_TRUE(close_to(dbeta.bound[0], du * r_size * (std::pow(1 + kError, 3) - 1)))
        << member << ' ' << dbeta.bound[0];
  }
}

/// kda with the same decay in all key channels is the gated rule, and the gated rule without a gate the plain
/// one: the same bounds.
TEST(DeltaFamilyBound, of_one_rule_written_as_another_is_the_same) {
  const Operator &plain = find_operator("delta_rule"), &gated = find_operator("gated_delta_rule"),
                 &kda = find_operator("kda");
  RandomShape shape;
  shape.T = 20, shape.K = 3, shape.cotangents = true;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    RandomProblem of_heads;
    draw_problem_of(gated, "logsigmoid", shape, seed, of_heads);
    TensorMap channels = of_heads.inputs, none = of_heads.inputs;
    const Tensor& g = of_heads.at("g");
    std::vector<Axis> axes = g.axes;
    axes.push_back({"K", shape.K});
    Tensor wide("g", g.dtype, axes);
    for (int64_t i = 0; i < wide.size(); ++i) wide.set(i, g.value(i / shape.K));
    channels["g"] = wide, none.erase("g");
    const auto bounds = [&](const Operator& op, const TensorMap& inputs, bool adjoint) {
      Problem problem = of_heads.problem;
      problem.inputs = &inputs;
      Arithmetic& a = problem.arithmetic;
      a.write = a.step = a.removal = a.readout = kError, a.decay = kError;
      problem.adjoint.state = problem.adjoint.adjoint = a, problem.adjoint.inner = kError;
      std::map<std::string, std::vector<double>> y;
      for (const ReferenceOutput& out :
           (adjoint ? op.evaluate_adjoint(problem) : op.evaluate(problem)).outputs)
        if (out.name != "dg") y[out.name] = out.bound;
      return y;
    };
    for (const bool adjoint : {false, true}) {
      EXPECT_EQ(bounds(kda, channels, adjoint), bounds(gated, of_heads.inputs, adjoint)) << seed;
      EXPECT_EQ(bounds(gated, none, adjoint), bounds(plain, none, adjoint)) << seed;
    }
  }
}

}  // namespace bounds_delta_family_test
}  // namespace assay
