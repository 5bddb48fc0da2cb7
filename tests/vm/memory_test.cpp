// Loads, stores, spaces, asynchronous copies, fragments; accesses that trap.
#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace {

std::vector<uint32_t> lane_numbers(uint32_t count) {
  std::vector<uint32_t> result(count);
  for (uint32_t i = 0; i < count; ++i) result[i] = i;
  return result;
}

struct Shape {
  const char* declarations;
  const char* body;
  uint32_t (*expected)(uint32_t);
};

constexpr const char* shared = ".shared .align 16 .b8 s[1024];\n";

const Shape shapes[] = {
    // %pa points at this lane's word of a, a[i] = i; 16 bytes from lane 4j on hold 4j .. 4j+3.
    {"", "and.b64 %rd1, %pa, -16; ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1]; mad.lo.u32 %d, %r4, 100, %r2;",
     [](uint32_t i) { return ((i & ~3u) + 3) * 100 + (i & ~3u) + 1; }},
    {shared,
     ".reg .b128 %q<4>; and.b64 %rd1, %pa, -16; ld.global.b128 %q1, [%rd1]; mov.b128 {%rd2, %rd3}, %q1;\n"
     "mov.b128 %q2, {%rd3, %rd2}; mov.b128 %q3, %q2; and.b32 %r1, %a, -4; shl.b32 %r1, %r1, 2; mov.u32 %r2, "
     "s;\nadd.u32 %r2, %r2, %r1; bar.warp.sync -1; st.shared.b128 [%r2], %q3; ld.shared.u32 %r3, [%r2];\n"
     "ld.shared.u32 %r4, [%r2+12]; mad.lo.u32 %d, %r3, 100, %r4;",
     [](uint32_t i) { return ((i & ~3u) + 2) * 100 + (i & ~3u) + 1; }},
    {"", "mul.lo.u32 %r1, %a, 0x01010180; st.global.b32 [%pd], %r1; ld.global.s8 %d, [%pd];",
     [](uint32_t i) { return static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(i * 0x80))); }},
    {"",
     "mul.lo.u32 %r1, %a, 0x01010180; st.global.b32 [%pd], %r1; ld.global.u16 %h1, [%pd]; cvt.u32.u16 %d, "
     "%h1;",
     [](uint32_t i) { return (i * 0x01010180) & 0xffff; }},
    {"", "st.global.b32 [%pd], -2; ld.global.s32 %rd1, [%pd]; shr.s64 %rd1, %rd1, 1; cvt.u32.u64 %d, %rd1;",
     [](uint32_t) { return 0xffffffffu; }},
    {shared,
     "mov.u64 %rd1, s; shl.b32 %r1, %a, 2; mov.u32 %r2, s; add.u32 %r2, %r2, %r1; st.shared.b32 [%r2+4], %a;"
     "ld.shared.u8 %r3, [%r2+4]; cvta.shared.u64 %rd2, %rd1; mul.wide.u32 %rd3, %a, 4; add.s64 %rd2, %rd2, "
     "%rd3;"
     "ld.b32 %r4, [%rd2+4]; isspacep.shared %p1, %rd2; selp.b32 %r5, 1000, 0, %p1; add.u32 %d, %r3, %r4; "
     "add.u32 %d, %d, %r5;",
     [](uint32_t i) { return 2 * i + 1000; }},
    {"",
     "{ .local .align 8 .b32 l[4]; mov.u64 %rd1, l; add.u32 %r1, %a, 7; st.local.b32 [l+8], %r1; "
     "cvta.local.u64 %rd2, %rd1; ld.b32 %d, [%rd2+8]; }",
     [](uint32_t i) { return i + 7; }},
    {".const .align 4 .b32 table[4] = {10, 20, 0f3F800000, -1};\n",
     "and.b32 %r1, %a, 3; mul.wide.u32 %rd1, %r1, 4; mov.u64 %rd2, table; add.s64 %rd1, %rd1, %rd2; "
     "ld.const.b32 %d, [%rd1];",
     [](uint32_t i) {
       const uint32_t t[] = {10, 20, 0x3f800000, 0xffffffff};
       return t[i % 4];
     }},
    // Even lanes find what the one before has put and swap; odd ones expect another upper half.
    {shared,
     ".reg .b128 %q<4>; and.b32 %r1, %a, 31; shr.u32 %r2, %a, 5; shl.b32 %r2, %r2, 4; mov.u32 %r3, s; "
     "add.u32 %r3, "
     "%r3, %r2;\nmov.u64 %rd1, 0; mov.u64 %rd2, 7; mov.b128 %q0, {%rd1, %rd2}; st.shared.b128 [%r3], %q0; "
     "bar.warp.sync -1;\nadd.u32 %r4, %r1, 1; shr.u32 %r4, %r4, 1; cvt.u64.u32 %rd1, %r4; and.b32 %r5, %r1, "
     "1; mad.lo.u32 %r5, %r5, 9, "
     "%r4; add.u32 %r5, %r5, 7;\ncvt.u64.u32 %rd2, %r5; mov.b128 %q1, {%rd1, %rd2}; add.u64 %rd1, %rd1, 1; "
     "add.u64 "
     "%rd2, %rd2, 1;\nmov.b128 %q2, {%rd1, %rd2}; atom.shared.cas.b128 %q3, [%r3], %q1, %q2; mov.b128 {%rd1, "
     "%rd2}, "
     "%q3;\ncvt.u32.u64 %r6, %rd1; cvt.u32.u64 %r7, %rd2; mad.lo.u32 %d, %r6, 100, %r7;",
     [](uint32_t i) { return (i % 32 + 1) / 2 * 101 + 7; }},
    // Each lane gets what the one before has put, in place.
    {shared,
     ".reg .b128 %q<4>; and.b32 %r1, %a, 31; shr.u32 %r2, %a, 5; shl.b32 %r2, %r2, 4; mov.u64 %rd5, s; "
     "cvta.shared.u64 %rd5, %rd5;\ncvt.u64.u32 %rd6, %r2; add.u64 %rd5, %rd5, %rd6; mov.u64 %rd1, 3; "
     "mov.b128 %q0, "
     "{%rd1, %rd1}; st.b128 [%rd5], %q0;\nbar.warp.sync -1; cvt.u64.u32 %rd1, %r1; add.u64 %rd2, %rd1, 50; "
     "mov.b128 "
     "%q1, {%rd1, %rd2};\natom.exch.b128 %q1, [%rd5], %q1; mov.b128 {%rd1, %rd2}, %q1; cvt.u32.u64 %r6, "
     "%rd1;\n"
     "cvt.u32.u64 %r7, %rd2; mad.lo.u32 %d, %r6, 100, %r7;",
     [](uint32_t i) { return i % 32 == 0 ? 303 : (i % 32 - 1) * 101 + 50; }},
    // Lanes 4j + 1 reach shared memory, 4j + 2 local memory, the others global memory, by one access.
    {shared,
     "{ .local .align 8 .b32 l[4]; mov.u64 %rd1, s; cvta.shared.u64 %rd1, %rd1; mul.wide.u32 %rd2, %a, 4;\n"
     "add.s64 %rd1, %rd1, %rd2; add.u32 %r1, %a, 100; st.b32 [%rd1], %r1; mov.u64 %rd2, l;\n"
     "cvta.local.u64 %rd2, %rd2; add.u32 %r1, %a, 200; st.b32 [%rd2], %r1; and.b32 %r2, %a, 3;\n"
     "setp.eq.u32 %p1, %r2, 1; setp.eq.u32 %p2, %r2, 2; selp.b64 %rd3, %rd1, %pa, %p1;\n"
     "selp.b64 %rd3, %rd2, %rd3, %p2; ld.b32 %r3, [%rd3]; add.u32 %r3, %r3, 1; st.b32 [%rd3], %r3;\n"
     "atom.add.u32 %r4, [%rd3], 5; ld.b32 %r5, [%rd3]; mad.lo.u32 %d, %r4, 1000, %r5; }",
     [](uint32_t i) {
       const uint32_t was = i % 4 == 1 ? i + 100 : i % 4 == 2 ? i + 200 : i;
       return (was + 1) * 1000 + was + 6;
     }},
    {"", "mov.b64 %rd1, {%a, %a}; st.global.b32 [%pd], %rd1; ld.global.b32 %d, [%pd];",
     [](uint32_t i) { return i; }},
    {"", "setp.gt.u32 %p1, %a, 9; @%p1 ld.global.b32 %d, [%pa]; @!%p1 mov.u32 %d, 77;",
     [](uint32_t i) { return i > 9 ? i : 77; }},
};

