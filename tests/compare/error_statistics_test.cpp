#include "src/verification/compare/error_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

/// A reference of the values with radius 0, bound 1/8 and companion 2.
ReferenceOutput reference(std::vector<double> mid) {
  ReferenceOutput r;
  r.name = "o";
  const size_t n = mid.size();
  r.axes = {{"T", static_cast<int64_t>(n)}};
  r.mid = std::move(mid);
  r.rad.assign(n, 0), r.bound.assign(n, 0.125), r.companion.assign(n, 2);
  return r;
}

Tensor values(Dtype dtype, const std::vector<double>& x) {
  Tensor t("o", dtype, {{"T", static_cast<int64_t>(x.size())}});
  for (int64_t i = 0; i < t.size(); ++i) t.set(i, x[static_cast<size_t>(i)]);
  return t;
}

TEST(ErrorStatistics, EqualValuesHaveNoErrorAndKeepTheirSize) {
  const ErrorStatistics s = error_statistics(values(Dtype::fp32, {3, -4}), reference({3, -4}));
  EXPECT_EQ(s.output, "o");
  EXPECT_EQ(s.elements, 2);
  EXPECT_EQ(s.max_error, 0);
  EXPECT_EQ(s.max_ratio, 0);
  EXPECT_EQ(s.max_ulp, 0);
  EXPECT_EQ(s.max_bound, 0.125);
  EXPECT_EQ(s.rms_error, 0);
  EXPECT_EQ(s.rms_exact, std::sqrt(12.5));
}

TEST(ErrorStatistics, MeasuresOneErrorInEveryUnit) {
  // bf16 holds 8 bits: the unit at 1 is 2^-7, at 3 2^-6.
  const ErrorStatistics s =
      error_statistics(values(Dtype::bf16, {1, 3.0625, -1, -1}), reference({1, 3, -1, -1}));
  EXPECT_EQ(s.max_error, 0.0625);
  EXPECT_EQ(s.max_ratio, 0.5);
  EXPECT_EQ(s.max_ulp, 4);
  EXPECT_EQ(s.rms_error, 0.03125);
  EXPECT_EQ(s.bias, 0.015625);
  EXPECT_EQ(s.shrinkage, 0.015625);
}

TEST(ErrorStatistics, SmallerMagnitudesAreShrinkageWhereTheirErrorsCancelInTheBias) {
  const ErrorStatistics shrunk = error_statistics(values(Dtype::fp32, {0.75, -0.75}), reference({1, -1}));
  EXPECT_EQ(shrunk.bias, 0);
  EXPECT_EQ(shrunk.shrinkage, -0.25);
  const ErrorStatistics moved = error_statistics(values(Dtype::fp32, {0.75, -1.25}), reference({1, -1}));
  EXPECT_EQ(moved.bias, -0.25);
  EXPECT_EQ(moved.shrinkage, 0);
}

TEST(ErrorStatistics, NinetyNinePercentOfTheElementsDoNotExceedThePercentile) {
  for (const size_t n : {1u, 99u, 100u, 101u, 200u, 1000u}) {
    std::vector<double> got(n), mid(n, 0);
    for (size_t i = 0; i < n; ++i) got[(i * 7919) % n] = static_cast<double>(i + 1) / 8192;  // a permutation
    const double p99 = error_statistics(values(Dtype::fp32, got), reference(mid)).p99_error;
    size_t within = 0;
    for (const double x : got) within += x <= p99;
    EXPECT_GE(within * 100, n * 99) << n;
    EXPECT_LT((within - 1) * 100, n * 99) << n << ": a smaller value would do";
  }
}

TEST(ErrorStatistics, WhatIsNotFiniteTakesNoPart) {
  const double nan = std::nan("");
  const ErrorStatistics s =
      error_statistics(values(Dtype::fp32, {1.5, nan, HUGE_VAL, 1}), reference({1, 1, 1, nan}));
  EXPECT_EQ(s.elements, 1);
  EXPECT_EQ(s.max_error, 0.5);
  EXPECT_EQ(s.rms_exact, 1);
  const ErrorStatistics none = error_statistics(values(Dtype::fp32, {nan}), reference({1}));
  EXPECT_EQ(none.elements, 0);
  EXPECT_EQ(none.rms_error, 0);
}

TEST(ErrorStatistics, AnErrorBeyondABoundOfZeroHasAnInfiniteRatioAndAnExactElementNone) {
  ReferenceOutput r = reference({1, 2});
  r.bound = {0, 0};
  EXPECT_EQ(error_statistics(values(Dtype::fp32, {1, 2}), r).max_ratio, 0);
  EXPECT_EQ(error_statistics(values(Dtype::fp32, {1, 2.5}), r).max_ratio, HUGE_VAL);
}

TEST(ErrorStatistics, AnElementWithoutABoundCountsByItsErrorAlone) {
  ReferenceOutput r = reference({1, 2});
  r.bound[1] = HUGE_VAL;
  const ErrorStatistics s = error_statistics(values(Dtype::fp32, {1.0625, 2.5}), r);
  EXPECT_EQ(s.max_error, 0.5);
  EXPECT_EQ(s.max_bound, 0.125);
  EXPECT_EQ(s.max_ratio, 0.5);
}

TEST(ErrorStatistics, BeyondTheLargestFiniteNumberTheUnitIsThatOfTheLast) {
  // fp16 ends at 65504, where its unit is 32; the exact value asks for an infinity.
  const ErrorStatistics s = error_statistics(values(Dtype::fp16, {65504}), reference({65504 + 320}));
  EXPECT_EQ(s.max_ulp, 10);
  EXPECT_EQ(s.max_error, 320);
  EXPECT_EQ(s.max_ratio, HUGE_VAL);
}

}  // namespace
}  // namespace assay
