// Cases whose indices pass 2^31: what of them runs, and what of them is not drawn.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fuzz/generator.h"
#include "src/case/resolved_case.h"
#include "src/verification/verify/acceptance.h"

namespace assay {
namespace {

constexpr uint64_t kFarSeed = 20260;

TEST(FarCase, PassesTheLimitsOf32BitsAndRunsOfItsBlocksAreCheap) {
  int64_t past = 0, cases = 0;
  for (const Kernel& kernel : kernels()) {
    const Operator& op = find_operator(kernel.operator_name);
    for (uint64_t i = 0; i < 4; ++i, ++cases) {
      const Case c = draw_far_case(kernel, op, kFarSeed, i);
      EXPECT_NO_THROW(validate(c, op)) << token_of(c);
      EXPECT_FALSE(c.blocks.empty()) << token_of(c);
      EXPECT_EQ(parse_token(token_of(c)), c) << token_of(c);
      EXPECT_LE(c.B, 400'000) << token_of(c);
      past += c.B * c.T * c.H * std::max({c.K, c.V, c.M}) > INT32_MAX;
    }
  }
  EXPECT_GE(past, cases / 2);
}

/// A gradient of what all sequences share sums over all of them: one block of it has no end.
TEST(FarCase, HasNoGradientThatAllSequencesShare) {
  std::set<Direction> of_bonus, of_gates;
  for (uint64_t i = 0; i < 30; ++i) {
    of_bonus.insert(draw_far_case(find_kernel("rwkv6.chunk"), find_operator("rwkv6"), kFarSeed, i).direction);
    of_gates.insert(draw_far_case(find_kernel("gla.chunk"), find_operator("gla"), kFarSeed, i).direction);
  }
  EXPECT_EQ(of_bonus, std::set{Direction::forward});
  EXPECT_GE(of_gates.size(), 2u);
}

TEST(FarCase, RunsTheLastBlocksOfOneDenseSequenceAnEntry) {
  for (uint64_t i = 0; i < 30; ++i) {
    const Case c = draw_far_case(find_kernel("gla.chunk"), find_operator("gla"), kFarSeed, i);
    EXPECT_NE(c.blocks.find("last"), std::string::npos) << token_of(c);
    EXPECT_TRUE(c.cu_seqlens.empty() && c.layout.empty()) << token_of(c);
    EXPECT_NE(c.values, "exact") << token_of(c);
  }
}

/// Its decays as the first of its entries and heads has them.
TEST(FarCase, HasDecaysThatItsKernelTakes) {
  const Operator& op = find_operator("simple_gla");
  for (const auto& [least, most] :
       {std::pair{-1e4, -0.02}, {-5.0, -0.02}, {-5.0, 0.0}, {-1e-7, 0.0}, {-3.0, -3.0}}) {
    Kernel kernel = find_kernel("simple_gla.chunk");
    kernel.limits.gate_min = least, kernel.limits.gate_max = most;
    for (uint64_t i = 0; i < 12; ++i) {
      Case c = draw_far_case(kernel, op, kFarSeed, i);
      c.B = 1, c.HV = c.HV / c.H, c.H = 1, c.blocks.clear();
      const auto faults = domain_faults(draw_inputs(resolve(c, op)), kernel, op);
      EXPECT_TRUE(faults.empty()) << token_of(c) << ": " << faults[0];
    }
  }
}

}  // namespace
}  // namespace assay
