// Shuffles, votes, barriers, atomics.
#include <gtest/gtest.h>

#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace exchange_test {

std::vector<uint32_t> lane_numbers(uint32_t count) {
  std::vector<uint32_t> result(count);
  for (uint32_t i = 0; i < count; ++i) result[i] = i;
  return result;
}

struct Shape {
  const char* body;
  uint32_t (*expected)(uint32_t);
};

// c = segment mask << 8 | clamp, as __shfl_*_sync(width) makes it.
const Shape shapes[] = {
    {"shfl.sync.idx.b32 %d, %a, 5, 31, -1;", [](uint32_t) { return 5u; }},
    {"shfl.sync.bfly.b32 %d, %a, 16, 31, -1;", [](uint32_t i) { return i ^ 16; }},
    {"shfl.sync.up.b32 %d|%p1, %a, 3, 0, -1; @!%p1 add.u32 %d, %d, 100;",
     [](uint32_t i) { return i < 3 ? i + 100 : i - 3; }},
    {"shfl.sync.down.b32 %d|%p1, %a, 3, 31, -1; @!%p1 add.u32 %d, %d, 100;",
     [](uint32_t i) { return i > 28 ? i + 100 : i + 3; }},
    {"shfl.sync.down.b32 %d, %a, 1, 0x181f, -1;",
     [](uint32_t i) { return i % 8 == 7 ? i : i + 1; }},  // width 8
    {"shfl.sync.idx.b32 %d, %a, 2, 0x181f, -1;", [](uint32_t i) { return (i & ~7u) + 2; }},
    {"shfl.sync.up.b32 %d, %a, 1, 0x1800, -1;", [](uint32_t i) { return i % 8 == 0 ? i : i - 1; }},
    {"shfl.sync.bfly.b32 %a, %a, 1, 31, -1; mov.u32 %d, %a;", [](uint32_t i) { return i ^ 1; }},  // in place
    {"setp.lt.u32 %p1, %a, 4; vote.sync.ballot.b32 %d, %p1, -1;", [](uint32_t) { return 0xfu; }},
    {"setp.lt.u32 %p1, %a, 4; vote.sync.ballot.b32 %d, !%p1, -1;", [](uint32_t) { return 0xfffffff0u; }},
    {"setp.lt.u32 %p1, %a, 4; vote.sync.any.pred %p2, %p1, -1; selp.b32 %d, 1, 0, %p2;",
     [](uint32_t) { return 1u; }},
    {"setp.lt.u32 %p1, %a, 4; vote.sync.all.pred %p2, %p1, -1; selp.b32 %d, 1, 0, %p2;",
     [](uint32_t) { return 0u; }},
    {"redux.sync.add.s32 %d, %a, -1;", [](uint32_t) { return 496u; }},
    {"redux.sync.max.u32 %d, %a, -1;", [](uint32_t) { return 31u; }},
    {"and.b32 %r1, %a, 1; match.any.sync.b32 %d, %r1, -1;",
     [](uint32_t i) { return i % 2 ? 0xaaaaaaaau : 0x55555555u; }},
    {"mov.u32 %d, %lanemask_lt;", [](uint32_t i) { return (1u << i) - 1; }},
};

TEST(Exchange, EveryModeReadsTheLaneOfTheIsa) {
  for (const Shape& shape : shapes) {
    const Outcome outcome = run_small({.body = shape.body, .a = lane_numbers(32)});
    ASSERT_FALSE(outcome.trap) << shape.body << outcome.trap->message;
    for (uint32_t i = 0; i < 32; ++i)
      EXPECT_EQ(words_of(outcome)[i], shape.expected(i)) << shape.body << " lane " << i;
  }
}

TEST(Exchange, AShuffleWithoutItsMembersIsATrap) {
  const Outcome outcome = run_small({.body = "setp.lt.u32 %p1, %a, 9; @%p1 bra OVER; shfl.sync.bfly.b32 %d, "
                                             "%a, 1, 31, -1; OVER: mov.u32 %d, 0;",
                                     .a = lane_numbers(32)});
  ASSERT_TRUE(outcome.trap);
  EXPECT_EQ(outcome.trap->kind, TrapKind::barrier);
  // The repaired twin names only those who come.
  EXPECT_FALSE(run_small({.body = "setp.lt.u32 %p1, %a, 9; @%p1 bra OVER; shfl.sync.bfly.b32 %d, %a, 1, 31, "
                                  "0xfffffe00; OVER: mov.u32 %d, 0;",
                          .a = lane_numbers(32)})
                   .trap);
}

