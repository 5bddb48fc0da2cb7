// What a register holds that is read before it is written, in a file that blocks before have used.
#include "src/base/vm/unsure_registers.h"

#include <gtest/gtest.h>

#include "src/base/vm/launch.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace {

/// Of three blocks in turn on one thread.
std::vector<uint32_t> results(const std::string& body) {
  return words_of(run_small({.body = body, .blocks = 3}));
}

std::vector<SlotRange> unsure(const std::string& body) {
  const Module module{"m", "test.ptx", std::make_shared<std::string>(text_of({.body = body}))};
  return decoded(module, "k")->unsure;
}

TEST(UnsureRegisters, WhatOnePathLeavesOutIsPoisonInEveryBlock) {
  const auto got =
      results("setp.eq.u32 %p1, %r32, 5; @%p1 bra L; mov.u32 %r1, 5;\nL: mov.u32 %d, %r1; mov.u32 %r1, 77;");
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i % 32 == 5 ? ~0u : 5u) << i;
}

TEST(UnsureRegisters, WhatIsWrittenUnderAGuardIsPoisonElsewhereInEveryBlock) {
  const auto got =
      results("setp.ne.u32 %p1, %r32, 5; @%p1 mov.u32 %r1, 5; mov.u32 %d, %r1; mov.u32 %r1, 77;");
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i % 32 == 5 ? ~0u : 5u) << i;
}

TEST(UnsureRegisters, WhatALoopReadsOnItsFirstTurnIsPoisonInEveryBlock) {
  const auto got = results(
      "mov.u32 %r2, 0;\nL: mov.u32 %d, %r1; mov.u32 %r1, 77; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 1; "
      "@%p1 bra L;");
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], ~0u) << i;
}

TEST(UnsureRegisters, WhatIsWrittenOnEveryPathIsSure) {
  EXPECT_TRUE(unsure("mov.u32 %r1, %a; add.u32 %d, %r1, %b;").empty());
  EXPECT_TRUE(unsure("setp.eq.u32 %p1, %a, 0; @%p1 bra M; mov.u32 %r1, 5; bra N;\nM: mov.u32 %r1, 6;\nN: "
                     "mov.u32 %d, %r1;")
                  .empty());
}

TEST(UnsureRegisters, WhatIsReachedByAJumpBackAloneIsLookedAt) {
  const std::string there = "bra C;\nB: mov.u32 %d, %r1; bra E;\nC: ", back = "mov.u32 %r2, 5; bra B;\nE: ";
  EXPECT_FALSE(unsure(there + back).empty());
  EXPECT_TRUE(unsure(there + "mov.u32 %r1, 7;" + back).empty());
}

TEST(UnsureRegisters, WhatAnotherLaneMayReadIsUnsure) {
  EXPECT_FALSE(unsure("mov.u32 %r1, %a; shfl.sync.bfly.b32 %d, %r1, 1, 31, 0xffffffff;").empty());
}

}  // namespace
}  // namespace assay::vm