TEST(Memory, LoadsAndStoresReachEverySpaceAtEveryWidth) {
  for (const Shape& shape : shapes) {
    const Outcome outcome =
        run_small({.declarations = shape.declarations, .body = shape.body, .a = lane_numbers(32)});
    ASSERT_FALSE(outcome.trap) << outcome.trap->message;
    for (uint32_t i = 0; i < 32; ++i)
      EXPECT_EQ(words_of(outcome)[i], shape.expected(i)) << shape.body << " lane " << i;
  }
}

struct Fault {
  const char* body;
  const char* kind;
  uint32_t thread;
  const char* message;
};

// The a buffer holds 32 words; %at is 4 times the thread's number.
const Fault faults[] = {
    {"ld.global.b32 %d, [%pa+4];", "out-of-bounds", 31,
     "ld.global.b32 of 4 bytes reaches a[t=32], 0 bytes past the end of a [T=32]"},
    {"ld.global.b32 %d, [%pa+-4];", "out-of-bounds", 0, "reaches a[t=-1], 4 bytes before a [T=32]"},
    {"ld.global.v2.b32 {%d, %r1}, [%pa];", "misaligned", 1,
     "ld.global.v2.b32 of 8 bytes is not aligned: a[t=1]"},
    {"add.s64 %pd, %pd, 2; st.global.b32 [%pd], %d;", "misaligned", 0, "d[t=0] + 2 bytes"},
    {"mov.u64 %rd1, 0; ld.global.b32 %d, [%rd1];", "out-of-bounds", 0,
     "the null pointer of an absent argument"},
    {"mov.u64 %rd1, 8; ld.global.b32 %d, [%rd1];", "out-of-bounds", 0,
     "the null pointer of an absent argument + 8 bytes"},
    {"mov.u64 %rd1, 0x7fffffff0000; ld.global.b32 %d, [%rd1];", "out-of-bounds", 0,
     "an address far from every tensor"},
    {"ld.shared.b32 %d, [128];", "out-of-bounds", 0, "shared memory at byte 128 of 64"},
    {"mov.u32 %r1, -4; ld.shared.b32 %d, [%r1];", "out-of-bounds", 0, "shared memory at byte -4 of 64"},
    {"setp.eq.u32 %p1, %a, 5; mul.wide.u32 %rd1, %a, 0x1000000; add.s64 %pa, %pa, %rd1; @%p1 ld.global.b32 "
     "%d, [%pa];",
     "out-of-bounds", 5, "past the end of a"},
};

