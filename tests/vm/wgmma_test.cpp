// wgmma as a program sees it: which threads execute it, what it refuses; and the instructions that feed it.
// (Its arithmetic and its layouts: fidelity_test.cpp.)
#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <tuple>

#include "src/base/numerics/bad_input.h"
#include "src/base/vm/matrix_descriptor.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace {

constexpr const char* tile = ".shared .align 1024 .b8 tile[8192];";

#define SETUP                                                                                              \
  "mov.u32 %r0, tile; shl.b32 %r1, %r32, 4; add.s32 %r1, %r1, %r0;\n"                                      \
  "and.b32 %r2, %r0, 0x3ffff; shr.u32 %r2, %r2, 4; cvt.u64.u32 %rd8, %r2; or.b64 %rd8, %rd8, "             \
  "0x1000080000;\nmov.u32 %r10, 0x3f803f80; mov.u32 %r11, %r10; mov.u32 %r12, %r10; mov.u32 %r13, %r10;\n" \
  "mov.u32 %r3, 0x40004000; st.shared.v4.b32 [%r1], {%r3, %r3, %r3, %r3}; setp.eq.u32 %p1, %r0, %r0;\n"    \
  "mov.f32 %f1, 0f3F800000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1; fence.proxy.async; "     \
  "bar.sync 0;\n"
#define MULTIPLY(scale)                                                                            \
  "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, {%r10,%r11,%r12,%r13}, " \
  "%rd8, " scale ", 1, 1, 0;\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
#define FENCE "wgmma.fence.sync.aligned;\n"
#define RESULT "mov.b32 %d, %f1;\n"

Outcome run_body(const std::string& body, uint32_t threads = 128, const char* arch = "sm_90") {
  return run_small({.declarations = tile, .body = body, .threads = threads, .arch = arch});
}

TEST(Wgmma, AddsSixteenProductsToTheSumOrStartsAnew) {
  const std::pair<const char*, float> cases[] = {{"%p1", 33}, {"!%p1", 32}, {"1", 33}, {"0", 32}};
  for (const auto& [scale, expected] : cases) {
    std::string body = SETUP FENCE MULTIPLY("SCALE") RESULT;
    body.replace(body.find("SCALE"), 5, scale);
    const Outcome outcome = run_body(body, 256);
    ASSERT_FALSE(outcome.trap) << outcome.trap->message;
    for (const uint32_t word : words_of(outcome)) ASSERT_EQ(std::bit_cast<float>(word), expected) << scale;
  }
}

struct Misuse {
  const char *what, *body, *kind, *message;
  uint32_t threads = 128;
};

TEST(Wgmma, MisuseTrapsWithItsReasonAndTheRepairedTwinRuns) {
  const Misuse cases[] = {
      {"no fence", SETUP MULTIPLY("%p1") RESULT, "wgmma-race", "no wgmma.fence precedes it"},
      {"half a warpgroup", SETUP FENCE MULTIPLY("%p1") RESULT, "warpgroup", "the block has 64", 64},
      {"a lane stays behind",
       SETUP FENCE "setp.ne.u32 %p2, %r32, 5; @!%p2 bra DONE;\n" MULTIPLY("%p1") RESULT, "barrier",
       "not all 32 lanes"},
      {"a warp stays behind",
       SETUP FENCE "shr.u32 %r5, %r32, 5; setp.eq.u32 %p2, %r5, 2; @%p2 bra DONE;\n" MULTIPLY("%p1") RESULT,
       "warpgroup", "ended without executing"},
      {"descriptors differ between warps",
       SETUP FENCE "shr.u32 %r5, %r32, 5; cvt.u64.u32 %rd9, %r5; add.s64 %rd8, %rd8, %rd9;\n" MULTIPLY("%p1")
           RESULT,
       "warpgroup", "different descriptors of B"},
      {"descriptors differ between lanes",
       SETUP FENCE "cvt.u64.u32 %rd9, %r32; add.s64 %rd8, %rd8, %rd9;\n" MULTIPLY("%p1") RESULT, "warpgroup",
       "the descriptor of B is"},
      {"scale-d differs between lanes", SETUP FENCE "setp.lt.u32 %p1, %r32, 9;\n" MULTIPLY("%p1") RESULT,
       "warpgroup", "scale-d differs"},
      {"B outside shared memory", SETUP FENCE "add.s64 %rd8, %rd8, 505;\n" MULTIPLY("%p1") RESULT,
       "out-of-bounds", "operand B reaches shared memory at byte"},
  };
  for (const Misuse& c : cases) {
    const Outcome outcome = run_body(c.body, c.threads);
    ASSERT_TRUE(outcome.trap) << c.what;
    EXPECT_EQ(name_of(outcome.trap->kind), c.kind) << c.what << ": " << outcome.trap->message;
    EXPECT_NE(outcome.trap->message.find(c.message), std::string::npos) << outcome.trap->message;
    EXPECT_GT(outcome.trap->where.ptx_line, 0) << c.what;
  }
  EXPECT_FALSE(run_body(SETUP FENCE MULTIPLY("%p1") RESULT).trap);
}

