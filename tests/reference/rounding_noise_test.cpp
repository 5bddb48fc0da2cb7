// Which of the declared numbers are roundings of operands.
#include "reference/rounding_noise.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr double u = 0x1p-8;

TEST(RoundingNoise, CountsWholeRoundingsOfTheOperandsFormat) {
  EXPECT_EQ(roundings_in(0, u), 0);
  EXPECT_EQ(roundings_in(0.99 * u, u), 0);
  EXPECT_EQ(roundings_in(u, u), 1);
  EXPECT_EQ(roundings_in((1 + u) * (1 + u) - 1, u), 2);
  EXPECT_EQ(roundings_in((1 + u) * (1 + u) - 1 + 0x1p-20, u), 2);
}

TEST(RoundingNoise, WhatIsLeftIsTheRestOfEveryNumber) {
  Arithmetic a;
  a.readout = (1 + u) * (1 + 0x1p-20) - 1, a.write = 0x1p-20, a.chunk = 64, a.output_roundoff = u;
  const Arithmetic rest = without_roundings(a, u);
  EXPECT_NEAR(rest.readout, 0x1p-20, 0x1p-40);
  EXPECT_EQ(rest.write, a.write);
  EXPECT_EQ(rest.chunk, 64);
  EXPECT_EQ(rest.output_roundoff, 0);
}

TEST(RoundingNoise, IsLookedForInEveryPartOfTheGradientsArithmetic) {
  AdjointArithmetic a;
  EXPECT_FALSE(rounds_operands(a, u));
  for (double* number : {&a.state.write, &a.adjoint.readout, &a.inner}) {
    *number = u;
    EXPECT_TRUE(rounds_operands(a, u));
    EXPECT_FALSE(rounds_operands(without_roundings(a, u), u));
    *number = 0;
  }
}

TEST(RoundingNoise, OperandsInPartsAreNotRounded) {
  EXPECT_EQ(operand_roundoff(Dtype::bf16), u);
  EXPECT_EQ(operand_roundoff(Dtype::fp16), 0x1p-11);  // of tf32 too
  EXPECT_EQ(operand_roundoff(Dtype::fp32), 1);
}

}  // namespace
}  // namespace assay