TEST(Memory, AGridThatNoGpuTakesIsATrapOfTheLaunch) {
  TensorMap inputs;
  Program plan = plan_of({.body = "mov.u32 %d, 1;", .threads = 32}, inputs);
  plan.launches[0].grid = {1, 65536, 1};
  const Outcome outcome = run(plan, inputs, {"sm_90", 1, 0});
  ASSERT_TRUE(outcome.trap);
  EXPECT_EQ(outcome.trap->kind, TrapKind::launch);
  EXPECT_EQ(outcome.trap->message,
            "test: the launch of k has a grid of 65536 blocks in y; no GPU takes more than 65535 there");
  plan.launches[0].grid = {70000, 1, 1};  // the last block lies beyond the tensors, the first does not
  plan.blocks = "0,last";
  EXPECT_EQ(run(plan, inputs, {"sm_90", 1, 0}).trap->block[0], 69999u);
  plan.blocks = "0";
  EXPECT_FALSE(run(plan, inputs, {"sm_90", 1, 0}).trap);
}

TEST(Memory, AFaultNamesTheThreadAndTheElement) {
  for (const Fault& fault : faults) {
    const Outcome outcome = run_small({.body = fault.body, .a = lane_numbers(32), .shared_bytes = 64});
    ASSERT_TRUE(outcome.trap) << fault.body;
    EXPECT_EQ(name_of(outcome.trap->kind), fault.kind) << outcome.trap->message;
    EXPECT_EQ(outcome.trap->thread[0], fault.thread) << outcome.trap->message;
    EXPECT_NE(outcome.trap->message.find(fault.message), std::string::npos) << outcome.trap->message;
    EXPECT_EQ(outcome.trap->where.function, "k");
    EXPECT_EQ(outcome.trap->where.ptx_line, 13);
  }
}

TEST(Memory, OutputsSharedMemoryAndRegistersStartPoisoned) {
  EXPECT_EQ(first_word({.body = "ld.global.b32 %d, [%pd];"}), 0xffffffffu);
  EXPECT_EQ(first_word({.body = "ld.shared.b32 %d, [8];", .shared_bytes = 64}), 0xffffffffu);
  EXPECT_EQ(first_word({.body = "mov.b32 %d, %r20;"}), 0xffffffffu);
}

