#include "src/verification/compare/formula.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace assay {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Four elements, exact results 1, 2, 3, 4 with radius 1e-12.
ReferenceOutput four_elements() {
  ReferenceOutput o;
  o.name = "o";
  o.axes = {{"T", 4}};
  o.mid = {1, 2, 3, 4}, o.rad.assign(4, 1e-12), o.bound.assign(4, 10), o.companion.assign(4, 1);
  return o;
}
const Tensor kLike("o", Dtype::bf16, {{"T", 4}});

TEST(Formula, AFaultFarBelowTheBoundIsSeen) {
  const FormulaOutput right =
      compare_formula(kLike, {{1, 2, 3, 4}, {1e-9, 1e-9, 1e-9, 1e-9}}, four_elements());
  EXPECT_EQ(right.judged, 4);
  EXPECT_EQ(right.violation, 0);
  const FormulaOutput wrong =
      compare_formula(kLike, {{1, 2, 3 + 3e-7, 4}, {1e-9, 1e-9, 1e-9, 1e-9}}, four_elements());
  EXPECT_EQ(wrong.violation, 1);
  EXPECT_EQ(wrong.worst.element, "o[t=2]");
  const double size = std::sqrt(30.0 / 4);
  EXPECT_DOUBLE_EQ(wrong.worst.allowed, 1e-9 + 1e-12 + (3 + 3e-7) * (0x1p-53 + 0x1p-44));
  EXPECT_NEAR(wrong.max_difference, 3e-7 / size, 1e-15);
  EXPECT_DOUBLE_EQ(wrong.max_allowed, (1e-9 + 1e-12 + 4 * (0x1p-53 + 0x1p-44)) / size);
}

TEST(Formula, SlackAndRadiusAreAllowed) {
  EXPECT_EQ(compare_formula(kLike, {{1, 2, 3 + 3e-7, 4}, {0, 0, 3.1e-7, 0}}, four_elements()).violation, 0);
  EXPECT_EQ(compare_formula(kLike, {{1 + 0.9e-12, 2, 3, 4}, {0, 0, 0, 0}}, four_elements()).violation, 0);
  EXPECT_EQ(compare_formula(kLike, {{1 + 2.1e-12, 2, 3, 4}, {0, 0, 0, 0}}, four_elements()).violation, 1);
}

/// Both are doubles; hundreds of equal roundings may add up.
TEST(Formula, WhatDoublesMakeOfAnOutputsSizeIsAllowed) {
  ReferenceOutput enclosed = four_elements();
  enclosed.rad.assign(4, 0);
  const double unit = 0x1p-44 * size_of(enclosed);
  const auto violations = [&](double off, double of_largest) {
    return compare_formula(kLike, {{1 + off * unit, 2, 3, 4 + of_largest * 0x1p-42}, {0, 0, 0, 0}}, enclosed)
        .violation;
  };
  EXPECT_EQ(violations(0.99, 0), 0);
  EXPECT_EQ(violations(1.01, 0), 1);
  EXPECT_EQ(violations(0, 0.99), 0);  // the largest is more than the root mean square
  EXPECT_EQ(violations(0, 1.01), 1);
}

TEST(Formula, WhatNoShadowFollowsIsCountedAndNotJudged) {
  const FormulaOutput o =
      compare_formula(kLike, {{std::nan(""), 7, 3, 4}, {0, kInfinity, 0, 0}}, four_elements());
  EXPECT_EQ(o.elements, 4);
  EXPECT_EQ(o.judged, 2);
  EXPECT_EQ(o.violation, 0);
}

}  // namespace
}  // namespace assay
