// Bounds of the gated delta product: those of the gated delta rule on its writes, by hand where one error
// alone is declared.
#include <gtest/gtest.h>

#include "tests/reference/bounds/one_error.h"

namespace assay {
namespace bounds_gated_delta_product_test {

constexpr double kError = 0x1p-20;
const Operator& product() {
  return find_operator("gated_delta_product");
}

/// One token of two writes with orthogonal keys, two key channels, one value channel.
void fill(HandProblem& p) {
  p.set(product(), "q", {1, 1}), p.set(product(), "k", {1, 0, 0, 1}), p.set(product(), "v", {5, 7});
  p.set(product(), "g", {0}), p.set(product(), "beta", {0.5, 1}), p.set(product(), "initial_state", {1, 2});
  p.set(product(), "do", {1}), p.set(product(), "dfinal_state", {2, 1});
  p.problem.scale = 1;
}
Sizes sizes(int64_t T = 1) {
  Sizes s;
  s.T = T, s.M = 2, s.K = 2;
  return s;
}
/// The norm of the transition is proved up to 2^-20.
bool close_to(double got, double expected) {
  return std::fabs(got - expected) <= 1e-5 * expected;
}

/// S = (1 + 0.5 (5 - 1), 2 + (7 - 2)) = (3, 7).
TEST(GatedDeltaProductBound, of_what_is_written_adds_up_over_a_tokens_writes) {
  HandProblem p(sizes());
  fill(p);
  p.problem.arithmetic.write = kError;
  const ReferenceResult y = product().evaluate(p.problem);
  EXPECT_EQ(output_of(y, "final_state").mid, (std::vector<double>{3, 7}));
  EXPECT_EQ(output_of(y, "o").mid, std::vector<double>{10});
  // Each write is off by kError of beta k v, 2.5 and 7, in its own direction; bounds are norms, which add.
  EXPECT_TRUE(close_to(output_of(y, "final_state").bound[0], kError * (2.5 + 7)))
      << output_of(y, "final_state").bound[0] / kError;
}

/// Two tokens of two writes are four tokens, of which the first and third decay, the others are read.
TEST(GatedDeltaProductBound, are_those_of_the_rule_that_decays_at_a_tokens_first_write) {
  const Operator& rule = find_operator("gated_delta_rule");
  HandProblem own(sizes(2)), its(sizes(4));
  const std::initializer_list<double> k = {0.6, 0.8, 0, 1, 1, 0, -0.8, 0.6}, v = {5, 7, -1, 3},
                                      beta = {0.5, 1, 2, 1.5};
  for (const auto& [op, p] : {std::pair{&product(), &own}, {&rule, &its}}) {
    p->set(*op, "k", k), p->set(*op, "v", v), p->set(*op, "beta", beta);
    p->set(*op, "initial_state", {1, 2}), p->set(*op, "dfinal_state", {2, 1});
    Arithmetic& a = p->problem.arithmetic;
    a.decay = kError, a.decay_per_nat = 2 * kError, a.write = 3 * kError, a.removal = 5 * kError;
    a.step = 7 * kError, a.readout = 11 * kError;
    AdjointArithmetic& d = p->problem.adjoint;
    d.state = d.adjoint = a, d.inner = kError, d.value_readout = 3 * kError, d.gate_readout = 2 * kError;
  }
  own.set(product(), "q", {1, 2, 3, 4}), own.set(product(), "g", {-1, -2}), own.set(product(), "do", {1, -1});
  its.set(rule, "q", {0, 0, 1, 2, 0, 0, 3, 4}), its.set(rule, "g", {-1, 0, -2, 0});
  its.set(rule, "do", {0, 1, 0, -1});
  const auto compare = [](const ReferenceResult& y, const ReferenceResult& z) {
    for (const ReferenceOutput& out : y.outputs) {
      const ReferenceOutput& of_rule = output_of(z, out.name);
      const size_t n = out.bound.size(), each = of_rule.bound.size() / n, width = n / 2;
      for (size_t i = 0; i < n; ++i) {
        const size_t place = out.name == "dg" ? 0 : each - 1;
        EXPECT_EQ(out.bound[i], of_rule.bound[(i / width * each + place) * width + i % width])
            << out.name << " " << i;
        EXPECT_GT(out.bound[i], 0) << out.name << " " << i;
      }
    }
  };
  compare(product().evaluate(own.problem), rule.evaluate(its.problem));
  compare(product().evaluate_adjoint(own.problem), rule.evaluate_adjoint(its.problem));
}

/// Of each write its own: du = k (dS + q do) = 3 and 2, r = 4 and 5.
TEST(GatedDeltaProductBound, of_rates_gradients_has_the_inner_sums_error_of_each_write) {
  HandProblem p(sizes());
  fill(p);
  p.problem.adjoint.inner = kError;
  const ReferenceResult y = product().evaluate_adjoint(p.problem);
  const ReferenceOutput dbeta = output_of(y, "dbeta");
  EXPECT_EQ(dbeta.mid, (std::vector<double>{12, 10}));
  // r sums magnitudes 5 + 1 and 7 + 2; three roundings: r, du, their product.
  for (size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(close_to(dbeta.bound[i], (i == 0 ? 3 * 6 : 2 * 9) * (std::pow(1 + kError, 3) - 1)))
        << dbeta.bound[i] / kError;
}

}  // namespace bounds_gated_delta_product_test
}  // namespace assay