TEST(Memory, InputsAreCopiesThatAKernelMayOverwrite) {
  SmallKernel kernel{.body = "st.global.b32 [%pa], 9; ld.global.b32 %d, [%pa];", .a = lane_numbers(32)};
  TensorMap inputs;
  const Program plan = plan_of(kernel, inputs);
  const Outcome outcome = run(plan, inputs, {"sm_90", 1, 0});
  EXPECT_EQ(words_of(outcome)[3], 9u);
  EXPECT_EQ(inputs.at("a").bits(3), 3u);
}

constexpr const char* copy =
    "mov.u32 %r1, s; shl.b32 %r2, %a, 2; add.u32 %r1, %r1, %r2; st.shared.b32 [%r1], 1000;"
    "cp.async.ca.shared.global [%r1], [%pa], 4; cp.async.commit_group;"
    "cp.async.ca.shared.global [%r1+128], [%pb], 4; cp.async.commit_group;";

TEST(AsyncCopy, DataLandAtTheWaitThatCoversThem) {
  const auto word = [](const std::string& wait, const char* offset) {
    SmallKernel kernel{.declarations = shared,
                       .body = std::string(copy) + wait + "ld.shared.b32 %d, [%r1" + offset + "];",
                       .a = lane_numbers(32),
                       .b = {7}};
    const Outcome outcome = run_small(kernel);
    return outcome.trap ? 0xdeadu : words_of(outcome)[5];
  };
  EXPECT_EQ(word("cp.async.wait_group 1;", "+0"), 5u);
  EXPECT_EQ(word("cp.async.wait_group 1;", "+128"), 0xffffffffu);  // the newest group is still in flight
  EXPECT_EQ(word("cp.async.wait_group 0;", "+128"), 7u);
  EXPECT_EQ(word("cp.async.wait_all;", "+128"), 7u);
  EXPECT_EQ(word("", "+0"), 1000u);  // a missing wait shows the old contents
  EXPECT_EQ(word("cp.async.wait_group 2;", "+0"), 1000u);
}

TEST(AsyncCopy, WhatWasNotCommittedWaitsForWaitAll) {
  SmallKernel kernel{.declarations = shared,
                     .body =
                         "mov.u32 %r1, s; st.shared.b32 [%r1], 3; cp.async.ca.shared.global [%r1], [%pa], 4; "
                         "cp.async.wait_group 0; ld.shared.b32 %d, [%r1];",
                     .a = {9}};
  EXPECT_EQ(first_word(kernel), 3u);
  kernel.body.replace(kernel.body.find("cp.async.wait_group 0;"), 22, "cp.async.wait_all;");
  EXPECT_EQ(first_word(kernel), 9u);
}

TEST(AsyncCopy, ASmallerSourceIsFilledWithZerosAndReadsNoFurther) {
  // Sixteen bytes per lane; the last lanes have only part of their source inside the buffer.
  SmallKernel kernel{.declarations = shared, .a = lane_numbers(32)};
  kernel.body =
      "mov.u32 %r1, s; shl.b32 %r2, %a, 4; add.u32 %r1, %r1, %r2; mul.wide.u32 %rd1, %a, 12; add.s64 %rd1, "
      "%pa, %rd1;"
      "mov.u32 %r3, 8; setp.lt.u32 %p1, %a, 8; @!%p1 mov.u32 %r3, 0;"
      "cp.async.cg.shared.global [%r1], [%rd1], 16, %r3; cp.async.wait_all; ld.shared.v4.b32 {%r4, %r5, %r6, "
      "%r7}, [%r1];"
      "mad.lo.u32 %d, %r5, 100, %r4; add.u32 %d, %d, %r6; add.u32 %d, %d, %r7;";
  const Outcome outcome = run_small(kernel);
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(words_of(outcome)[i], i < 8 ? (4 * i + 1) * 100 + 4 * i : 0u);
}

TEST(AsyncCopy, AFaultyCopyTrapsWhereItIsIssued) {
  const Outcome outcome =
      run_small({.declarations = shared,
                 .body = "mov.u32 %r1, s; cp.async.cg.shared.global [%r1], [%pa+-8], 16; cp.async.wait_all;",
                 .a = {1}});
  ASSERT_TRUE(outcome.trap);
  EXPECT_EQ(outcome.trap->kind, TrapKind::out_of_bounds);
  EXPECT_NE(outcome.trap->message.find("8 bytes before a"), std::string::npos) << outcome.trap->message;
}