TEST(Wgmma, WhatAnArchitectureOrAShapeDoesNotHaveIsRefusedBeforeAnythingRuns) {
  EXPECT_THROW(run_body(SETUP FENCE MULTIPLY("%p1") RESULT, 128, "sm_80"), BadInput);
  for (const char* body :
       {"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1,%f2,%f3}, %rd8, %rd8, %p1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, %rd8, %rd8, %p1, 2, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f1,%f2,%f3,%f4}, %rd8, %rd8, %p1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n12k16.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, %rd8, %rd8, %p1, 1, 1, 0, "
        "0;"})
    EXPECT_THROW(run_body(body), BadInput) << body;
}

TEST(MatrixDescriptor, EveryLayoutGivesEachPieceAPlaceOfItsOwn) {
  // swizzle code, MN-major, leading, stride
  const std::tuple<uint64_t, bool, uint64_t, uint64_t> layouts[] = {
      {0, false, 128, 256}, {1, false, 16, 1024},  {2, false, 16, 512},  {3, false, 16, 256},
      {0, true, 128, 256},  {1, true, 2048, 1024}, {2, true, 1024, 512}, {3, true, 512, 256}};
  for (const auto& [swizzle, mn_major, leading, stride] : layouts) {
    const MatrixDescriptor d =
        decode_descriptor(swizzle << 62 | stride >> 4 << 32 | leading >> 4 << 16 | 1024 >> 4);
    std::set<uint32_t> seen;
    for (uint32_t line = 0; line < (mn_major ? 16 : 64); ++line)
      for (uint32_t piece = 0; piece < (mn_major ? 8 : 2); ++piece) {
        const uint32_t at = piece_address(d, mn_major, line, piece);
        EXPECT_GE(at, 1024u);
        EXPECT_TRUE(seen.insert(at).second) << swizzle << mn_major << ' ' << line << ' ' << piece;
      }
  }
  // PTX ISA, "Canonical Layouts": 128-byte swizzle, row 3: the piece is added to the row without carry.
  const MatrixDescriptor d = decode_descriptor(uint64_t{1} << 62 | uint64_t{64} << 32);
  EXPECT_EQ(piece_address(d, false, 3, 1), 3u * 128 + 2 * 16);
  // A pattern that starts three lines behind a multiple of 1024 counts its lines from there.
  const MatrixDescriptor moved =
      decode_descriptor(uint64_t{1} << 62 | uint64_t{3} << 49 | uint64_t{64} << 32 | 384 >> 4);
  EXPECT_EQ(piece_address(moved, false, 3, 1), 384u + 3 * 128 + 2 * 16);
}

std::vector<uint32_t> counted() {
  std::vector<uint32_t> values(32);
  for (uint32_t i = 0; i < 32; ++i) values[i] = (2 * i + 1) << 16 | 2 * i;
  return values;
}

TEST(MatrixMoves, WhatStmatrixStoresLdmatrixLoads) {
  for (const char* trans : {"", ".trans"}) {
    const std::string t = trans;
    const Outcome outcome =
        run_small({.declarations = tile,
                   .body = "mov.u32 %r0, tile; shl.b32 %r1, %r32, 4; add.s32 %r1, %r1, %r0;\n"
                           "stmatrix.sync.aligned.m8n8.x1" +
                           t +
                           ".shared.b16 [%r1], {%a}; bar.warp.sync -1;\n"
                           "ldmatrix.sync.aligned.m8n8.x1" +
                           t + ".shared.b16 {%d}, [%r1];",
                   .a = counted()});
    EXPECT_EQ(words_of(outcome), counted()) << trans;
  }
}

