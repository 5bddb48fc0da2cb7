// Calls that the system answers: printf, malloc, free; launches of blocks that wait for each other.
#include "src/base/vm/device_calls.h"

#include <gtest/gtest.h>

#include "src/base/vm/memory.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace {

/// Memory of a text as a .global variable.
std::string global_text(const std::string& name, const std::string& text) {
  std::string bytes;
  for (const char c : text) bytes += std::to_string(static_cast<int>(c)) + ", ";
  return ".global .align 1 .b8 " + name + "[" + std::to_string(text.size() + 1) + "] = {" + bytes + "0};\n";
}

const std::string kDeclared =
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
    ".extern .func free(.param .b64 p);\n";

/// As nvcc compiles printf(format, ...) of values that lie at %rd1.
const std::string kPrint =
    "mov.u64 %rd10, format; cvta.global.u64 %rd10, %rd10;\n"
    "{ .param .b64 p0; .param .b64 p1; .param .b32 q; st.param.b64 [p0], %rd10; st.param.b64 [p1], %rd1;\n"
    "call.uni (q), vprintf, (p0, p1); ld.param.b32 %d, [q]; }\n";
std::string with_values(const std::string& stores) {
  return ".local .align 8 .b8 values[64];\nmov.u64 %rd2, values; cvta.local.u64 %rd1, %rd2;\n" + stores +
         kPrint;
}

TEST(DeviceCalls, PrintfSaysWhichThreadPrintedWhat) {
  SmallKernel kernel;
  kernel.declarations =
      kDeclared + global_text("format", "%d|%5.2f|%s|%llx|%-3c|%u%%\n") + global_text("word", "abc");
  kernel.body = with_values(
      "st.local.u32 [values], %a; st.local.f64 [values+8], 0d3FF8000000000000; mov.u64 %rd3, word;\n"
      "cvta.global.u64 %rd3, %rd3; st.local.u64 [values+16], %rd3; st.local.u64 [values+24], 0x10000000000;\n"
      "st.local.u32 [values+32], 120; st.local.u32 [values+36], -1;\n");
  kernel.a = {7, 0xfffffff8u}, kernel.threads = 2;
  const Outcome outcome = run_small(kernel);
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  EXPECT_EQ(outcome.printed, (std::vector<std::string>{
                                 "block (0,0,0), thread (0,0,0): 7| 1.50|abc|10000000000|x  |4294967295%",
                                 "block (0,0,0), thread (1,0,0): -8| 1.50|abc|10000000000|x  |4294967295%"}));
  EXPECT_EQ(words_of(outcome), (std::vector<uint32_t>{6, 6})) << "the number of values";
}

TEST(DeviceCalls, PrintfEndsWhereItsRoomDoes) {
  SmallKernel kernel;
  kernel.declarations = kDeclared + global_text("format", "%n %999999d %q %");
  kernel.body = with_values("st.local.u32 [values], 1;\n"), kernel.threads = 256, kernel.blocks = 2;
  const Outcome outcome = run_small(kernel);
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  EXPECT_EQ(outcome.printed.size(), DeviceCalls::most_lines);
  EXPECT_EQ(outcome.printed.size() + outcome.not_printed, 512u);
  for (const std::string& line : outcome.printed) EXPECT_LT(line.size(), 1100u);
}

const std::string kAllocate =
    "{ .param .b64 p; .param .b64 q; st.param.b64 [p], %rd1; call.uni (q), malloc, (p); ld.param.b64 %rd2, "
    "[q]; }\n";
const std::string kFree = "{ .param .b64 p; st.param.b64 [p], %rd2; call.uni free, (p); }\n";

TEST(DeviceCalls, MallocGivesEachThreadItsOwnMemory) {
  const std::string body = "mov.u64 %rd1, 40;\n" + kAllocate +
                           "st.u32 [%rd2+36], %a; bar.warp.sync -1; ld.u32 %d, [%rd2+36];\n" + kFree;
  std::vector<uint32_t> a(32);
  for (uint32_t i = 0; i < 32; ++i) a[i] = 100 + i;
  const Outcome outcome = run_small({.declarations = kDeclared, .body = body, .a = a});
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  EXPECT_EQ(words_of(outcome), a);
}

TEST(DeviceCalls, MallocGivesNullWhereTheHeapIsFullAndFreeRefusesWhatIsNoObject) {
  const std::string full = "mov.u64 %rd1, 9000000;\n" + kAllocate + kFree + "cvt.u32.u64 %d, %rd2;";
  EXPECT_EQ(first_word({.declarations = kDeclared, .body = full}), 0u);
  const Outcome wrong =
      run_small({.declarations = kDeclared,
                 .body = "mov.u64 %rd1, 8;\n" + kAllocate + "add.s64 %rd2, %rd2, 4;\n" + kFree});
  ASSERT_TRUE(wrong.trap);
  EXPECT_NE(wrong.trap->message.find("where no object of the device's heap begins"), std::string::npos);
  const Outcome twice =
      run_small({.declarations = kDeclared, .body = "mov.u64 %rd1, 8;\n" + kAllocate + kFree + kFree});
  EXPECT_TRUE(twice.trap);
}

