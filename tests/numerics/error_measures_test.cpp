#include "src/numerics/error_measures.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/numerics/rounding.h"

namespace assay {
namespace {

TEST(ErrorMeasures, are_zero_for_equal_values_and_count_ulps_of_the_format) {
  const ErrorMeasures equal = measure_error(Dtype::bf16, 1.5, 1.5);
  EXPECT_EQ(equal.absolute, 0);
  EXPECT_EQ(equal.ulps, 0);
  const ErrorMeasures one = measure_error(Dtype::bf16, 1 + 0x1p-7, 1);
  EXPECT_EQ(one.ulps, 1);
  EXPECT_EQ(one.relative, 0x1p-7);
  EXPECT_EQ(measure_error(Dtype::fp16, 0x1p-24, 0).ulps, 1);
  EXPECT_TRUE(std::isinf(measure_error(Dtype::fp16, 0x1p-24, 0).relative));
}

TEST(ErrorMeasures, let_no_nan_or_infinity_pass_as_near) {
  EXPECT_TRUE(std::isnan(measure_error(Dtype::fp32, NAN, 1).absolute));
  EXPECT_TRUE(std::isnan(measure_error(Dtype::fp32, 1, NAN).ulps));
  EXPECT_TRUE(std::isinf(measure_error(Dtype::fp32, HUGE_VAL, 1).absolute));
  EXPECT_TRUE(std::isinf(measure_error(Dtype::fp32, HUGE_VAL, -HUGE_VAL).absolute));
  EXPECT_EQ(measure_error(Dtype::fp32, HUGE_VAL, HUGE_VAL).absolute, 0);
}

TEST(ErrorMeasures, distance_to_an_enclosure_is_zero_inside_it) {
  EXPECT_EQ(distance_to_enclosure(1.25, 1, 0.5), 0);
  EXPECT_EQ(distance_to_enclosure(2, 1, 0.5), 0.5);
  EXPECT_EQ(distance_to_enclosure(0, 1, 0.5), 0.5);
  EXPECT_TRUE(std::isnan(distance_to_enclosure(NAN, 1, 0.5)));
}

TEST(Gamma, bounds_products_of_roundings_and_is_infinite_where_it_says_nothing) {
  for (double n : {1.0, 10.0, 1e6}) {
    EXPECT_GE(gamma(n, 0x1p-24), std::expm1(n * std::log1p(0x1p-24)));
    EXPECT_GE(gamma(n, 0x1p-24), -std::expm1(-n * std::log1p(0x1p-24)));
  }
  EXPECT_TRUE(std::isinf(gamma(0x1p23, 0x1p-24)));
  EXPECT_GT(round_up(1, 10), 1 + 10 * kDoubleRoundoff);
}

}  // namespace
}  // namespace assay
