// Bulk copies: what they move, when it arrives, and what is wrong with them.
#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace bulk_copy_test {

const std::string tile = ".shared .align 128 .b8 tile[512]; .shared .align 8 .b8 gate[8];";
/// %r1 the tile, %r2 an mbarrier of one arrival, %r3 this thread's word of the tile, %p1: thread 0; %rd1 to
/// %rd3 the buffers a, b, d.
const std::string setup =
    "mov.u32 %r1, tile; mov.u32 %r2, gate; setp.eq.u32 %p1, %r32, 0; shl.b32 %r4, %r32, 2; add.u32 %r3, %r1, "
    "%r4;\n"
    "ld.param.u64 %rd1, [pa]; ld.param.u64 %rd2, [pb]; ld.param.u64 %rd3, [pd];\n"
    "@%p1 mbarrier.init.shared.b64 [%r2], 1; @%p1 fence.mbarrier_init.release.cluster; bar.sync 0;\n";
const std::string load =
    "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;\n"
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 128, [%r2];\n";
const std::string wait = "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra WAIT;\n";
const std::string store_result = "st.global.u32 [%pd], %d;\n";
const std::string commit = "@%p1 cp.async.bulk.commit_group;\n";

std::vector<uint32_t> counting(uint32_t from, uint32_t count = 32) {
  std::vector<uint32_t> values(count);
  for (uint32_t i = 0; i < count; ++i) values[i] = from + i;
  return values;
}

std::vector<uint32_t> words(const std::string& body) {
  const Outcome outcome =
      run_small({.declarations = tile, .body = body, .a = counting(100), .b = counting(7)});
  EXPECT_FALSE(outcome.trap) << outcome.trap->message;
  return words_of(outcome);
}

TEST(BulkCopy, GlobalBytesArriveAtTheWait) {
  EXPECT_EQ(words(setup + load + wait + "ld.shared.u32 %d, [%r3];"), counting(100));
  // Without it shared memory still holds what was there.
  EXPECT_EQ(words(setup + "st.shared.u32 [%r3], 5; bar.sync 0;\n" + load + "ld.shared.u32 %d, [%r3];"),
            std::vector<uint32_t>(32, 5));
}

TEST(BulkCopy, AWaitOfTheHintedFormAndASizeInARegisterAreTheSame) {
  const std::string hinted =
      "mov.u32 %r9, 128; createpolicy.fractional.L2::evict_first.b64 %rd9, 1.0;\n"
      "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], %r9;\n"
      "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r1], [%rd1], "
      "%r9, [%r2], %rd9;\n"
      "cp.async.bulk.prefetch.L2.global [%rd1], 128;\n";
  EXPECT_EQ(words(setup + hinted + wait + "ld.shared.u32 %d, [%r3];"), counting(100));
}

TEST(BulkCopy, SharedBytesGoToGlobalMemoryAtTheWaitForTheirGroup) {
  const std::string
      fill = "add.u32 %r5, %a, 1; st.shared.u32 [%r3], %r5; fence.proxy.async.shared::cta; bar.sync 0;\n",
      store = "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r1], 128;\n",
      read = "bar.warp.sync -1; ld.global.u32 %d, [%pd];";
  EXPECT_EQ(words(setup + fill + store + commit + "@%p1 cp.async.bulk.wait_group 0;\n" + read),
            counting(101));
  EXPECT_EQ(words(setup + fill + store + commit + "@%p1 cp.async.bulk.wait_group.read 0;\n" + read),
            counting(101));
  const std::string to_b = "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 128;\n",
                    read_b = "bar.warp.sync -1; ld.global.u32 %d, [%pb];";
  EXPECT_EQ(words(setup + fill + to_b + commit + "@%p1 cp.async.bulk.wait_group 1;\n" + read_b), counting(7));
  EXPECT_EQ(words(setup + fill + to_b + commit + "@%p1 cp.async.bulk.wait_group 0;\n" + read_b),
            counting(101));
  EXPECT_EQ(words(setup + fill + store + commit + "bra.uni LAST;\nLAST: exit;"),
            counting(101));  // at the end
  // What is overwritten before the wait is what arrives.
  EXPECT_EQ(words(setup + fill + store + commit +
                  "st.shared.u32 [%r3], 3;\n@%p1 cp.async.bulk.wait_group.read 0;\n" + read),
            std::vector<uint32_t>(32, 3));
}

TEST(BulkCopy, SharedMemoryOfAnotherBlockIsFilled) {
  const std::string body =
      setup +
      "mov.u32 %r5, %cluster_ctarank; xor.b32 %r6, %r5, 1; mapa.shared::cluster.u32 %r7, %r1, %r6;\n"
      "mapa.shared::cluster.u32 %r8, %r2, %r6; st.shared.u32 [%r3+128], %t; fence.proxy.async;\n"
      "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;\n"
      "barrier.cluster.arrive; barrier.cluster.wait;\n"
      "add.u32 %r9, %r1, 128;\n"
      "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r7], [%r9], 128, "
      "[%r8];\n" +
      wait + "ld.shared.u32 %d, [%r3]; barrier.cluster.arrive; barrier.cluster.wait;";
  const Outcome outcome =
      run_small({.declarations = tile, .body = body, .threads = 32, .blocks = 2, .cluster = {2, 1, 1}});
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(words_of(outcome)[i], i ^ 32);
}

