// Bounds of l2norm where one error alone is declared.
#include "reference/operators/l2norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/reference/bounds/one_error.h"

namespace assay {
namespace bounds_l2norm_test {

constexpr double kError = 0x1p-20;
const Operator& l2norm() {
  return find_operator("l2norm");
}

/// One token of two channels: |x| = 5, y = (3, -4) / 5 but for eps.
struct OneToken : HandProblem {
  static Sizes sizes() {
    Sizes s;
    s.T = 1, s.K = 2;
    return s;
  }
  explicit OneToken(double length = 1) : HandProblem(sizes()) {
    set(l2norm(), "x", {3 * length, -4 * length}), set(l2norm(), "dy", {10, 5});
  }
};

TEST(L2NormBound, is_relative_to_every_element) {
  OneToken p;
  p.problem.arithmetic.readout = kError;
  const ReferenceResult result = l2norm().evaluate(p.problem);
  const ReferenceOutput& y = output_of(result, "y");
  const double r = 1 / std::sqrt(25 + L2Norm::epsilon);
  EXPECT_NEAR(y.mid[0], 3 * r, 1e-15);
  EXPECT_NEAR(y.mid[1], -4 * r, 1e-15);
  EXPECT_TRUE(near(y.bound[0], kError * 3 * r)) << y.bound[0];
  EXPECT_TRUE(near(y.bound[1], kError * 4 * r)) << y.bound[1];
}

/// y . dy = (30 - 20) r: dx = r (dy - y (y . dy)), where the sum's terms are 50 r.
TEST(L2NormBound, of_the_gradient_counts_both_terms_before_they_cancel) {
  OneToken p;
  p.problem.adjoint.adjoint.readout = kError;
  const ReferenceResult result = l2norm().evaluate_adjoint(p.problem);
  const ReferenceOutput& dx = output_of(result, "dx");
  const double r = 1 / std::sqrt(25 + L2Norm::epsilon);
  EXPECT_NEAR(dx.mid[0], r * (10 - 3 * r * 10 * r), 1e-14);
  EXPECT_NEAR(dx.mid[1], r * (5 + 4 * r * 10 * r), 1e-14);
  EXPECT_TRUE(near(dx.bound[0], kError * r * (10 + 3 * r * 50 * r))) << dx.bound[0];
  EXPECT_TRUE(near(dx.bound[1], kError * r * (5 + 4 * r * 50 * r))) << dx.bound[1];
}

TEST(L2NormBound, is_none_where_the_square_overflows_fp32) {
  OneToken p(0x1p63);
  p.problem.arithmetic.readout = kError;
  const ReferenceResult result = l2norm().evaluate(p.problem);
  EXPECT_TRUE(std::isinf(output_of(result, "y").bound[0]));
}

}  // namespace bounds_l2norm_test
}  // namespace assay
