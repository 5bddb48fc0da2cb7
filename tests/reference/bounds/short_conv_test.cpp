// Bounds of short_conv where one error alone is declared.
#include <gtest/gtest.h>

#include "tests/reference/bounds/one_error.h"

namespace assay {
namespace bounds_short_conv_test {

constexpr double kError = 0x1p-20;
const Operator& short_conv() {
  return find_operator("short_conv");
}

/// Two tokens of one channel, a filter of width 2: o = (3 * 5 - 4 * 1, 3 * 1 - 4 * 2).
struct TwoTokens : HandProblem {
  static Sizes sizes() {
    Sizes s;
    s.T = s.K = 2;
    return s;
  }
  TwoTokens() : HandProblem(sizes()) {
    set(short_conv(), "x", {1, 2}), set(short_conv(), "weight", {3, -4});
    set(short_conv(), "initial_state", {7, 5});
    set(short_conv(), "do", {-1, 2}), set(short_conv(), "dfinal_state", {10, -20});
  }
};

TEST(ShortConvBound, is_relative_to_the_sum_of_the_windows_magnitudes) {
  TwoTokens p;
  p.problem.arithmetic.readout = kError;
  const ReferenceResult result = short_conv().evaluate(p.problem);
  const ReferenceOutput& o = output_of(result, "o");
  EXPECT_EQ(o.mid, (std::vector<double>{11, -5}));
  EXPECT_TRUE(near(o.bound[0], kError * 19)) << o.bound[0];
  EXPECT_TRUE(near(o.bound[1], kError * 11)) << o.bound[1];
}

TEST(ShortConvBound, of_the_final_state_is_zero_for_it_is_a_copy) {
  TwoTokens p;
  p.problem.arithmetic.readout = kError, p.problem.arithmetic.underflow = 0x1p-126;
  const ReferenceResult result = short_conv().evaluate(p.problem);
  const ReferenceOutput& S = output_of(result, "final_state");
  EXPECT_EQ(S.mid, (std::vector<double>{1, 2}));
  EXPECT_EQ(S.bound, (std::vector<double>{0, 0}));
}

/// dx_1 = 3 do_2 - 4 do_1 + dS_1, dx_2 = -4 do_2 + dS_2; dS_0 = (0, 3 do_1).
TEST(ShortConvBound, of_the_inputs_gradients_counts_later_tokens_and_the_final_states) {
  TwoTokens p;
  p.problem.adjoint.adjoint.readout = kError;
  const ReferenceResult result = short_conv().evaluate_adjoint(p.problem);
  const ReferenceOutput &dx = output_of(result, "dx"), &dS = output_of(result, "dinitial_state");
  EXPECT_EQ(dx.mid, (std::vector<double>{20, -28}));
  EXPECT_TRUE(near(dx.bound[0], kError * 20)) << dx.bound[0];
  EXPECT_TRUE(near(dx.bound[1], kError * 28)) << dx.bound[1];
  EXPECT_EQ(dS.mid, (std::vector<double>{0, -3}));
  EXPECT_EQ(dS.bound[0], 0);
  EXPECT_TRUE(near(dS.bound[1], kError * 3)) << dS.bound[1];
}

/// dw = (5 do_1 + 1 do_2, 1 do_1 + 2 do_2).
TEST(ShortConvBound, of_the_filters_gradient_counts_the_sum_over_all_tokens) {
  TwoTokens p;
  p.problem.adjoint.value_readout = kError, p.problem.adjoint.total = kError;
  const ReferenceResult result = short_conv().evaluate_adjoint(p.problem);
  const ReferenceOutput& dw = output_of(result, "dweight");
  EXPECT_EQ(dw.mid, (std::vector<double>{-3, 3}));
  EXPECT_TRUE(near(dw.bound[0], ((1 + kError) * (1 + kError) - 1) * 7)) << dw.bound[0];
  EXPECT_LE(output_of(result, "dx").bound[0], 1e-200);
}

}  // namespace bounds_short_conv_test
}  // namespace assay