TEST(DeviceCalls, AnAccessPastAnObjectOrAfterItsEndTraps) {
  const std::string made = "mov.u64 %rd1, 40;\n" + kAllocate;
  const std::pair<std::string, const char*> cases[] = {
      {made + "ld.u32 %d, [%rd2+40];\n", "0 bytes past the end of an object of 40 bytes"},
      {made + "ld.v2.u32 {%d, %r1}, [%rd2+40];\n", "0 bytes past the end of an object of 40 bytes"},
      {made + "st.u32 [%rd2+44], %a;\n", "4 bytes past the end of an object of 40 bytes"},
      {made + kFree + "ld.u32 %d, [%rd2+8];\n",
       "byte 8 of an object of 40 bytes of the device's heap that was freed"},
      {made + "ld.u32 %d, [%rd2+4096];\n", "past the end of an object of 40 bytes"}};
  for (const auto& [body, message] : cases) {
    const Outcome outcome = run_small({.declarations = kDeclared, .body = body, .threads = 1});
    ASSERT_TRUE(outcome.trap) << body;
    EXPECT_EQ(outcome.trap->kind, TrapKind::out_of_bounds);
    EXPECT_NE(outcome.trap->message.find(message), std::string::npos) << outcome.trap->message;
  }
  EXPECT_FALSE(run_small({.declarations = kDeclared, .body = made + "ld.u32 %d, [%rd2+36];\n" + kFree}).trap);
}

TEST(DeviceCalls, TheHeapGivesWhatWasFreedAgainWhereThereIsNoMoreAndNothingTwice) {
  DeviceCalls calls;
  calls.heap.written.assign(DeviceHeap::size, 1);
  const uint64_t first = calls.allocate(1), second = calls.allocate(100), third = calls.allocate(0);
  EXPECT_EQ(first, heap_base);
  EXPECT_EQ(second, heap_base + 32);
  EXPECT_EQ(third, heap_base + 32 + 128);
  EXPECT_TRUE(calls.release(second));
  EXPECT_FALSE(calls.release(second));
  EXPECT_EQ(calls.allocate(100), third + 32) << "no object yet where one was freed";
  const uint64_t rest = DeviceHeap::size - 320 - 16;
  EXPECT_NE(calls.allocate(rest), 0u);
  EXPECT_EQ(calls.allocate(113), 0u);
  EXPECT_TRUE(calls.reaches_object(0, 1, false));
  EXPECT_EQ(calls.heap.written[32], 1);
  EXPECT_EQ(calls.allocate(112), second);
  EXPECT_EQ(calls.heap.written[32], 0) << "what was written there is nobody's";
  EXPECT_EQ(calls.allocate(~uint64_t{0} - 20), 0u);
  EXPECT_TRUE(calls.release(0));
}

TEST(DeviceCalls, AProcessKeepsWhatTheFirstOfItsProgramsLeaves) {
  const std::string make = "mov.u64 %rd1, 8;\n" + kAllocate + "st.u32 [%rd2], %a;\n";
  std::shared_ptr<const DeviceHeap> heap;
  {
    HeapOfProcess process(nullptr);
    run_small({.declarations = kDeclared, .body = make, .a = {7}, .threads = 1});
    run_small({.declarations = kDeclared, .body = make + kFree, .threads = 1});
    heap = process.after();
  }
  ASSERT_TRUE(heap);
  EXPECT_EQ(heap->objects.size(), 1u);
  EXPECT_EQ(HeapOfProcess::current(), nullptr);
  const HeapOfProcess process(heap);
  const std::string load = "mov.u64 %rd2, 0x60000000000; ld.u32 %d, [%rd2+OFFSET];\n";
  const auto at = [&](const char* offset) {
    std::string body = load;
    return body.replace(body.find("OFFSET"), 6, offset);
  };
  EXPECT_EQ(first_word({.body = at("0"), .threads = 1}), 7u) << "an entry that takes no memory itself";
  EXPECT_TRUE(run_small({.body = at("8"), .threads = 1}).trap);
}

/// Block b waits until block b + 1 has set its word of `flags`, then sets its own; the last one waits for
/// nobody.
const char* const kBackwards =
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; sub.u32 %r2, %r2, 1; mul.wide.u32 %rd1, %r1, 4;\n"
    "mov.u64 %rd2, flags; add.s64 %rd2, %rd2, %rd1; setp.eq.u32 %p1, %r1, %r2; @%p1 bra SET;\n"
    "WAIT: ld.acquire.gpu.global.u32 %r3, [%rd2+4]; setp.eq.u32 %p2, %r3, 0; @%p2 bra WAIT;\n"
    "SET: mov.u32 %d, %r3; st.release.gpu.global.u32 [%rd2], 1;\n";

