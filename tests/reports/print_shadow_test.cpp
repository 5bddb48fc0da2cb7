#include "reports/print_shadow.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

std::string distance(const char* instruction, double largest) {
  ExponentRange range;
  range.instruction = instruction;
  range.max = largest;
  return distance_text(range);
}

TEST(PrintShadow, AnExponentialOverflowsWhereItsFormatEnds) {
  EXPECT_EQ(distance("ex2.approx.ftz.f32", -3.25), "saw up to -3.25: safe");
  EXPECT_EQ(distance("ex2.approx.f32", 100), "saw up to 100: 28 below overflow (threshold 128)");
  EXPECT_EQ(distance("ex2.approx.ftz.bf16x2", 126), "saw up to 126: within 2 of overflow (threshold 128)");
  EXPECT_EQ(distance("ex2.approx.ftz.bf16", 128), "saw up to 128: overflowed (from 128 on)");
  EXPECT_EQ(distance("ex2.approx.f16", 10), "saw up to 10: 6 below overflow (threshold 16)");
  EXPECT_EQ(distance("ex2.approx.f16x2", 13), "saw up to 13: within 3 of overflow (threshold 16)");
  EXPECT_EQ(distance("ex2.approx.f16x2", 16), "saw up to 16: overflowed (from 16 on)");
}

}  // namespace
}  // namespace assay