TEST(Exchange, ABarrierMakesOtherWarpsStoresVisible) {
  SmallKernel kernel;
  kernel.declarations = ".shared .align 4 .b32 data[64];\n";
  kernel.body =
      "mov.u32 %r1, data; mad.lo.u32 %r2, %a, 4, %r1; mul.lo.u32 %r3, %a, 7; st.shared.b32 [%r2], %r3; "
      "bar.sync 0;"
      "xor.b32 %r4, %a, 63; mad.lo.u32 %r4, %r4, 4, %r1; ld.shared.b32 %d, [%r4];";
  kernel.a = lane_numbers(64);
  kernel.threads = 64;
  const std::vector<uint32_t> got = words_of(run_small(kernel));
  ASSERT_EQ(got.size(), 64u);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], 7 * (i ^ 63));
  // Without the barrier the first warp reads what the second has not written yet: poison.
  kernel.body.replace(kernel.body.find("bar.sync 0;"), 11, "");
  EXPECT_EQ(words_of(run_small(kernel))[0], 0xffffffffu);
}

TEST(Exchange, BarriersOfSomeWarpsAndReductionsWork) {
  SmallKernel kernel;
  kernel.body =
      "setp.lt.u32 %p1, %a, 32; bar.red.popc.u32 %d, 2, %p1; bar.red.or.pred %p2, 0, %p1; bar.red.and.pred "
      "%p3, 0, %p1;"
      "selp.b32 %r1, 1000, 0, %p2; selp.b32 %r2, 5000, 0, %p3; add.u32 %d, %d, %r1; add.u32 %d, %d, %r2;"
      "@%p1 bra PRODUCER; barrier.sync 1, 64; bra END; PRODUCER: barrier.arrive 1, 64; END:";
  kernel.a = lane_numbers(64);
  kernel.threads = 64;
  const Outcome outcome = run_small(kernel);
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  EXPECT_EQ(words_of(outcome)[40], 1032u);
}

struct BadBarrier {
  const char* body;
  const char* message;
};

TEST(Exchange, WrongUsesOfBarriersAreTraps) {
  const BadBarrier rows[] = {
      {"setp.lt.u32 %p1, %a, 9; @%p1 bra OVER; bar.sync 0; OVER: mov.u32 %d, 0;",
       "only lanes 9-31 of the warp reach the barrier: lanes 0-8 elsewhere"},
      {"setp.lt.u32 %p1, %a, 32; @%p1 bra A; bar.sync 1; bra END; A: bar.sync 2; END:",
       "2 of 2 warps wait at barriers that nobody will complete: warp 1 at barrier 1 (32 of all threads, "
       "line"},
      {"bar.sync 16;", "there is no barrier 16"},
      {"setp.lt.u32 %p1, %a, 32; @%p1 bra A; bar.sync 1, 64; bra END; A: bar.sync 1, 96; END:",
       "by one warp and"},
  };
  for (const BadBarrier& row : rows) {
    const Outcome outcome = run_small({.body = row.body, .a = lane_numbers(64), .threads = 64});
    ASSERT_TRUE(outcome.trap) << row.body;
    EXPECT_EQ(outcome.trap->kind, TrapKind::barrier);
    EXPECT_NE(outcome.trap->message.find(row.message), std::string::npos) << outcome.trap->message;
  }
}

