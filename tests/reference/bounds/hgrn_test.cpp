// Bounds of hgrn where one error alone is declared.
#include <gtest/gtest.h>

#include "tests/reference/bounds/one_error.h"

namespace assay {
namespace bounds_hgrn_test {

constexpr double kError = 0x1p-20;
const Operator& hgrn() {
  return find_operator("hgrn");
}

/// x = 1, 2, 4 through a channel that decays by e^{-1} from token to token.
void fill(HandProblem& p) {
  p.set(hgrn(), "x", {1, 2, 4}), p.set(hgrn(), "g", {-1, -1, -1});
  p.set(hgrn(), "do", {1, 1, 1});
}
Sizes sizes() {
  Sizes s;
  s.T = 3;
  return s;
}

TEST(HgrnBound, is_the_readouts_error_of_every_state) {
  HandProblem p(sizes());
  fill(p);
  p.problem.arithmetic.readout = kError;
  const ReferenceResult y = hgrn().evaluate(p.problem);
  const ReferenceOutput& o = output_of(y, "o");
  for (size_t t = 0; t < 3; ++t) EXPECT_TRUE(near(o.bound[t], kError * o.mid[t])) << t << " " << o.bound[t];
  EXPECT_LE(output_of(y, "final_state").bound[0], 1e-200);
}

TEST(HgrnBound, counts_a_step_for_every_token_that_a_term_lives_through) {
  HandProblem p(sizes());
  fill(p);
  p.problem.arithmetic.step = kError;
  const double grown = 1 + kError;
  const double expected =
      std::exp(-2) * (grown * grown * grown - 1) + 2 * std::exp(-1) * (grown * grown - 1) + 4 * kError;
  const ReferenceResult y = hgrn().evaluate(p.problem);
  EXPECT_TRUE(near(output_of(y, "final_state").bound[0], expected)) << output_of(y, "final_state").bound[0];
}

TEST(HgrnBound, counts_a_decay_for_every_crossing_and_none_for_the_newest_term) {
  HandProblem p(sizes());
  fill(p);
  p.problem.arithmetic.decay = kError;
  const double expected = std::exp(-2) * ((1 + kError) * (1 + kError) - 1) + 2 * std::exp(-1) * kError;
  const ReferenceResult y = hgrn().evaluate(p.problem);
  EXPECT_TRUE(near(output_of(y, "o").bound[2], expected)) << output_of(y, "o").bound[2];
  EXPECT_LE(output_of(y, "o").bound[0], 1e-200);
}

TEST(HgrnBound, of_gradients_has_the_readouts_of_the_adjoint_and_of_the_gate) {
  HandProblem p(sizes());
  fill(p);
  p.problem.adjoint.adjoint.readout = kError, p.problem.adjoint.gate_readout = 2 * kError;
  const ReferenceResult y = hgrn().evaluate_adjoint(p.problem);
  const ReferenceOutput &dx = output_of(y, "dx"), &dg = output_of(y, "dg");
  for (size_t t = 0; t < 3; ++t) {
    EXPECT_TRUE(near(dx.bound[t], kError * dx.mid[t])) << t;
    EXPECT_TRUE(near(dg.bound[t], 2 * kError * dg.mid[t])) << t << " " << dg.bound[t] << " " << dg.mid[t];
  }
}

}  // namespace bounds_hgrn_test
}  // namespace assay
