// mbarriers: arrivals, bytes, phases, and what is wrong with them.
#include "src/base/vm/mbarrier.h"

#include <gtest/gtest.h>

#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace mbarrier_test {

const std::string gate = ".shared .align 8 .b8 gate[16];";
/// %r2 the mbarrier of so many arrivals; %p1: thread 0.
std::string barrier_of(const std::string& arrivals) {
  return "mov.u32 %r2, gate; setp.eq.u32 %p1, %r32, 0;\n@%p1 mbarrier.init.shared::cta.b64 [%r2], " +
         arrivals + ";\n@%p1 fence.mbarrier_init.release.cluster; bar.sync 0;\n";
}
const std::string is_over =
    "mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p2, [%r2], 0; selp.u32 %d, 1, 0, %p2;";

uint32_t word_after(const std::string& arrivals, const std::string& body) {
  return first_word({.declarations = gate, .body = barrier_of(arrivals) + body + "\n" + is_over});
}

TEST(Mbarrier, AWaitInACalledFunctionIsOverBeforeItsCallerGoesOn) {
  // Warp 1 waits in a function for what warp 0 does, and then reads what warp 0 wrote before.
  const std::string wait =
      ".shared .align 8 .b8 tile[16];\n.func wait(.param .u32 at)\n{\n.reg .pred %p; .reg .b32 %r;\n"
      "ld.param.u32 %r, [at];\nW: mbarrier.try_wait.parity.shared.b64 %p, [%r], 0; @!%p bra W;\nret;\n}\n";
  const std::string body =
      "mov.u32 %r1, tile; setp.eq.u32 %p1, %r32, 0; @%p1 mbarrier.init.shared.b64 [%r1], 32; bar.sync 0;\n"
      "setp.ge.u32 %p2, %r32, 32; @%p2 bra FIRST;\n"
      "mov.u32 %r2, 0; SLOW: add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 300000; @%p3 bra SLOW;\n"
      "st.shared.u32 [%r1+8], 7; mbarrier.arrive.shared.b64 _, [%r1]; bra DONE;\n"
      "FIRST: .param .u32 given; st.param.u32 [given], %r1; call wait, (given); ld.shared.u32 %d, [%r1+8];";
  const Outcome outcome = run_small({.declarations = wait, .body = body, .threads = 64});
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  EXPECT_EQ(words_of(outcome)[40], 7u);
}

TEST(Mbarrier, IsAWordThatHoldsCountsOfEitherSign) {
  for (const int32_t bytes : {0, 1, -1, Mbarrier::most_bytes, -Mbarrier::most_bytes}) {
    const Mbarrier b{7, 3, bytes, true}, again = Mbarrier::of(b.word());
    EXPECT_EQ(again.expected, 7u);
    EXPECT_EQ(again.pending, 3u);
    EXPECT_EQ(again.bytes, bytes);
    EXPECT_TRUE(again.phase);
  }
}

TEST(Mbarrier, APhaseEndsWhenAllHaveArrivedAndAllBytesHaveCome) {
  EXPECT_EQ(word_after("32", "mbarrier.arrive.shared.b64 %rd1, [%r2];"), 1u);
  EXPECT_EQ(word_after("33", "mbarrier.arrive.shared.b64 %rd1, [%r2];"), 0u);
  EXPECT_EQ(word_after("64", "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r2], 2;"), 1u);
  const std::string expect = "@%p1 mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r2], 96;\n";
  EXPECT_EQ(word_after("1", expect), 0u);
  EXPECT_EQ(word_after("1", expect + "@%p1 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 96;"), 1u);
  EXPECT_EQ(word_after("1", expect + "@%p1 mbarrier.complete_tx.shared.b64 [%r2], 95;"), 0u);
  // Bytes may come before they are expected, as long as an arrival is pending.
  EXPECT_EQ(word_after("1", "@%p1 mbarrier.complete_tx.shared.b64 [%r2], 96;\n" + expect), 1u);
  EXPECT_EQ(word_after("2",
                       "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 8;\n"
                       "@%p1 mbarrier.arrive.shared.b64 _, [%r2];\n"
                       "@%p1 mbarrier.complete_tx.shared.b64 [%r2], 8;\n"
                       "@%p1 mbarrier.arrive.release.cta.shared::cta.b64 _, [%r2];"),
            1u);
}

TEST(Mbarrier, WhoDropsIsNotExpectedAgain) {
  const std::string
      round = "@%p1 mbarrier.arrive_drop.shared.b64 _, [%r2];\n@!%p1 mbarrier.arrive.shared.b64 _, [%r2];\n",
      again = "@!%p1 mbarrier.arrive.shared.b64 _, [%r2];\n";
  const std::string second = "mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 1; selp.u32 %d, 1, 0, %p2;";
  const auto word = [&](const std::string& body) {
    return first_word({.declarations = gate, .body = barrier_of("32") + body + second});
  };
  EXPECT_EQ(word(round), 0u);
  EXPECT_EQ(word(round + again), 1u);
  const std::string drop_expecting =
      "@%p1 mbarrier.arrive_drop.expect_tx.release.cta.shared::cta.b64 _, [%r2], 4;\n"
      "@!%p1 mbarrier.arrive.shared.b64 _, [%r2];\n"
      "@%p1 mbarrier.complete_tx.shared.b64 [%r2], 4;\n";
  EXPECT_EQ(word(drop_expecting), 0u);
  EXPECT_EQ(word(drop_expecting + again), 1u);
}

