#include "src/verification/verify/expected_values.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace expected_values_test {

Tensor tensor(const std::vector<double>& values, Dtype dtype = Dtype::fp32) {
  Tensor t("o", dtype, {{"n", static_cast<int64_t>(values.size())}});
  for (size_t i = 0; i < values.size(); ++i) t.set(static_cast<int64_t>(i), values[i]);
  return t;
}
OutputComparison held(const std::vector<double>& got, const std::vector<double>& right, double tolerance) {
  Verification v;
  hold_against_expected({{"o", tensor(got)}}, {{"o", tensor(right)}}, tolerance, v);
  return v.outputs.at(0);
}

TEST(ExpectedValues, WithoutAToleranceEveryBitCounts) {
  EXPECT_EQ(held({1, 2}, {1, 2}, 0).ok, 2);
  EXPECT_EQ(held({1, 2}, {1, 2 + 0x1p-22}, 0).violation, 1);
  EXPECT_EQ(held({-0.0}, {0.0}, 0).violation, 1);
  EXPECT_EQ(held({NAN}, {NAN}, 0).ok, 1);
}

TEST(ExpectedValues, AToleranceIsOfTheElementAndOfTheTensor) {
  // rms of {3, 4, 0} is 5 / sqrt(3) = 2.887.
  EXPECT_EQ(held({3, 4, 0.28}, {3, 4, 0}, 0.1).ok, 3);
  EXPECT_EQ(held({3, 4, 0.29}, {3, 4, 0}, 0.1).violation, 1);
  EXPECT_EQ(held({3, 4.68, 0}, {3, 4, 0}, 0.1).ok, 3);
  EXPECT_EQ(held({3, 4.69, 0}, {3, 4, 0}, 0.1).violation, 1);
  EXPECT_EQ(held({3, 9, 0}, {3, 4, 0}, 0.1).worst.flat, 1);
}

TEST(ExpectedValues, ClassesComeBeforeSizes) {
  const double inf = INFINITY;
  EXPECT_EQ(held({NAN, 1}, {1, 1}, 9).nonfinite, 1);
  EXPECT_EQ(held({1, 1}, {inf, 1}, 9).wrong_class, 1);
  EXPECT_EQ(held({-inf, 1}, {inf, 1}, 9).wrong_class, 1);
  EXPECT_EQ(held({inf, 1}, {inf, 1}, 0.1).ok, 2);
}

TEST(ExpectedValues, TensorsThatDoNotFitAreBadInput) {
  Verification v;
  EXPECT_THROW(hold_against_expected({{"o", tensor({1})}}, {{"y", tensor({1})}}, 0, v), BadInput);
  EXPECT_THROW(hold_against_expected({{"o", tensor({1})}}, {{"o", tensor({1, 2})}}, 0, v), BadInput);
}

}  // namespace expected_values_test
}  // namespace assay
