#include "fuzz/settle.h"

#include <gtest/gtest.h>

#include "fuzz/cost.h"
#include "fuzz/generator.h"

namespace assay {
namespace {

Case fitted(const char* token, double budget) {
  Case c = parse_token(token);
  fit_cost(c, budget);
  EXPECT_LE(estimated_cost(c), budget) << token_of(c);
  return c;
}

TEST(Settle, ADearCaseLosesTokensBeforeChannels) {
  const Case c = fitted("gla.chunk/B1/T450/H1/K64/V64/bf16/mild", 4e6);
  EXPECT_EQ(c.K, 64);
  EXPECT_EQ(c.V, 64);
  EXPECT_LT(c.T, 450);
  EXPECT_EQ(c.T % 64, 450 % 64) << "the partial chunk stays";
}

TEST(Settle, WhatIsRareStays) {
  const Case wide = fitted("gla.chunk/B2/T1000/H2/K193/V200/bf16/mild/backward", 1e7);
  EXPECT_EQ(std::max(wide.K, wide.V), 200);
  EXPECT_LE(wide.T, 192);
  const Case many = fitted("gla.chunk/B1/T200/H17/K64/V64/bf16/mild", 1e7);
  EXPECT_EQ(many.H, 17);
}

TEST(Settle, LongSequencesStayLong) {
  const Case c = fitted("gla.chunk/B1/T1100/H1/K128/V64/bf16/mild", 2e7);
  EXPECT_GT(c.T, 512);
}

TEST(Settle, ValueHeadsStayAMultipleOfTheHeads) {
  const Case c = fitted("gsa.chunk/B1/T200/H3/HV3/K64/V64/M32/bf16/mild", 3e6);
  EXPECT_EQ(c.HV % c.H, 0);
  EXPECT_LT(c.H, 3);
}

TEST(Settle, PackedOffsetsFollowT) {
  const Case c = fitted("gla.chunk/B1/T450/H1/K64/V64/cu0,100,430,450/bf16/mild", 4e6);
  EXPECT_EQ(c.cu_seqlens.back(), c.T);
  EXPECT_NO_THROW(validate(c, find_operator("gla")));
}

TEST(Settle, ExactValuesHaveNoDecayAndAPowerOfTwoForAScale) {
  const Operator& op = find_operator("gla");
  Case c = parse_token("gla.chunk/B1/T64/H1/K8/V8/bf16/mild/v-exact/scale-0.1");
  agree(c, op);
  EXPECT_EQ(c.decay, "none");
  EXPECT_NO_THROW(validate(c, op)) << token_of(c);
}

/// Exact values do not decay: of a kernel that takes no log decay of 0 there are none, but for the cases that
/// are drawn outside.
TEST(Settle, ValuesAreNotExactWhereTheKernelTakesNoDecayOfThem) {
  const Operator& op = find_operator("simple_gla");
  Kernel kernel = find_kernel("simple_gla.chunk");
  kernel.limits.gate_min = -5, kernel.limits.gate_max = -0.02;
  int exact = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    const Case c = draw_case(kernel, op, {}, 1, i);
    EXPECT_NO_THROW(validate(c, op)) << token_of(c);
    exact += c.values == "exact";
  }
  EXPECT_LT(exact, 20);
}

}  // namespace
}  // namespace assay