TEST(Mbarrier, WaitsByStateAndByParityAreForTheSamePhase) {
  const std::string body =
      barrier_of("1") +
      "@%p1 mbarrier.arrive.shared.b64 %rd1, [%r2];\nmov.u32 %r3, 0;\n"
      "@%p1 mbarrier.try_wait.shared.b64 %p2, [%r2], %rd1, 1000;\n@%p2 add.u32 %r3, %r3, 1;\n"
      "@%p1 mbarrier.arrive.shared.b64 %rd1, [%r2];\n"
      "@%p1 mbarrier.try_wait.acquire.cluster.shared::cta.b64 %p2, [%r2], %rd1;\n"
      "@%p2 add.u32 %r3, %r3, 2;\n"
      "@%p1 mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0, 1000;\n@!%p2 add.u32 %r3, %r3, 4;\n"
      "@%p1 mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p2, [%r2], 1;\n"
      "@%p2 add.u32 %r3, %r3, 8; mov.u32 %d, %r3;";
  EXPECT_EQ(first_word({.declarations = gate, .body = body}), 15u);
}

/// Warp 0 waits in a loop for what warp 1 does afterwards, and the other way round.
TEST(Mbarrier, WarpsThatWaitForEachOtherTakeTurns) {
  const std::string body =
      "mov.u32 %r2, gate; setp.eq.u32 %p1, %r32, 0;\n"
      "@%p1 mbarrier.init.shared.b64 [%r2], 32; @%p1 mbarrier.init.shared.b64 [%r2+8], 32; bar.sync 0;\n"
      "shr.u32 %r3, %r32, 5; shl.b32 %r4, %r3, 3; add.u32 %r4, %r4, %r2; xor.b32 %r5, %r4, 8;\n"
      "sub.u32 %r6, %r5, %r4; and.b32 %r6, %r6, 0;\n"
      "mov.u32 %r7, 0;\nROUND: and.b32 %r8, %r7, 1;\n"
      "setp.eq.u32 %p3, %r3, 0; @%p3 bra ARRIVE;\n"
      "FIRST: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], %r8; @!%p2 bra FIRST;\n"
      "ARRIVE: mbarrier.arrive.shared.b64 _, [%r4];\n"
      "@!%p3 bra NEXT;\n"
      "SECOND: mbarrier.try_wait.parity.shared.b64 %p2, [%r2+8], %r8; @!%p2 bra SECOND;\n"
      "NEXT: add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 5; @%p2 bra ROUND; mov.u32 %d, %r7;";
  const Outcome outcome = run_small({.declarations = gate, .body = body, .threads = 64});
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  for (const uint32_t word : words_of(outcome)) EXPECT_EQ(word, 5u);
}

/// Lanes of one warp: those that wait come first in the text, the one that they wait for last.
TEST(Mbarrier, LanesOfOneWarpThatWaitForEachOtherTakeTurns) {
  const std::string body =
      barrier_of("1") +
      "@%p1 bra OTHER;\nWAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;\n"
      "@!%p2 bra WAIT;\nbra MEET;\nOTHER: mbarrier.arrive.shared.b64 _, [%r2];\nMEET: mov.u32 %d, 7;";
  const std::string other_way =
      barrier_of("1") +
      "@!%p1 bra WAIT;\nmbarrier.arrive.shared.b64 _, [%r2]; bra MEET;\n"
      "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;\n@!%p2 bra WAIT;\nMEET: mov.u32 %d, 7;";
  for (const std::string& text : {body, other_way})
    EXPECT_EQ(first_word({.declarations = gate, .body = text}), 7u);
}

TEST(Mbarrier, MisuseTrapsWithItsReason) {
  const std::pair<std::string, const char*> cases[] = {
      {"mov.u32 %r2, gate; mbarrier.arrive.shared.b64 _, [%r2];", "there is no initialised mbarrier"},
      {barrier_of("1") + "mbarrier.arrive.shared.b64 _, [%r2], 2;", "more threads arrive at the mbarrier"},
      {barrier_of("0"), "an mbarrier expects 1 to 1048575 arrivals"},
      {barrier_of("1") +
           "@%p1 mbarrier.inval.shared.b64 [%r2]; mbarrier.test_wait.parity.shared.b64 %p2, [%r2], 0;",
       "there is no initialised mbarrier"},
      {barrier_of("1") + "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 1048576;",
       "it can count"},
      {barrier_of("2") + "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 16;\n"
                         "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra WAIT;",
       "waits for the end of a phase of parity 0 of an mbarrier where 1 of 2 arrivals and 16 bytes are "
       "pending"},
  };
  for (const auto& [body, message] : cases) {
    const Outcome outcome = run_small({.declarations = gate, .body = body});
    ASSERT_TRUE(outcome.trap) << body;
    EXPECT_NE(outcome.trap->message.find(message), std::string::npos) << outcome.trap->message;
  }
}

}  // namespace mbarrier_test
}  // namespace assay::vm
