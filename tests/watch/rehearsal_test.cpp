// Parts of kernels that run once without notes, and again with them where something is not finite.
#include "src/base/watch/rehearsal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "src/base/watch/function_text.h"
#include "src/base/watch/watched_program.h"
#include "tests/vm/drawn_program.h"
#include "tests/vm/small_kernel.h"
#include "tests/watch/traced_and_noted.h"

namespace assay::watch {
namespace rehearsal_test {

/// "3 gates 1 leaves 0" of instructions, or "none".
std::string part_of(const std::string& body) {
  const std::string text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry f(.param .u32 n)\n{\n.reg .f32 %f<9>;\n"
      ".reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .pred %p<9>;\n" +
      body + "\nret;\n}\n";
  const ptx::Module module = ptx::parse(text, "f.ptx");
  std::vector<vm::TextSignature> signatures;
  for (const ptx::Instruction& in : module.functions[0].body) signatures.push_back(vm::signature_of(in));
  const std::vector<int> depth(signatures.size(), 1);
  const std::optional<Rehearsal> part = rehearsal_of({module.functions[0], signatures, depth});
  if (!part) return "none";
  return fmt::format("{} gates {} leaves {}", std::count(part->holds.begin(), part->holds.end(), true),
                     part->gates.size(), part->leaves.size());
}

const std::string sum = "mul.f32 %f1, %f2, %f2; ", barrier = "bar.sync 0; ",
                  store = "st.global.f32 [%rd1], %f1; ",
                  lanes = "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; ",
                  blocks = "ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 0; ";

TEST(Rehearsal, EndsAtTheLastBarrierBeforeOthersSeeSomething) {
  EXPECT_EQ(part_of(sum + barrier + store), "1 gates 1 leaves 0");
  EXPECT_EQ(part_of(sum + barrier + sum + barrier + store), "3 gates 1 leaves 0");
  EXPECT_EQ(part_of(sum + "st.shared.f32 [%r1], %f1; " + barrier + store), "2 gates 1 leaves 0");
  EXPECT_EQ(part_of(sum + store + barrier + store), "none");
  for (const char* seen : {"atom.global.add.u32 %r1, [%rd1], 1; ", "ld.volatile.global.u32 %r1, [%rd1]; ",
                           "membar.gl; ", "bar.sync 1; ", "bar.sync 0, 64; ", "bar.arrive 0, 64; "})
    EXPECT_EQ(part_of(sum + seen + barrier + store), "none") << seen;
}

TEST(Rehearsal, IsNotOfALoopThatGoesOnBehindIt) {
  const std::string loop =
      "AGAIN: " + sum + barrier + store + "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra AGAIN; ";
  EXPECT_EQ(part_of("mov.u32 %r1, 0; " + loop), "none");
}

/// What it goes through again aside is tested seldom, whatever registers are left: it is compiled faster.
TEST(Rehearsal, WhatItGoesThroughAgainHasFewTests) {
  const auto tests = [](const std::string& end) {
    std::string body;
    for (int i = 1; i < 31; ++i) body += fmt::format("rcp.approx.f32 %f{}, %f0; bar.warp.sync -1;\n", i);
    const std::string text =
        ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry f()\n.reqntid 1024\n"
        "{\n.reg .f32 %f<32>;\n.reg .b64 %rd<2>;\n" +
        body + end + "ret;\n}\n";
    WatchOptions cold;
    cold.marks_cold_code = true, cold.own_registers = 60;
    const std::string made = rewritten(text, ptx::parse(text, "f.ptx"), cold).ptx;
    int count = 0;
    for (size_t at = 0; (at = made.find("vote.sync", at)) != made.npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(tests("bar.sync 0;\nst.global.f32 [%rd1], %f1;\n"), 1);
  EXPECT_GT(tests("st.global.f32 [%rd1], %f1;\n"), 1);
}

TEST(Rehearsal, ThreadsThatLeaveItDoNothingForOthers) {
  const std::string leaves = "@%p1 bra OUT; ", out = "OUT: ";
  EXPECT_EQ(part_of(lanes + leaves + sum + barrier + store + out), "4 gates 1 leaves 1");
  EXPECT_EQ(part_of(lanes + "st.shared.f32 [%r1], %f1; " + leaves + sum + barrier + store + out), "none");
  EXPECT_EQ(part_of(lanes + leaves + sum + barrier + store + "bra END; " + out + store + barrier + "END: "),
            "none");
}

TEST(Rehearsal, ThreadsComeToTheSameBarriers) {
  const std::string one = "@%p1 bra ONE; ",
                    loop = "AGAIN: " + barrier +
                           "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra AGAIN; ";
  EXPECT_EQ(part_of(lanes + one + sum + "ONE: " + barrier + store), "4 gates 1 leaves 0");
  EXPECT_EQ(part_of(lanes + one + barrier + "ONE: " + barrier + store), "none");
  EXPECT_EQ(part_of(blocks + one + barrier + "ONE: " + barrier + store), "4 gates 1 leaves 0");
  EXPECT_EQ(part_of("mov.u32 %r1, %tid.x; " + loop + barrier + store), "none");
  EXPECT_EQ(part_of("mov.u32 %r1, %ctaid.x; " + loop + barrier + store), "5 gates 1 leaves 0");
  // A count that begins otherwise in some threads.
  const std::string counted = "AGAIN: " + barrier +
                              "add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 9; @%p2 bra AGAIN; " + barrier +
                              store;
  EXPECT_EQ(part_of(lanes + "mov.u32 %r2, 0; " + one + "mov.u32 %r2, 1; ONE: " + counted), "none");
  EXPECT_EQ(part_of(blocks + "mov.u32 %r2, 0; " + one + "mov.u32 %r2, 1; ONE: " + counted),
            "9 gates 1 leaves 0");
}

uint32_t bits(float x) {
  return std::bit_cast<uint32_t>(x);
}

TracedAndNoted of_body(const std::string& body, std::vector<uint32_t> a, std::vector<uint32_t> b) {
  a.resize(64, bits(1)), b.resize(64, bits(1));
  TensorMap inputs;
  const Program program = vm::plan_of({.declarations = ".shared .align 4 .b8 room[256];",
                                       .body = body,
                                       .a = std::move(a),
                                       .b = std::move(b),
                                       .threads = 64},
                                      inputs);
  return traced_and_noted(program, inputs);
}

/// A sum over the block by shared memory, with exponentials of what is left over; twice in a loop.
const std::string softmax =
    "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, room; add.s32 %r4, %r3, %r2; mov.b32 %f9, 0; "
    "mov.u32 %r9, 0;\n"
    "AGAIN: bar.sync 0;\nmul.rn.f32 %f1, %a, %b; st.shared.f32 [%r4], %f1; bar.sync 0;\n"
    "mov.b32 %f2, 0; mov.u32 %r5, 0;\n"
    "SUM: shl.b32 %r6, %r5, 2; add.s32 %r7, %r3, %r6; ld.shared.f32 %f3, [%r7]; add.rn.f32 %f2, %f2, %f3; "
    "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 64; @%p1 bra SUM;\n"
    "sub.rn.f32 %f4, %a, %f2; mul.rn.f32 %f5, %f4, 0f3FB8AA3B; ex2.approx.ftz.f32 %f6, %f5; rcp.approx.f32 "
    "%f7, "
    "%f1; fma.rn.f32 %f9, %f9, %f6, %f7; cvt.rn.f16.f32 %h1, %f7; { .reg .f32 %in; add.rn.f32 %in, %f9, %f2; "
    "mul.rn.f32 %f10, %in, %in; }\n"
    "add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 2; @%p2 bra AGAIN;\n"
    "cvt.u32.u16 %r10, %h1; mov.b32 %r11, %f10; bar.sync 0; mov.b32 %r12, %f9; xor.b32 %d, %r10, %r11; "
    "xor.b32 "
    "%d, %d, %r12;";

TEST(Rehearsal, BlocksBeginAnewWhereSomethingIsNotFinite) {
  const TracedAndNoted finite = of_body(softmax, {}, {});
  EXPECT_NE(finite.text.find("bar.red.or.pred"), std::string::npos) << finite.text;
  EXPECT_TRUE(finite.same_outputs && finite.noted.empty());
  EXPECT_LT(finite.added, 0.2);
  const float values[] = {0, 2, -INFINITY, INFINITY, NAN, 3e38f, -3e38f, 1e-6f};
  int births = 0;
  for (const float a : values)
    for (const float b : values) {
      const TracedAndNoted s = of_body(softmax, {bits(1), bits(a)}, {bits(2), bits(b)});
      EXPECT_TRUE(s.same_outputs && s.same_trap) << a << " " << b;
      EXPECT_EQ(s.traced, s.noted) << a << ", " << b;
      births += static_cast<int>(s.noted.size());
    }
  EXPECT_GT(births, 50);
}

TEST(Rehearsal, MasksOfMinusInfinityAreNoReasonToBeginAnew) {
  const std::string masked =
      "setp.gt.f32 %p1, %b, 0f3F800000; selp.f32 %f0, %a, 0fFF800000, %p1; sub.rn.f32 %f1, %f0, %a; "
      "mul.rn.f32 "
      "%f2, %f1, 0f3FB8AA3B; ex2.approx.ftz.f32 %f3, %f2; add.rn.f32 %f4, %f3, %a; mul.rn.f32 %f5, %f4, %a; "
      "mul.rn.f32 "
      "%f6, %f5, %a; mul.rn.f32 %f7, %f6, %a; mul.rn.f32 %f8, %f7, %a; bar.sync 0; mov.b32 %d, %f8;";
  const double finite = of_body(masked, {}, std::vector<uint32_t>(64, bits(2))).added,
               some = of_body(masked, {}, {}).added, overflows = of_body(masked, {bits(3e38f)}, {}).added;
  EXPECT_EQ(some, finite);
  EXPECT_GT(overflows, finite + 1);
}

// Masks that sums of products begin with are not told from births there.
TEST(Rehearsal, SumsThatBeginWithInfinitiesAreNotRehearsed) {
  const auto made = [&](const std::string& begin) {
    std::string body = "setp.gt.f32 %p1, %b, 0f3F800000; selp.f32 %f1, " + begin + ", 0f00000000, %p1; ";
    for (int i = 0; i < 4; ++i)
      body +=
          "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f2, %f3, %f4, %f5}, {%r20, %r20}, {%r20}, "
          "{%f1, %f1, %f1, %f1}; ex2.approx.f32 %f6, %f2; add.rn.f32 %f7, %f6, %f6; ";
    return of_body("mov.b32 %r20, 0; " + body + "bar.sync 0; mov.b32 %d, %f7;", {}, {});
  };
  EXPECT_NE(made("0f3F800000").text.find("bar.red.or.pred"), std::string::npos);
  const TracedAndNoted masked = made("0fFF800000");
  EXPECT_EQ(masked.text.find("bar.red.or.pred"), std::string::npos);
  EXPECT_EQ(masked.traced, masked.noted);
}

// One instruction alone makes something of which a test has to tell: on one way a later value would, or
// beside a register that something else was written to.
TEST(Rehearsal, WhatIsToldOnSomeWaysAloneIsTested) {
  std::string finite;
  for (int i = 0; i < 8; ++i) finite += fmt::format("fma.rn.f32 %f{}, %b, %b, %b; ", 10 + i);
  const std::string end = "bar.sync 0; xor.b32 %d, %d, %r20;";
  const std::string bodies[] = {
      "rcp.approx.f32 %f1, %a; mov.b32 %r20, %f1; setp.gt.f32 %p1, %b, 0f40000000; @%p1 bra SKIP; add.rn.f32 "
      "%f2, %f1, %b; mov.b32 %r20, %f2; SKIP: ",
      "setp.gt.f32 %p1, %b, 0f40000000; selp.f32 %f3, 0fFF61B1E6, %b, %p1; sub.rn.f32 %f1, %f3, 0f7F61B1E6; "
      "mov.b32 %f3, 0fFF800000; mul.rn.f32 "
      "%f2, "
      "%f1, 0f3FB8AA3B; ex2.approx.f32 %f4, %f2; mov.b32 %r20, %f4; ",
      "rcp.approx.f32 %f1, %a; mov.b32 %r20, %f1; setp.gt.f32 %p1, %b, 0f40000000; @!%p1 add.rn.f32 %f1, "
      "%f1, %b; ",
  };
  for (const std::string& body : bodies) {
    const TracedAndNoted s =
        of_body(body + finite + end, std::vector<uint32_t>(64, bits(0)), std::vector<uint32_t>(64, bits(3)));
    EXPECT_NE(s.text.find("bar.red.or.pred"), std::string::npos) << body;
    EXPECT_EQ(s.noted.size(), 1u) << body;
    EXPECT_EQ(s.traced, s.noted) << body;
  }
}

TEST(Rehearsal, OfRandomProgramsLeavesTheSameBitsAndBirths) {
  int births = 0, rehearsed = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    vm::DrawnProgram drawing(seed + 5000, seed % 2 == 1);  // with shared memory, too
    const std::string body = drawing.body() + "bar.sync 0;\n";
    TensorMap inputs;
    const auto a = drawing.words(), b = drawing.words(), c = drawing.words();
    const Program program = vm::plan_of({.body = body, .a = a, .b = b, .c = c}, inputs);
    const TracedAndNoted made = traced_and_noted(program, inputs);
    ASSERT_TRUE(made.same_outputs && made.same_trap) << "seed " << seed << body;
    ASSERT_EQ(made.traced, made.noted) << "seed " << seed << vm::text_of({.body = body}) << made.text;
    births += static_cast<int>(made.noted.size());
    rehearsed += made.text.find("bar.red.or.pred") != made.text.npos;
  }
  EXPECT_GT(births, 300);
  EXPECT_GT(rehearsed, 200);
}

}  // namespace rehearsal_test
}  // namespace assay::watch
