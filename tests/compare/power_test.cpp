#include "src/verification/compare/power.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

/// Eight tokens of one channel.
ReferenceOutput eight_tokens(double bound, double late_bound) {
  ReferenceOutput o;
  o.name = "o", o.axes = {{"B", 1}, {"T", 8}, {"H", 1}, {"V", 1}};
  o.mid = {1, -2, 3, -4, 1, -2, 2, 1}, o.rad.assign(8, 0), o.companion.assign(8, 1),
  o.underflow.assign(8, 1e-40);
  o.bound.assign(8, bound);
  o.bound[6] = o.bound[7] = late_bound;
  return o;
}

PowerOutput power(const ReferenceOutput& o, const FormulaOutput* formula = nullptr) {
  Tensor got("o", Dtype::fp32, o.axes);
  for (size_t i = 0; i < 8; ++i) got.set(static_cast<int64_t>(i), o.mid[i]);
  return power_of(got, o, OutputBlocks("o", o.axes, {}), {}, formula);
}

TEST(Power, TheSmallestErrorIsThatOfTheElementWhoseBoundIsTightest) {
  const PowerOutput p = power(eight_tokens(0.1, 0.1));
  EXPECT_DOUBLE_EQ(p.smallest, 0.1 / 4);
  EXPECT_EQ(p.by, "bound");
  EXPECT_DOUBLE_EQ(p.smallest_late, 0.1 / 2);
  EXPECT_FALSE(p.zeros || p.flipped || p.inconclusive);
}

TEST(Power, ZerosThatPassInTheLastQuarterOnlyAreInconclusiveToo) {
  const PowerOutput p = power(eight_tokens(0.1, 2.5));
  EXPECT_FALSE(p.zeros);
  EXPECT_TRUE(p.inconclusive);
  const PowerOutput all = power(eight_tokens(9, 9));
  EXPECT_TRUE(all.zeros && all.flipped && all.inconclusive);
}

TEST(Power, AJudgedFormulaDecides) {
  FormulaOutput formula{.name = "o", .elements = 8, .judged = 8};
  formula.max_allowed = 1e-6;
  const PowerOutput p = power(eight_tokens(9, 9), &formula);
  EXPECT_EQ(p.by, "formula");
  EXPECT_LT(p.smallest, 1e-6);
  EXPECT_FALSE(p.inconclusive);
  formula.judged = 7;  // one element could be anything
  EXPECT_TRUE(power(eight_tokens(9, 9), &formula).inconclusive);
}

TEST(Power, WhatUnderflowMayTakeIsNotAskedFor) {
  ReferenceOutput o = eight_tokens(9, 9);
  o.underflow.assign(8, 5);
  EXPECT_FALSE(power(o).inconclusive);
}

}  // namespace
}  // namespace assay