TEST(Exchange, TilesOfAWarpMayNameMembersOfTheirOwnTogether) {
  SmallKernel kernel;
  // Lanes 8k .. 8k + 7 name each other; %c is their mask.
  kernel.body =
      "vote.sync.ballot.b32 %d, %p1, %c; redux.sync.add.u32 %r1, %a, %c; mad.lo.u32 %d, %r1, 1, 0;"
      "shfl.sync.bfly.b32 %r2, %a, 1, 31, %c; shl.b32 %r2, %r2, 16; or.b32 %d, %d, %r2;";
  kernel.a = lane_numbers(32);
  for (uint32_t i = 0; i < 32; ++i) kernel.c.push_back(0xffu << (i & ~7u));
  const Outcome outcome = run_small(kernel);
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(words_of(outcome)[i], (i ^ 1) << 16 | (8 * (i & ~7u) + 28)) << "lane " << i;
  kernel.c[9] = 0xff;  // lane 9 names lanes that it is not one of
  const Outcome wrong = run_small(kernel);
  ASSERT_TRUE(wrong.trap);
  EXPECT_EQ(wrong.trap->kind, TrapKind::barrier);
}

TEST(Exchange, AtomicsOfHalvesRoundAsAdditionsDo) {
  SmallKernel kernel;
  kernel.declarations = ".global .align 4 .b32 sum = 0x3c003c00;\n";
  kernel.body =
      "setp.eq.u32 %p1, %a, 0; @%p1 atom.global.add.noftz.f16x2 %d, [sum], %b; bar.sync 0; ld.global.b32 %d, "
      "[sum];";
  kernel.a = lane_numbers(32);
  kernel.b = {0x10003c00};  // 1 + 2^-11 ties to 1; 1 + 1 = 2
  const Outcome outcome = run_small(kernel);
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  EXPECT_EQ(words_of(outcome)[0], 0x3c004000u);
}

TEST(Exchange, AtomicsActLaneByLane) {
  SmallKernel kernel;
  kernel.declarations = ".shared .align 8 .b32 cell[2];\n.global .align 4 .u32 total = 5;\n";
  kernel.body =
      "st.shared.b32 [cell], 0; st.shared.b32 [cell+4], 0; bar.sync 0; atom.shared.add.u32 %d, [cell], 2; "
      "red.shared.max.s32 [cell+4], %a;"
      "bar.sync 0; ld.shared.b32 %r1, [cell+4]; shl.b32 %r1, %r1, 16; or.b32 %d, %d, %r1; red.global.add.u32 "
      "[total], 1;";
  kernel.a = lane_numbers(32);
  const Outcome outcome = run_small(kernel);
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(words_of(outcome)[i], (31u << 16) + 2 * i);
  kernel.body =
      "setp.eq.u32 %p1, %a, 0; atom.global.cas.b32 %d, [total], 5, 9; bar.sync 0; ld.global.b32 %r1, "
      "[total]; add.u32 %d, %d, %r1;";
  EXPECT_EQ(words_of(run_small(kernel))[0], 14u);
  EXPECT_EQ(words_of(run_small(kernel))[1], 18u);
}

TEST(Exchange, ResultsDoNotDependOnTheNumberOfThreads) {
  SmallKernel kernel;
  kernel.declarations = ".global .align 4 .f32 sum;\n";
  // A sum of floats in the order of blocks: any other order would round differently.
  kernel.body =
      "cvt.rn.f32.u32 %f1, %a; mul.rn.f32 %f1, %f1, 0f3DCCCCCD; atom.global.add.f32 %d, [sum], %f1;";
  kernel.threads = 64;
  kernel.blocks = 37;
  kernel.a = lane_numbers(64 * 37);
  const std::vector<uint32_t> one = words_of(run_small(kernel));
  for (const int threads : {2, 3, 8}) {
    kernel.host_threads = threads;
    EXPECT_EQ(words_of(run_small(kernel)), one) << threads;
  }
}

TEST(Exchange, TheTrapReportedIsTheLowestBlocks) {
  SmallKernel kernel;
  kernel.body = "mov.u32 %r1, %ctaid.x; setp.ge.u32 %p1, %r1, 3; @%p1 trap;";
  kernel.blocks = 50;
  for (const int threads : {1, 2, 8}) {
    kernel.host_threads = threads;
    const Outcome outcome = run_small(kernel);
    ASSERT_TRUE(outcome.trap);
    EXPECT_EQ(outcome.trap->block[0], 3u);
  }
}

}  // namespace exchange_test
}  // namespace assay::vm
