// Divergence and reconvergence, calls, branch tables, exits.
#include <gtest/gtest.h>

#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace {

std::vector<uint32_t> lane_numbers(uint32_t count) {
  std::vector<uint32_t> result(count);
  for (uint32_t i = 0; i < count; ++i) result[i] = i;
  return result;
}

struct Shape {
  const char* name;
  const char* body;  ///< %a is the thread's number
  uint32_t (*expected)(uint32_t);
};

const Shape shapes[] = {
    {"if without else", "setp.lt.u32 %p1, %a, 7; @%p1 bra SKIP; mov.u32 %d, 5; SKIP: add.u32 %d, %d, 1;",
     [](uint32_t i) { return i < 7 ? 1u : 6u; }},
    {"nested ifs",
     "and.b32 %r1, %a, 1; setp.ne.b32 %p1, %r1, 0; @%p1 bra ODD;"
     "setp.lt.u32 %p2, %a, 8; @%p2 bra LOW; mov.u32 %d, 1; bra JOIN; LOW: mov.u32 %d, 2; bra JOIN;"
     "ODD: setp.lt.u32 %p2, %a, 16; @!%p2 bra HIGH; mov.u32 %d, 3; bra JOIN; HIGH: mov.u32 %d, 4;"
     "JOIN: activemask.b32 %r2; setp.eq.b32 %p3, %r2, -1; @!%p3 mov.u32 %d, 99;",
     [](uint32_t i) { return i % 2 ? (i < 16 ? 3u : 4u) : (i < 8 ? 2u : 1u); }},
    {"loop with a trip count per lane",
     "mov.u32 %r1, 0; LOOP: setp.ge.u32 %p1, %r1, %a; @%p1 bra OUT; add.u32 %d, %d, 3; add.u32 %r1, %r1, 1; "
     "bra LOOP;"
     "OUT: activemask.b32 %r2; setp.eq.b32 %p3, %r2, -1; @!%p3 mov.u32 %d, 99;",
     [](uint32_t i) { return 3 * i; }},
    {"loop tested at its end",
     "mov.u32 %r1, 0; LOOP: add.u32 %d, %d, %r1; add.u32 %r1, %r1, 1; setp.le.u32 %p1, %r1, %a; @%p1 bra "
     "LOOP;",
     [](uint32_t i) { return i * (i + 1) / 2; }},
    {"break out of two loops",
     "mov.u32 %r1, 0; OUTER: mov.u32 %r2, 0;"
     "INNER: add.u32 %d, %d, 1; setp.gt.u32 %p1, %d, %a; @%p1 bra BREAK; add.u32 %r2, %r2, 1; setp.lt.u32 "
     "%p2, %r2, 4; @%p2 bra INNER;"
     "add.u32 %r1, %r1, 1; setp.lt.u32 %p3, %r1, 4; @%p3 bra OUTER; mov.u32 %d, 100; BREAK: add.u32 %d, %d, "
     "1000;",
     [](uint32_t i) { return i + 1 <= 16 && i < 16 ? i + 1 + 1000 : 1100u; }},
    {"continue",
     "mov.u32 %r1, 0; LOOP: add.u32 %r1, %r1, 1; and.b32 %r2, %r1, %a; setp.ne.b32 %p1, %r2, 0; @%p1 bra "
     "NEXT; add.u32 %d, %d, 1;"
     "NEXT: setp.lt.u32 %p2, %r1, 8; @%p2 bra LOOP;",
     [](uint32_t i) {
       uint32_t n = 0;
       for (uint32_t r = 1; r <= 8; ++r) n += (r & i) == 0;
       return n;
     }},
    {"a loop that nothing but a guarded return ends",
     "mov.u32 %r1, 0; LOOP: and.b32 %r2, %a, 1; setp.ne.b32 %p1, %r2, 0; @%p1 bra ODD; add.u32 %d, %d, 1;"
     "ODD: activemask.b32 %r3; setp.eq.b32 %p3, %r3, -1; @%p3 add.u32 %d, %d, 100; st.global.b32 [%pd], %d;"
     "add.u32 %r1, %r1, 1; setp.ge.u32 %p2, %r1, 4; @%p2 ret; bra LOOP;",
     [](uint32_t i) { return i % 2 ? 400u : 404u; }},
    {"early return of some lanes before a barrier",
     "mov.u32 %d, 4; st.global.b32 [%pd], %d; setp.lt.u32 %p1, %a, 10; @%p1 ret; bar.sync 0; mov.u32 %d, 8;",
     [](uint32_t i) { return i < 10 ? 4u : 8u; }},
    {"a jump to the common return",
     "mov.u32 %d, 4; st.global.b32 [%pd], %d; setp.lt.u32 %p1, %a, 10; @%p1 bra OUT; bar.sync 0; mov.u32 %d, "
     "8; bra DONE; OUT: ret;",
     [](uint32_t i) { return i < 10 ? 4u : 8u; }},
    {"work before an early exit",
     "setp.lt.u32 %p1, %a, 10; @!%p1 bra REST; mov.u32 %d, 3; st.global.b32 [%pd], %d; exit; REST: bar.sync "
     "0; mov.u32 %d, 8;",
     [](uint32_t i) { return i < 10 ? 3u : 8u; }},
    {"branch table",
     "and.b32 %r1, %a, 3; ts: .branchtargets T0, T1, T2, T1; brx.idx %r1, ts;"
     "T0: mov.u32 %d, 10; bra END; T1: mov.u32 %d, 11; bra END; T2: mov.u32 %d, 12; END: activemask.b32 %r2; "
     "setp.eq.b32 %p3, %r2, -1; @!%p3 mov.u32 %d, 99;",
     [](uint32_t i) {
       const uint32_t table[] = {10, 11, 12, 11};
       return table[i % 4];
     }},
    {"labels and registers of inner scopes",
     "{ .reg .b32 %q; mov.u32 %q, 1; L1: setp.lt.u32 %p1, %q, %a; @!%p1 bra L2; add.u32 %q, %q, 1; bra L1; "
     "L2: mov.u32 %d, %q; }"
     "{ .reg .b32 %q; mov.u32 %q, 2; L1: add.u32 %d, %d, %q; }",
     [](uint32_t i) { return (i < 1 ? 1 : i) + 2; }},
    {"a predicated instruction leaves the other lanes alone",
     "mov.u32 %d, %a; setp.gt.u32 %p1, %a, 20; @%p1 add.u32 %d, %d, 100; @!%p1 mul.lo.u32 %d, %d, 2;",
     [](uint32_t i) { return i > 20 ? i + 100 : 2 * i; }},
};

