// Programs that are wrong only where an optional input is absent.
#include "src/verification/verify/absent_argument.h"

#include <gtest/gtest.h>

#include "tests/verify/scaled_kernel.h"

namespace assay {
namespace {

std::optional<Diagnosis> cause_in(const Kernel& kernel, const std::string& token) {
  const auto told = find_telling_case(parse_token(token), kernel, nullptr, {}, 10);
  EXPECT_TRUE(told);
  return told ? absent_argument(kernel, *told, {}) : std::nullopt;
}

/// There beta is 0 where it is absent.
TEST(AbsentArgument, WhatIsRightOnceItIsGivenIsTheCause) {
  const auto cause =
      cause_in(find_kernel("delta_rule.fused_recurrent@Z20"),
               "delta_rule.fused_recurrent@Z20/B1/T3/H1/K2/V2/fp32/g-fp32/none/s1/no-beta,beta_v");
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->cause, "absent-argument-mistreated");
  EXPECT_EQ(cause->explanation,
            "without beta, and right with beta given as ones: check what stands in for it");
}

TEST(AbsentArgument, WhatIsWrongEitherWayIsNot) {
  EXPECT_FALSE(cause_in(scaled_kernel("delta_rule.fused_recurrent", 1.5F),
                        "delta_rule.fused_recurrent/B1/T3/H1/K2/V2/fp32/g-fp32/none/s1/no-beta,beta_v"));
}

/// beta stands in for beta_v and is there; without g another program runs.
TEST(AbsentArgument, WhereAnotherStandsInForItOrOtherCodeRunsNothingIsSaid) {
  EXPECT_FALSE(cause_in(scaled_kernel("delta_rule.fused_recurrent", 1.5F),
                        "delta_rule.fused_recurrent/B1/T3/H1/K2/V2/fp32/g-fp32/none/s1/no-beta_v"));
  EXPECT_FALSE(cause_in(scaled_kernel("simple_gla.fused_recurrent", 1.5F),
                        "simple_gla.fused_recurrent/B1/T3/H1/K2/V2/fp32/g-fp32/mild/s1/no-g_gamma"));
}

}  // namespace
}  // namespace assay