TEST(MatrixMoves, MovmatrixIsStmatrixReadTransposed) {
  const SmallKernel moved{.body = "movmatrix.sync.aligned.m8n8.trans.b16 %d, %a;", .a = counted()};
  const SmallKernel through{.declarations = tile,
                            .body =
                                "mov.u32 %r0, tile; shl.b32 %r1, %r32, 4; add.s32 %r1, %r1, %r0;\n"
                                "stmatrix.sync.aligned.x1.m8n8.shared.b16 [%r1], {%a}; bar.warp.sync -1;\n"
                                "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%d}, [%r1];",
                            .a = counted()};
  EXPECT_EQ(words_of(run_small(moved)), words_of(run_small(through)));
  EXPECT_NE(words_of(run_small(moved)), counted());
}

constexpr const char* barrier = ".shared .align 8 .b64 gate; .shared .align 4 .b32 value;";

TEST(Mbarrier, AWaitEndsWhenAllHaveArrivedAndAllBytesHaveCome) {
  // Warp 1 waits for warp 0's 32 arrivals; warp 0 writes between.
  const char* wait[] = {"mbarrier.try_wait.parity.shared.b64 %p2, [gate], 0;",
                        "mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p2, [gate], 0;"};
  for (const char* form : wait) {
    const Outcome outcome = run_small(
        {.declarations = barrier,
         .body =
             std::string("setp.eq.u32 %p1, %r32, 0; @%p1 mbarrier.init.shared.b64 [gate], 32; bar.sync 0;\n"
                         "setp.lt.u32 %p1, %r32, 32; @%p1 bra WAIT;\n"
                         "mov.u32 %r1, 7; st.shared.b32 [value], %r1;\n"
                         "mbarrier.arrive.shared.b64 %rd8, [gate]; bra DONE;\nWAIT: ") +
             form + "\n@!%p2 bra WAIT;\nld.shared.b32 %d, [value];\n",
         .threads = 64});
    ASSERT_FALSE(outcome.trap) << outcome.trap->message;
    EXPECT_EQ(words_of(outcome)[0], 7u);
  }
  // Bytes: the phase ends with the last of 16, not with the arrival.
  const Outcome bytes = run_small(
      {.declarations = barrier,
       .body = "mbarrier.init.shared.b64 [gate], 1; mbarrier.arrive.expect_tx.shared.b64 %rd8, [gate], 16;\n"
               "mbarrier.test_wait.shared.b64 %p1, [gate], %rd8; mbarrier.complete_tx.relaxed.cta.shared.b64 "
               "[gate], 16;\n"
               "mbarrier.test_wait.shared.b64 %p2, [gate], %rd8; selp.u32 %r1, 1, 0, %p1; selp.u32 %r2, 2, "
               "0, %p2;\n"
               "or.b32 %d, %r1, %r2;",
       .threads = 1});
  ASSERT_FALSE(bytes.trap) << bytes.trap->message;
  EXPECT_EQ(words_of(bytes)[0], 2u);
}

TEST(Mbarrier, MisuseTraps) {
  const std::pair<const char*, const char*> cases[] = {
      {"mbarrier.arrive.shared.b64 %rd8, [gate];", "no initialised mbarrier"},
      {"mbarrier.init.shared.b64 [gate], 1; mbarrier.inval.shared.b64 [gate]; mbarrier.arrive.shared.b64 _, "
       "[gate];",
       "no initialised mbarrier"},
      {"mbarrier.init.shared.b64 [gate], 0;", "expects 1 to"},
      {"mbarrier.init.shared.b64 [gate], 2; mbarrier.arrive.shared.b64 %rd8, [gate], 3;",
       "more threads arrive"}};
  for (const auto& [body, message] : cases) {
    const Outcome outcome = run_small({.declarations = barrier, .body = body, .threads = 1});
    ASSERT_TRUE(outcome.trap) << body;
    EXPECT_NE(outcome.trap->message.find(message), std::string::npos) << outcome.trap->message;
  }
}

}  // namespace
}  // namespace assay::vm