TEST(ControlFlow, EveryShapeGivesEachLaneItsOwnResult) {
  for (const Shape& shape : shapes) {
    const Outcome outcome = run_small({.body = shape.body, .a = lane_numbers(32)});
    ASSERT_FALSE(outcome.trap) << shape.name << ": " << outcome.trap->message;
    const std::vector<uint32_t> got = words_of(outcome);
    for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], shape.expected(i)) << shape.name << ", lane " << i;
  }
}

TEST(ControlFlow, AWarpOfFewerLanesWorksTheSame) {
  const Outcome outcome = run_small({.body = shapes[2].body, .a = lane_numbers(40), .threads = 40});
  ASSERT_FALSE(outcome.trap);
  const std::vector<uint32_t> got = words_of(outcome);
  for (uint32_t i = 32; i < 40; ++i) EXPECT_EQ(got[i], 99u) << "the second warp never has all 32 lanes";
}

TEST(ControlFlow, CallsPassArgumentsAndResultsPerLane) {
  SmallKernel kernel;
  kernel.declarations =
      ".func (.param .b32 r) twice_or_zero(.param .b32 x)\n"
      "{ .reg .b32 %v; .reg .pred %q; ld.param.b32 %v, [x]; setp.gt.u32 %q, %v, 20; @%q bra ZERO; add.u32 "
      "%v, %v, %v; st.param.b32 [r], %v; ret;\n"
      "ZERO: mov.u32 %v, 0; st.param.b32 [r+0], %v; ret; }\n";
  kernel.body =
      "mov.u32 %d, 7; setp.ne.u32 %p1, %a, 5; @!%p1 bra SKIP;"
      "{ .param .b32 x0; .param .b32 r0; st.param.b32 [x0], %a; call.uni (r0), twice_or_zero, (x0); "
      "ld.param.b32 %d, [r0]; }"
      "SKIP: add.u32 %d, %d, 1;";
  kernel.a = lane_numbers(32);
  const Outcome outcome = run_small(kernel);
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(words_of(outcome)[i], i == 5 ? 8u : i > 20 ? 1u : 2 * i + 1) << i;
}