TEST(Matrix, LoadMatrixGivesRowsAndColumnsToTheLanesOfTheIsa) {
  // shared element (row r of matrix m, column c) = 100 m + 8 r + c, as 16-bit integers.
  const auto fragment = [](const char* form, int matrix) {
    SmallKernel kernel{.declarations = shared, .a = lane_numbers(32)};
    kernel.body =
        "mov.u32 %r1, s; shl.b32 %r2, %a, 4; add.u32 %r1, %r1, %r2;"  // row address of this lane: 16 bytes
                                                                      // each
        "and.b32 %r3, %a, 7; shl.b32 %r3, %r3, 3; shr.u32 %r4, %a, 3; mad.lo.u32 %r3, %r4, 100, %r3; "
        "cvt.u16.u32 %h1, %r3;"
        "add.s16 %h2, %h1, 1; add.s16 %h3, %h1, 2; add.s16 %h4, %h1, 3; add.s16 %h5, %h1, 4; add.s16 %h6, "
        "%h1, 5; add.s16 %h7, %h1, 6; add.s16 %h8, %h1, 7;"
        "st.shared.v4.b16 [%r1], {%h1, %h2, %h3, %h4}; st.shared.v4.b16 [%r1+8], {%h5, %h6, %h7, %h8}; "
        "bar.warp.sync -1;" +
        std::string(form) + " mov.b32 %d, %r1" + std::to_string(matrix) + ";";
    const Outcome outcome = run_small(kernel);
    EXPECT_FALSE(outcome.trap) << outcome.trap->message;
    return words_of(outcome);
  };
  const char* plain = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r1];";
  const char* transposed = "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r10, %r11}, [%r1];";
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t first = 300 + 8 * (lane / 4) + 2 * (lane % 4);
    EXPECT_EQ(fragment(plain, 3)[lane], (first + 1) << 16 | first);
    const uint32_t upper = 100 + 8 * (2 * (lane % 4)) + lane / 4;
    EXPECT_EQ(fragment(transposed, 1)[lane], (upper + 8) << 16 | upper);
  }
}

TEST(Matrix, MultiplyUsesTheChosenArchitecture) {
  // Row 0 times column 0: 1 and four products of 2^-25. With 25 fraction bits they make one unit, with 24
  // none.
  SmallKernel kernel{.a = lane_numbers(32)};
  kernel.body =
      "mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r5, 0; mov.u32 %r6, 0; "
      "mov.f32 %f5, 0f00000000;"
      "setp.eq.u32 %p1, %a, 0; setp.lt.u32 %p2, %a, 2; @%p1 mov.u32 %r1, 0x00003f80; @%p1 mov.u32 %r5, "
      "0x00003f80;"
      "@%p2 mov.u32 %r3, 0x39803980; @%p2 mov.u32 %r6, 0x39003900;"
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%d, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, "
      "%r6}, {%f5, %f5, %f5, %f5};";
  EXPECT_EQ(words_of(run_small(kernel))[0], 0x3f800001u);
  kernel.arch = "sm_80";
  EXPECT_EQ(words_of(run_small(kernel))[0], 0x3f800000u);
  kernel.body +=
      "setp.lt.u32 %p1, %a, 9; @%p1 bra OVER; mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%d, %f2, "
      "%f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f5, %f5, %f5}; OVER:";
  ASSERT_TRUE(run_small(kernel).trap);
}

TEST(Exponentials, TheRangeOfArgumentsCoversActiveLanesOnly) {
  SmallKernel kernel{.body = "setp.lt.u32 %p1, %c, 4; @%p1 ex2.approx.ftz.f32 %d, %a;",
                     .a = std::vector<uint32_t>(32, 0x42c80000),
                     .c = lane_numbers(32)};
  kernel.a[0] = 0xbf800000;  // -1
  kernel.a[1] = 0x40400000;  // 3
  kernel.a[2] = 0xff800000;  // -inf: left out
  kernel.a[3] = 0x7fc00000;  // NaN: counted apart; lane 4 and above hold 100
  const Outcome outcome = run_small(kernel);
  ASSERT_EQ(outcome.exponents.size(), 1u);
  EXPECT_EQ(outcome.exponents[0].min, -1);
  EXPECT_EQ(outcome.exponents[0].max, 3);
  EXPECT_EQ(outcome.exponents[0].count, 4u);
  EXPECT_EQ(outcome.exponents[0].nans, 1u);
  EXPECT_EQ(outcome.exponents[0].instruction, "ex2.approx.ftz.f32");
  EXPECT_EQ(outcome.exponents[0].where.ptx_line, 13);
}

