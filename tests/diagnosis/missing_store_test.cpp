// What should have written an element that a run left as it was.
#include "src/verification/diagnosis/missing_store.h"

#include <gtest/gtest.h>

#include "src/verification/diagnosis/origin.h"
#include "tests/diagnosis/storing_program.h"

namespace assay {
namespace {

std::optional<OriginTrace> trace_of(const Program& plan, int64_t flat) {
  return find_origin(plan, {}, "o", flat);
}

TEST(MissingStore, AGuardThatTurnedTheStoreAwayIsTheOrigin) {
  const Program plan = plan_of({"setp.lt.u32 %p1, %n, 63;", "mul.wide.u32 %d1, %n, 4; add.s64 %d2, %o, %d1;",
                                "@!%p1 bra L;", "st.global.f32 [%d2], %f1;", "L:"},
                               1, 64);
  const auto trace = trace_of(plan, 63);
  ASSERT_TRUE(trace && trace->missing);
  EXPECT_EQ(trace->missing->why, MissingStore::Why::guarded);
  EXPECT_EQ(trace->origin.where.line, 12);
  EXPECT_EQ(trace->origin.kind, OriginKind::unwritten_memory);
  EXPECT_EQ(trace->origin.sentence,
            "o[t=0,v=63] was never written: the guard at kernels/none/small.cu:12 turned thread (31,0,0) of "
            "block (1,0,0) "
            "away from the store at kernels/none/small.cu:13");
  EXPECT_EQ(trace->origin.chain.size(), 2u);
}

/// Of a block's shared memory thread 31 leaves its word as it was.
TEST(MissingStore, OfSharedMemoryTheGuardThatKeptTheStoreAwayIsTheOrigin) {
  const Program plan =
      plan_of({".shared .align 4 .b32 sh[32]; mov.u32 %b1, sh; shl.b32 %b2, %t, 2; add.u32 %b1, %b1, %b2;",
               "setp.lt.u32 %p1, %t, 31;", "@%p1 st.shared.f32 [%b1], %f1;", "bar.sync 0;",
               "ld.shared.f32 %f2, [%b1]; add.rn.f32 %f2, %f2, %f1;",
               "mul.wide.u32 %d1, %n, 4; add.s64 %d2, %o, %d1; st.global.f32 [%d2], %f2;"},
              1, 64);
  const auto trace = trace_of(plan, 31);
  ASSERT_TRUE(trace && trace->missing);
  EXPECT_EQ(trace->missing->why, MissingStore::Why::guarded);
  EXPECT_EQ(trace->origin.where.line, 12);
  EXPECT_EQ(trace->origin.kind, OriginKind::unwritten_memory);
  EXPECT_FALSE(trace_of(plan, 30));
}

/// Each thread reads what its neighbour in the other warp writes, behind a barrier of its own warp alone.
TEST(MissingStore, WhereAnotherWarpWritesTooLateTheBarrierOfAWarpIsTheOrigin) {
  Program plan = plan_of(
      {".shared .align 4 .b32 sh[64]; mov.u32 %b1, sh; shl.b32 %b2, %t, 2; add.u32 %b3, %b1, %b2;",
       "st.shared.f32 [%b3], %f1;", "bar.warp.sync -1;",
       "xor.b32 %b2, %b2, 128; add.u32 %b3, %b1, %b2; ld.shared.f32 %f2, [%b3]; add.rn.f32 %f2, %f2, %f1;",
       "mul.wide.u32 %d1, %t, 4; add.s64 %d2, %o, %d1; st.global.f32 [%d2], %f2;"},
      1, 64);
  plan.launches[0].grid = {1, 1, 1}, plan.launches[0].block = {64, 1, 1};
  const auto trace = trace_of(plan, 0);
  ASSERT_TRUE(trace && trace->missing);
  EXPECT_EQ(trace->missing->why, MissingStore::Why::early);
  EXPECT_EQ(trace->origin.where.line, 12);
  EXPECT_NE(trace->origin.sentence.find("no thread of another warp is waited for"), std::string::npos)
      << trace->origin.sentence;
}

/// Every block stores its 32 values from column 0 on: that a guard's other way would help is not why.
TEST(MissingStore, OfStoresThatGoElsewhereTheDeclarationOfTheirIndexIsTheOrigin) {
  const std::vector<std::string> ptx = {
      "mov.u32 %b1, %c;", "mov.u32 %b2, %t;", "setp.eq.u32 %p1, %t, 99; @%p1 add.u32 %b2, %b2, 32;",
      "mul.wide.u32 %d1, %b2, 4; add.s64 %d2, %o, %d1; st.global.f32 [%d2], %f1;"};
  const struct {
    std::vector<std::string> source;
    int line;
  } rows[] = {{{"const int block = blockIdx.x;", "const int to = threadIdx.x;", "const float sum = 2.0f;",
                "o[to] = sum;"},
               11},
              {{"const int to = threadIdx.x;", "const int too = 1;", "const float sum = 2.0f;", "store(",
                "  o + to, sum);"},
               10},
              {{"int to = threadIdx.x;", "to += 0;", "const float sum = 2.0f;", "o[to] = sum;"}, 11},
              {{"const int to = threadIdx.x;", "const float sum = 2.0f;", "for (int i = 0; i < 1; ++i)",
                "  o[to + i] = sum;"},
               10},
              {{"", "", "", "o[threadIdx.x] = 2.0f;"}, 13}};
  for (const auto& row : rows) {
    const Program plan = plan_of(ptx, 1, 64, source_of(row.source));
    const auto trace = trace_of(plan, 40);
    ASSERT_TRUE(trace && trace->missing);
    EXPECT_EQ(trace->missing->why, MissingStore::Why::elsewhere);
    EXPECT_EQ(trace->missing->reached, "v = 0..31");
    EXPECT_EQ(trace->origin.where.line, row.line) << trace->origin.sentence;
  }
}

TEST(MissingStore, WhereNothingStoresTheLastUseWithoutAnInstructionIsTheOrigin) {
  const std::string file =
      source_of({"const int c = 1;", "kernel(float* o) {", "if constexpr (false) fill(o + c);", "f(0);"});
  const Program plan =
      plan_of({"add.u32 %b2, %t, 0;", "add.u32 %b2, %t, 0;", "", "add.u32 %b2, %t, 0;"}, 1, 64, file);
  const auto trace = trace_of(plan, 5);
  ASSERT_TRUE(trace && trace->missing);
  EXPECT_EQ(trace->missing->why, MissingStore::Why::none);
  EXPECT_EQ(trace->origin.where.line, 12);
  EXPECT_NE(trace->origin.sentence.find("nothing in kernel stores there"), std::string::npos)
      << trace->origin.sentence;
}

TEST(MissingStore, WhatWasWrittenLacksNoStore) {
  const Program plan =
      plan_of({"mul.wide.u32 %d1, %n, 4; add.s64 %d2, %o, %d1;", "st.global.f32 [%d2], %f1;"}, 1, 64);
  EXPECT_FALSE(find_missing_store(plan, {}, {}, "o", 5, SourceText("small")));
}

/// All blocks take the table's first row, which has no work, for their own: where that row is made is the
/// origin.
TEST(MissingStore, ARowOfATableThatNoBlockReadsIsWhyAWorkspaceWasNotFilled) {
  const Program plan = plan_of(
      {"mul.wide.u32 %d1, %n, 4; add.s64 %d2, %o, %d1; add.s64 %d3, %w, %d1;",
       "shr.u32 %b1, %c, 5; mul.wide.u32 %d4, %b1, 4;", "add.s64 %d5, %s, %d4; ld.global.u32 %b2, [%d5];",
       "setp.eq.u32 %p1, %b2, 0;", "@%p1 bra L;", "st.global.f32 [%d3], %f1;",
       "L:", "ld.global.f32 %f2, [%d3]; add.rn.f32 %f3, %f2, %f1; st.global.f32 [%d2], %f3;"},
      1, 64);
  const auto trace = trace_of(plan, 3);
  ASSERT_TRUE(trace && trace->missing);
  EXPECT_EQ(trace->missing->why, MissingStore::Why::misread);
  EXPECT_EQ(trace->origin.where.line, 11) << trace->origin.sentence;
  EXPECT_NE(trace->origin.sentence.find("by what it read from s, of which no thread reads some rows"),
            std::string::npos)
      << trace->origin.sentence;
}

/// A workspace that a launch should have filled: the guard there, not the read, where nothing filled any of
/// it.
TEST(MissingStore, OfAWorkspaceThatNothingFilledTheGuardIsTheOrigin) {
  const std::vector<std::string> body = {
      "mul.wide.u32 %d1, %n, 4; add.s64 %d2, %o, %d1; add.s64 %d3, %w, %d1;",
      "setp.lt.u32 %p1, %n, LIMIT;",
      "@%p1 st.global.f32 [%d3], %f1;",
      "ld.global.f32 %f2, [%d3];",
      "add.f32 %f3, %f2, %f1;",
      "st.global.f32 [%d2], %f3;"};
  for (const auto& [limit, line] : {std::pair{"0", 12}, {"5", 13}}) {
    std::vector<std::string> lines = body;
    lines[1].replace(lines[1].find("LIMIT"), 5, limit);
    const auto trace = trace_of(plan_of(lines, 1, 64), 9);
    ASSERT_TRUE(trace) << limit;
    EXPECT_EQ(trace->origin.where.line, line) << limit << ": " << trace->origin.sentence;
  }
}

}  // namespace
}  // namespace assay
