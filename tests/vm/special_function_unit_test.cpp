#include "src/base/vm/special_function_unit.h"

#include <gtest/gtest.h>

namespace assay::vm::sfu {
namespace special_function_unit_test {

using Function = uint32_t (*)(uint32_t);

struct Operation {
  const char* name;
  Function function;
  uint32_t of_zero, of_negative_zero, of_infinity, of_negative_infinity, of_minus_one;
};

constexpr uint32_t kNan = 0x7fffffffu, kInfinity = 0x7f800000u, kMinusInfinity = 0xff800000u;
constexpr uint32_t kOne = 0x3f800000u, kMinusOne = 0xbf800000u, kMinusZero = 0x80000000u;

const Operation kOperations[] = {
    {"rcp", rcp, kInfinity, kMinusInfinity, 0, kMinusZero, kMinusOne},
    {"rsq", rsq, kInfinity, kMinusInfinity, 0, kNan, kNan},
    {"sqrt", sqrt, 0, kMinusZero, kInfinity, kNan, kNan},
    {"lg2", lg2, kMinusInfinity, kMinusInfinity, kInfinity, kNan, kNan},
    {"ex2", ex2, kOne, kOne, kInfinity, 0, 0x3f000000u},
    {"sin", sin, 0, kMinusZero, kNan, kNan, kMinusZero},
    {"cos", cos, kOne, kOne, kNan, kNan, kOne},
    {"tanh", tanh, 0, kMinusZero, kOne, kMinusOne, 0xbf42f848u},
};

TEST(SpecialFunctionUnit, HasTheValuesOfAnH200AtTheEdges) {
  for (const Operation& o : kOperations) {
    EXPECT_EQ(o.function(0), o.of_zero) << o.name;
    EXPECT_EQ(o.function(kMinusZero), o.of_negative_zero) << o.name;
    EXPECT_EQ(o.function(kInfinity), o.of_infinity) << o.name;
    EXPECT_EQ(o.function(kMinusInfinity), o.of_negative_infinity) << o.name;
    EXPECT_EQ(o.function(kMinusOne), o.of_minus_one) << o.name;
    for (const uint32_t nan : {0x7f800001u, 0x7fc00000u, 0xffc01234u, 0xffffffffu})
      EXPECT_EQ(o.function(nan), kNan) << o.name;
  }
}

TEST(SpecialFunctionUnit, TakesSubnormalsForZeroExceptInTanh) {
  for (const Operation& o : kOperations)
    for (const uint32_t subnormal : {0x00000001u, 0x007fffffu, 0x80000001u, 0x807fffffu})
      EXPECT_EQ(o.function(subnormal), o.function == tanh ? subnormal : o.function(subnormal & kMinusZero))
          << o.name;
}

TEST(SpecialFunctionUnit, QuartersOfATurnAreExact) {
  const uint32_t quarters[][3] = {{0x3e800000, kOne, kMinusZero},
                                  {0x3f000000, kMinusZero, kMinusOne},
                                  {0x3f400000, kMinusOne, 0},
                                  {0x3f800000, 0, kOne},
                                  {0x4b000001, 0, kOne}};
  for (const auto& [turns, sine, cosine] : quarters) {
    EXPECT_EQ(sin(turns), sine) << turns;
    EXPECT_EQ(sin(turns | kMinusZero), sine ^ kMinusZero) << turns;
    EXPECT_EQ(cos(turns), cosine) << turns;
    EXPECT_EQ(cos(turns | kMinusZero), cosine) << turns;
  }
}

TEST(SpecialFunctionUnit, HighWordsOfDoublesAgreeWithFloats) {
  for (uint32_t fraction = 0; fraction < 1u << 20; fraction += 77) {
    const uint32_t single = rcp(kOne | fraction << 3), wide = rcp64h(0x3ff00000u | fraction);
    EXPECT_EQ(wide & 0xfffffu, (single & 0x7fffffu) >> 3) << fraction;
    EXPECT_EQ((wide >> 20) - 1023, (single >> 23) - 127) << fraction;
    EXPECT_EQ(rsq64h(0x40000000u | fraction) & 0xfffffu, (rsq(0x40000000u | fraction << 3) & 0x7fffffu) >> 3);
  }
}

}  // namespace special_function_unit_test
}  // namespace assay::vm::sfu