TEST(BulkCopy, AMulticastFillsTheSamePlaceOfEveryBlockOfTheMask) {
  const std::string body =
      setup +
      "mov.u32 %r5, %cluster_ctarank; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;\n"
      "barrier.cluster.arrive; barrier.cluster.wait;\n"
      "setp.eq.and.u32 %p3, %r5, 1, %p1; mov.u16 %h1, 5;\n"
      "@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], "
      "[%rd1], 128, "
      "[%r2], %h1;\n"
      "setp.eq.u32 %p3, %r5, 1; @%p3 bra END;\n" +
      wait + "ld.shared.u32 %d, [%r3];\nEND: barrier.cluster.arrive; barrier.cluster.wait;";
  const Outcome outcome = run_small({.declarations = tile,
                                     .body = body,
                                     .a = counting(100, 96),
                                     .threads = 32,
                                     .blocks = 3,
                                     .cluster = {3, 1, 1}});
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  for (uint32_t i = 0; i < 96; ++i) EXPECT_EQ(words_of(outcome)[i], i / 32 == 1 ? 0 : 100 + i % 32);
}

TEST(BulkCopy, ReductionsCombineWithWhatIsThere) {
  // b's words are 7 .. 38, this thread's shared word is its number.
  const auto reduced = [&](const std::string& operation, uint32_t shared_plus) {
    const std::string body = setup + "st.global.u32 [%pd], %b; add.u32 %r5, %r32, " +
                             std::to_string(shared_plus) +
                             "; st.shared.u32 [%r3], %r5; fence.proxy.async; bar.sync 0;\n@%p1 "
                             "cp.reduce.async.bulk.global.shared::cta.bulk_group." +
                             operation + " [%rd3], [%r1], 128;\n" + commit +
                             "@%p1 cp.async.bulk.wait_group 0;\nbar.warp.sync -1; ld.global.u32 %d, [%pd];";
    return words(body);
  };
  const auto expect = [&](const std::string& operation, uint32_t plus, uint32_t (*f)(uint32_t, uint32_t)) {
    const std::vector<uint32_t> got = reduced(operation, plus);
    for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], f(7 + i, i + plus)) << operation << ' ' << i;
  };
  expect("add.u32", 3, [](uint32_t a, uint32_t b) { return a + b; });
  expect("min.u32", 3, [](uint32_t a, uint32_t b) { return std::min(a, b); });
  expect("max.s32", 9, [](uint32_t a, uint32_t b) { return std::max(a, b); });
  expect("and.b32", 0, [](uint32_t a, uint32_t b) { return a & b; });
  expect("or.b32", 0, [](uint32_t a, uint32_t b) { return a | b; });
  expect("xor.b32", 0, [](uint32_t a, uint32_t b) { return a ^ b; });
  expect("inc.u32", 5, [](uint32_t a, uint32_t b) { return a >= b ? 0u : a + 1; });
  expect("dec.u32", 9, [](uint32_t a, uint32_t b) { return a == 0 || a > b ? b : a - 1; });
  // Words so small are subnormal halves, whose sums and order are those of their bits.
  expect("add.noftz.f16", 3, [](uint32_t a, uint32_t b) { return a + b; });
  expect("add.noftz.bf16", 3, [](uint32_t a, uint32_t b) { return a + b; });
  expect("min.f16", 3, [](uint32_t a, uint32_t b) { return std::min(a, b); });
  expect("max.bf16", 9, [](uint32_t a, uint32_t b) { return std::max(a, b); });
  expect("add.f32", 0x40000000, [](uint32_t, uint32_t b) { return b; });  // 2 and more, and next to nothing
}

TEST(BulkCopy, WhatDoesNotFitTraps) {
  const std::string from =
      "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;\n"
      "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes ";
  const std::pair<std::string, const char*> cases[] = {
      {from + "[%r1], [%rd1+16], 128, [%r2];", "past the end of a [T=32]"},
      {from + "[%r1+416], [%rd1], 128, [%r2];", "reaches shared memory at byte 416"},
      {from + "[%r1], [%rd1+4], 112, [%r2];", "is not aligned"},
      {from + "[%r1], [%rd1], 100, [%r2];", "multiples of 16 bytes, not 100"},
      {from + "[%r1], [%rd1], 128, [%r1];" + "\nWAITS: mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;",
       "there is no initialised mbarrier"}};
  for (const auto& [body, message] : cases) {
    const Outcome outcome = run_small({.declarations = tile, .body = setup + body, .a = counting(100)});
    ASSERT_TRUE(outcome.trap) << body;
    EXPECT_NE(outcome.trap->message.find(message), std::string::npos) << outcome.trap->message;
  }
  for (const char* body :
       {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%pa], 16;",
        "cp.async.bulk.global.shared::cta.bulk_group [%pa], [%r0], 16, [%r1];",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.u64 [%pa], [%r0], 16;"})
    EXPECT_THROW(run_small({.body = body}), BadInput) << body;
}

}  // namespace bulk_copy_test
}  // namespace assay::vm
