// What a thread reads of a buffer before anything has written it.
#include "src/base/vm/unwritten_reads.h"

#include <gtest/gtest.h>

namespace assay::vm {
namespace {

/// Two blocks of two threads, launched twice: all load their own word of w, thread 1 of block 1 a word behind
/// all others', and store it again.
Program reading_twice(const std::string& store) {
  const std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 pw) {
  .reg .b32 %t, %c, %n, %v;
  .reg .b64 %w, %d;
  .reg .pred %p;
  ld.param.u64 %w, [pw];
  mov.u32 %t, %tid.x;
  mov.u32 %c, %ctaid.x;
  mad.lo.u32 %n, %c, 2, %t;
  mul.wide.u32 %d, %n, 4;
  add.s64 %w, %w, %d;
  ld.global.u32 %v, [%w];
  setp.eq.u32 %p, %n, 3;
  @%p ld.global.u32 %v, [%w+4];
)" + store + R"(
  ret;
}
)";
  Program plan;
  plan.name = "small";
  plan.modules.push_back({"m", "small.ptx", std::make_shared<const std::string>(text)});
  plan.workspaces.push_back({"w", 20});
  for (int i = 0; i < 2; ++i)
    plan.launches.push_back({"m", "kernel", {2, 1, 1}, {2, 1, 1}, 0, {PointerArgument{"w"}}});
  return plan;
}

int line_in_ptx(const PlacedInstruction& at) {
  return at.module->functions[static_cast<size_t>(at.function)]
      .body[static_cast<size_t>(at.instruction)]
      .ptx_line;
}

TEST(UnwrittenReads, OfTheFirstLaunchEachThreadReadsItsOwnWord) {
  const auto read =
      find_unwritten_read(reading_twice("st.global.u32 [%w], %v;"), {}, {}, 0, {1, 0, 0}, {0, 0, 0});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->buffer, "w");
  EXPECT_EQ(read->offset, 8u);
  EXPECT_EQ(line_in_ptx(read->load), 14);
  EXPECT_EQ(read->load.thread, (std::array<uint32_t, 3>{0, 0, 0}));
}

TEST(UnwrittenReads, WhatAnEarlierLaunchStoredIsWritten) {
  const Program plan = reading_twice("st.global.u32 [%w], %v;");
  EXPECT_FALSE(find_unwritten_read(plan, {}, {}, 1, {0, 0, 0}, {0, 0, 0}));
  const auto read = find_unwritten_read(plan, {}, {}, 1, {1, 0, 0}, {1, 0, 0});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->offset, 16u);
  EXPECT_EQ(line_in_ptx(read->load), 16);
}

TEST(UnwrittenReads, OfAThreadThatMadeNoneItsBlocksIsGiven) {
  const auto read =
      find_unwritten_read(reading_twice("st.global.u32 [%w], %v;"), {}, {}, 1, {1, 0, 0}, {0, 0, 0});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->load.thread, (std::array<uint32_t, 3>{1, 0, 0}));
}

}  // namespace
}  // namespace assay::vm