TEST(Exponentials, ArgumentsOfSixteenBitsCountAsTheirValues) {
  struct {
    const char* body;
    uint32_t argument;
    double min, max;
    uint64_t count, nans;
  } const rows[] = {
      {"mov.b32 {%h1, %h2}, %a; ex2.approx.f16 %h3, %h1; mov.b32 %d, {%h3, %h2};", 0x7c00c500, -5, -5, 32, 0},
      {"ex2.approx.f16x2 %d, %a;", 0x4200c500, -5, 3, 64, 0},            // 3 and -5
      {"ex2.approx.ftz.bf16x2 %d, %a;", 0x7fc0c120, -10, -10, 64, 32}};  // NaN and -10
  for (const auto& row : rows) {
    const Outcome outcome = run_small({.body = row.body, .a = {row.argument}});
    ASSERT_EQ(outcome.exponents.size(), 1u) << row.body;
    EXPECT_EQ(outcome.exponents[0].min, row.min) << row.body;
    EXPECT_EQ(outcome.exponents[0].max, row.max) << row.body;
    EXPECT_EQ(outcome.exponents[0].count, row.count) << row.body;
    EXPECT_EQ(outcome.exponents[0].nans, row.nans) << row.body;
  }
}

TEST(Plans, WhatDoesNotFitTheEntryIsBadInput) {
  const auto refuses = [](void (*change)(Program&), const std::string& text) {
    TensorMap inputs;
    Program plan = plan_of({.body = ""}, inputs);
    change(plan);
    try {
      run(plan, inputs, {"sm_90", 1, 0});
      ADD_FAILURE() << "accepted: " << text;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  };
  refuses([](Program& p) { p.launches[0].function = "q"; }, "no entry q; the module has: k");
  refuses([](Program& p) { p.launches[0].module = "x"; }, "names module x, which the program lacks");
  refuses([](Program& p) { p.launches[0].arguments.pop_back(); }, "has 3 arguments, the entry takes 4");
  refuses([](Program& p) { p.launches[0].arguments[0] = int32_t{1}; },
          "argument 0 (pa) has 4 bytes, the entry expects 8");
  refuses(
      [](Program& p) {
        p.launches[0].arguments[0] = PointerArgument{"z", 0};
      },
      "names z, which is no buffer");
  refuses([](Program& p) { p.launches[0].block = {1025, 1, 1}; }, "a block of 1025 threads");
  refuses([](Program& p) { p.launches[0].grid = {0, 1, 1}; }, "an empty grid");
  refuses([](Program& p) { p.launches[0].shared_bytes = 300000; }, "of shared memory");
  refuses([](Program& p) { p.workspaces.push_back({"a", 4}); }, "two buffers are named a");
}

/// The phase that lane 0 waits for ends when its copies have landed: with .noinc the arrival is the expected
/// one, without it is one more.
TEST(AsyncCopy, MayEndAPhaseOfAnMbarrier) {
  const auto word = [](const std::string& arrivals, const std::string& from) {
    SmallKernel kernel{.declarations = ".shared .align 8 .b64 gate; .shared .align 16 .b8 s[256];",
                       .body =
                           "mov.u32 %r1, s; mov.u32 %r2, gate; shl.b32 %r3, %r32, 2; add.s32 %r1, %r1, %r3;\n"
                           "setp.eq.u32 %p1, %r32, 0; @%p1 mbarrier.init.shared.b64 [%r2], 32; bar.sync 0;\n"
                           "cp.async.ca.shared.global [%r1], [%pa], 4;\n" +
                           arrivals + from,
                       .a = {5}};
    return first_word(kernel);
  };
  const std::string once = "cp.async.mbarrier.arrive.noinc.shared.b64 [%r2];",
                    extra = "cp.async.mbarrier.arrive.shared::cta.b64 [gate];",
                    phase = "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 0; selp.u32 %d, 1, 0, %p2;",
                    data = "ld.shared.b32 %d, [%r1];";
  EXPECT_EQ(word(once, data), 5u);
  EXPECT_EQ(word(once, phase), 1u);
  EXPECT_EQ(word(extra, data), 5u);
  EXPECT_EQ(word(extra, phase), 0u) << "the 32 arrivals are still to come";
  EXPECT_EQ(word(extra + " mbarrier.arrive.shared.b64 %rd1, [%r2];", phase), 1u);
  EXPECT_NE(word("", data), 5u) << "nothing waits for the copies";
}

}  // namespace
}  // namespace assay::vm