TEST(Waiting, BlocksGetOnThatWaitForLaterOnes) {
  SmallKernel kernel;
  kernel.declarations = ".global .u32 flags[64];\n";
  kernel.body = kBackwards, kernel.blocks = 40;
  const Outcome outcome = run_small(kernel);
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  EXPECT_TRUE(outcome.together);
  for (uint32_t block = 0; block < 39; ++block) EXPECT_EQ(words_of(outcome)[32 * block], 1u) << block;
}

/// Atomics that add zero, or change no bit, ask as a load does; one that counts does not.
TEST(Waiting, BlocksGetOnThatAskByAnAtomic) {
  for (const auto& [ask, together] : {std::pair{"add.u32 %r3, [%rd2+4], 0", true},
                                      {"or.b32 %r3, [%rd2+4], 0", true},
                                      {"add.u32 %r3, [%rd2+256], 1", false}}) {
    SmallKernel kernel;
    kernel.declarations = ".global .u32 flags[128];\n";
    kernel.body = kBackwards;
    const std::string load = "ld.acquire.gpu.global.u32 %r3, [%rd2+4]";
    kernel.body.replace(kernel.body.find(load), load.size(), std::string("atom.global.") + ask);
    kernel.blocks = 40;
    const Outcome outcome = run_small(kernel);
    ASSERT_FALSE(outcome.trap) << ask << ": " << outcome.trap->message;
    EXPECT_EQ(outcome.together, together) << ask;
  }
}

TEST(Waiting, BlocksThatWaitForNobodyRunOneAfterAnother) {
  SmallKernel kernel;
  kernel.declarations = ".global .u32 flags[64];\n";
  kernel.body = kBackwards, kernel.blocks = 1;
  EXPECT_FALSE(run_small(kernel).together);
}

TEST(Waiting, WhatNobodySetsIsAHang) {
  SmallKernel kernel;
  kernel.declarations = ".global .u32 flags[64];\n";
  kernel.body =
      "mov.u64 %rd2, flags;\nWAIT: ld.acquire.gpu.global.u32 %r3, [%rd2]; setp.eq.u32 %p2, %r3, 0; @%p2 bra "
      "WAIT;\n";
  kernel.blocks = 2, kernel.budget = 100000;
  const Outcome outcome = run_small(kernel);
  ASSERT_TRUE(outcome.trap);
  EXPECT_EQ(outcome.trap->kind, TrapKind::hang);
}

/// As cooperative_groups compiles grid.sync(): the workspace's address in two registers of the environment, a
/// counter whose top bit turns.
TEST(Waiting, ACooperativeLaunchMeetsAtItsGridsBarrier) {
  const std::string body =
      "mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %rd1, {%r2, %r1}; setp.ne.s64 %p1, %rd1, 0;\n"
      "@%p1 bra THERE; trap; THERE: mov.u64 %rd2, written; mul.wide.u32 %rd3, %t, 4; add.s64 %rd4, %rd2, "
      "%rd3;\n"
      "st.global.u32 [%rd4], %a; barrier.sync 0; mov.u32 %r3, %tid.x; setp.ne.u32 %p2, %r3, 0; @%p2 bra "
      "MET;\n"
      "mov.u32 %r4, %ctaid.x; mov.u32 %r5, %nctaid.x; setp.eq.u32 %p3, %r4, 0; mov.u32 %r6, -2147483647;\n"
      "sub.s32 %r7, %r6, %r5; selp.b32 %r8, %r7, 1, %p3; atom.add.release.gpu.u32 %r9, [%rd1+4], %r8;\n"
      "SPIN: ld.acquire.gpu.u32 %r10, [%rd1+4]; xor.b32 %r11, %r10, %r9; setp.gt.s32 %p4, %r11, -1; @%p4 bra "
      "SPIN;\n"
      "MET: barrier.sync 0; mov.u32 %r12, %nctaid.x; mul.lo.u32 %r12, %r12, %r31; sub.u32 %r12, %r12, 1;\n"
      "sub.u32 %r12, %r12, %t; mul.wide.u32 %rd5, %r12, 4; add.s64 %rd6, %rd2, %rd5; ld.global.u32 %d, "
      "[%rd6];\n";
  SmallKernel kernel;
  kernel.declarations = ".global .u32 written[1024];\n";
  kernel.body = body, kernel.threads = 64, kernel.blocks = 7;
  kernel.a.resize(448);
  for (uint32_t i = 0; i < 448; ++i) kernel.a[i] = 5 * i;
  TensorMap inputs;
  Program program = plan_of(kernel, inputs);
  const Outcome alone = run(program, inputs, {});
  ASSERT_TRUE(alone.trap);
  EXPECT_EQ(alone.trap->kind, TrapKind::trap) << "there is no workspace";
  program.launches[0].cooperative = true;
  for (const uint64_t order : {0, 1, 5}) {
    MachineOptions options;
    options.order = order;
    const Outcome outcome = run(program, inputs, options);
    ASSERT_FALSE(outcome.trap) << outcome.trap->message;
    for (uint32_t i = 0; i < 448; ++i) EXPECT_EQ(words_of(outcome)[i], 5 * (447 - i)) << i;
  }
}

}  // namespace
}  // namespace assay::vm