TEST(ControlFlow, AnAddressCallsTheFunctionItIsOf) {
  SmallKernel kernel;
  kernel.declarations =
      ".func (.param .b32 r) once(.param .b32 x) { .reg .b32 %v; ld.param.b32 %v, [x]; st.param.b32 [r], %v; "
      "ret; }\n"
      ".func (.param .b32 r) twice(.param .b32 x)\n"
      "{ .reg .b32 %v; ld.param.b32 %v, [x]; add.u32 %v, %v, %v; st.param.b32 [r], %v; ret; }\n"
      ".global .align 8 .u64 table[2] = {once, twice};\n";
  kernel.body =
      "mov.u64 %rd1, table; and.b32 %r1, %a, 1; mul.wide.u32 %rd2, %r1, 8; add.s64 %rd1, %rd1, %rd2; "
      "ld.global.u64 "
      "%rd3, [%rd1]; setp.ne.u32 %p1, %b, 0; @%p1 add.s64 %rd3, %rd3, 4;"
      "{ .param .b32 x0; .param .b32 r0; st.param.b32 [x0], %a; shape: .callprototype (.param .b32 _) _ "
      "(.param .b32 "
      "_); call (r0), %rd3, (x0), shape; ld.param.b32 %d, [r0]; }";
  kernel.a = lane_numbers(32);
  const Outcome outcome = run_small(kernel);
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(words_of(outcome)[i], i % 2 ? 2 * i : i) << i;
  kernel.b = std::vector<uint32_t>(32, 0);
  kernel.b[6] = 1;  // lane 6 calls an address between functions
  const Outcome wrong = run_small(kernel);
  ASSERT_TRUE(wrong.trap);
  EXPECT_EQ(wrong.trap->kind, TrapKind::call);
  EXPECT_EQ(wrong.trap->thread[0], 6u);
}

TEST(ControlFlow, AnEndlessLoopEndsByTheBudget) {
  const Outcome outcome = run_small({.body = "LOOP: add.u32 %d, %d, 1; bra LOOP;", .budget = 10000});
  ASSERT_TRUE(outcome.trap);
  EXPECT_EQ(outcome.trap->kind, TrapKind::hang);
  EXPECT_TRUE(outcome.outputs.empty());
}

TEST(ControlFlow, AWarpMaySpinOnAnother) {
  SmallKernel kernel;
  kernel.declarations = ".shared .align 4 .b32 flag;\n";
  kernel.body =
      "setp.eq.u32 %p2, %a, 0; @%p2 st.shared.b32 [flag], 0; bar.sync 0;"
      "setp.lt.u32 %p1, %a, 32; @!%p1 bra SET; WAIT: ld.volatile.shared.b32 %d, [flag]; setp.eq.b32 %p2, %d, "
      "0; @%p2 bra WAIT; bra END;"
      "SET: mov.u32 %d, 5; st.volatile.shared.b32 [flag], %d; END:";
  kernel.a = lane_numbers(64);
  kernel.threads = 64;
  const Outcome outcome = run_small(kernel);
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  EXPECT_EQ(words_of(outcome)[0], 5u);
}

TEST(ControlFlow, ATrapInstructionIsAnOutcome) {
  const Outcome outcome = run_small({.body = "setp.eq.u32 %p1, %a, 3; @%p1 trap;", .a = lane_numbers(32)});
  ASSERT_TRUE(outcome.trap);
  EXPECT_EQ(outcome.trap->kind, TrapKind::trap);
  EXPECT_EQ(outcome.trap->thread[0], 3u);
}

}  // namespace
}  // namespace assay::vm
