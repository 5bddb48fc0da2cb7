#include "src/base/tensor/tensor_summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace assay {
namespace {

Tensor of(Dtype dtype, const std::vector<double>& values) {
  Tensor tensor("x", dtype, {{"T", static_cast<int64_t>(values.size())}});
  for (size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<int64_t>(i), values[i]);
  return tensor;
}

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(TensorSummary, ClassesAreCountedAndTheirFirstElementsNamed) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16, Dtype::fp64}) {
    const double tiny = min_subnormal(dtype);
    const TensorSummary s = summary_of(of(dtype, {1, kNaN, -3, 0, kInf, -0.0, kNaN, tiny, -kInf, 1.5}));
    EXPECT_EQ(s.elements, 10);
    EXPECT_EQ(s.min, -3) << format(dtype).name;
    EXPECT_EQ(s.max, 1.5);
    EXPECT_EQ(s.nan.count, 2);
    EXPECT_EQ(s.nan.first, 1);
    EXPECT_EQ(s.plus_infinity.first, 4);
    EXPECT_EQ(s.minus_infinity.first, 8);
    EXPECT_EQ(s.zeros, 2);
    EXPECT_EQ(s.subnormals, 1) << format(dtype).name;
    const std::map<int, int64_t> exponents{{std::ilogb(tiny), 1}, {0, 2}, {1, 1}};
    EXPECT_EQ(s.exponents, exponents) << format(dtype).name;
  }
}

TEST(TensorSummary, TheLargestSubnormalAndTheSmallestNormalAreToldApart) {
  const double normal = std::ldexp(1.0, format(Dtype::bf16).min_exponent);
  EXPECT_EQ(summary_of(of(Dtype::bf16, {normal})).subnormals, 0);
  EXPECT_EQ(summary_of(of(Dtype::bf16, {normal - min_subnormal(Dtype::bf16)})).subnormals, 1);
}

TEST(TensorSummary, NothingFiniteAndNothingAtAllHaveNoRange) {
  EXPECT_FALSE(summary_of(of(Dtype::fp32, {kNaN})).min.has_value());
  EXPECT_FALSE(summary_of(of(Dtype::fp32, {})).max.has_value());
  EXPECT_EQ(exponents_text(summary_of(of(Dtype::fp32, {kNaN})), 4), "");
}

TEST(TensorSummary, IntegersHaveARangeAndNoExponents) {
  const TensorSummary s = summary_of(of(Dtype::i64, {0, 15, 100}));
  EXPECT_EQ(s.max, 100);
  EXPECT_TRUE(s.exponents.empty());
  EXPECT_EQ(s.subnormals, 0);
}

TEST(TensorSummary, ExponentsAreGroupedToFewAndAddUpToAll) {
  EXPECT_EQ(exponents_text(summary_of(of(Dtype::fp32, {1, 2, 4, 8})), 8),
            "2^0 25 %, 2^1 25 %, 2^2 25 %, 2^3 25 %");
  EXPECT_EQ(exponents_text(summary_of(of(Dtype::fp32, {1, 2, 4, 8})), 2), "2^0..1 50 %, 2^2..3 50 %");
  EXPECT_EQ(exponents_text(summary_of(of(Dtype::fp32, {1, 0, 4, 4, 16})), 2), "2^0..2 75 %, 2^3..4 25 %");
}

}  // namespace
}  // namespace assay
