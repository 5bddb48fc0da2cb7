// Clusters: blocks that run together, reach each other's shared memory and meet.
#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace cluster_test {

const std::string tile = ".shared .align 16 .b8 tile[256];";
const std::string meet = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n";

TEST(Cluster, SpecialRegistersSayWhereABlockIs) {
  const std::pair<const char*, std::vector<uint32_t>> cases[] = {
      {"%cluster_ctarank", {0, 1, 2, 0, 1, 2}},  {"%cluster_ctaid.x", {0, 1, 2, 0, 1, 2}},
      {"%cluster_nctaid.x", {3, 3, 3, 3, 3, 3}}, {"%cluster_nctarank", {3, 3, 3, 3, 3, 3}},
      {"%clusterid.x", {0, 0, 0, 1, 1, 1}},      {"%nclusterid.x", {2, 2, 2, 2, 2, 2}},
      {"%ctaid.x", {0, 1, 2, 3, 4, 5}},          {"%cluster_ctaid.y", {0, 0, 0, 0, 0, 0}}};
  for (const auto& [name, expected] : cases)
    EXPECT_EQ(words_of(run_small({.body = std::string("mov.u32 %d, ") + name + ";",
                                  .threads = 1,
                                  .blocks = 6,
                                  .cluster = {3, 1, 1}})),
              expected)
        << name;
  const std::string is_explicit = "mov.pred %p1, %is_explicit_cluster; selp.u32 %d, 1, 0, %p1;";
  EXPECT_EQ(first_word({.body = is_explicit, .cluster = {1, 1, 1}}), 1u);
  EXPECT_EQ(first_word({.body = is_explicit}), 0u);
}

/// Every block stores its number into the next one's shared memory.
const std::string store_to_next =
    "mov.u32 %r1, tile; mov.u32 %r2, %cluster_ctarank; add.u32 %r3, %r2, 1; mov.u32 %r4, %cluster_nctarank; "
    "rem.u32 "
    "%r3, %r3, %r4;\n"
    "mapa.shared::cluster.u32 %r5, %r1, %r3; shl.b32 %r6, %r32, 2; add.u32 %r5, %r5, %r6; add.u32 %r7, %r1, "
    "%r6;\n"
    "mad.lo.u32 %r8, %r30, 100, %r32;\n";

TEST(Cluster, SharedMemoryOfAnotherBlockIsReached) {
  for (const char* store :
       {"st.shared::cluster.u32 [%r5], %r8;\n", "atom.shared::cluster.exch.b32 %r9, [%r5], %r8;\n",
        "cvt.u64.u32 %rd1, %r7; cvta.shared.u64 %rd1, %rd1; mapa.u64 %rd1, %rd1, %r3; st.u32 "
        "[%rd1], %r8;\n"}) {
    const Outcome outcome = run_small({.declarations = tile,
                                       .body = store_to_next + store + meet + "ld.shared.u32 %d, [%r7];",
                                       .threads = 40,
                                       .blocks = 4,
                                       .cluster = {4, 1, 1}});
    ASSERT_FALSE(outcome.trap) << outcome.trap->message;
    const std::vector<uint32_t> words = words_of(outcome);
    for (uint32_t block = 0; block < 4; ++block)
      for (uint32_t t = 0; t < 40; ++t) ASSERT_EQ(words[block * 40 + t], (block + 3) % 4 * 100 + t) << store;
  }
}

TEST(Cluster, AMappedAddressKnowsItsBlock) {
  const std::string body =
      store_to_next +
      "getctarank.shared::cluster.u32 %d, %r5; cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd1, %rd1;\n"
      "mapa.u64 %rd2, %rd1, 2; getctarank.u64 %r9, %rd2; mad.lo.u32 %d, %r9, 10, %d;\n"
      "getctarank.u64 %r9, %rd1; mad.lo.u32 %d, %r9, 100, %d;\n"
      "isspacep.shared::cluster %p1, %rd2; @%p1 add.u32 %d, %d, 1000;";
  EXPECT_EQ(words_of(run_small(
                {.declarations = tile, .body = body, .threads = 1, .blocks = 3, .cluster = {3, 1, 1}})),
            (std::vector<uint32_t>{1021, 1122, 1220}));
}

TEST(Cluster, StoresThatCompleteAtAnMbarrierAreSeenBehindItsWait) {
  const std::string body =
      store_to_next +
      "add.u32 %r10, %r1, 192; mapa.shared::cluster.u32 %r11, %r10, %r3; setp.eq.u32 %p1, %r32, 0;\n"
      "@%p1 mbarrier.init.shared.b64 [%r10], 1; @%p1 fence.mbarrier_init.release.cluster;\n" +
      meet +
      "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 128;\n"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r8, [%r11];\n"
      "WAIT: mbarrier.try_wait.parity.shared.b64 %p4, [%r10], 0; @!%p4 bra WAIT;\nld.shared.u32 %d, "
      "[%r7];\n" +
      meet;
  const Outcome outcome =
      run_small({.declarations = tile, .body = body, .threads = 32, .blocks = 2, .cluster = {2, 1, 1}});
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  EXPECT_EQ(words_of(outcome)[3], 103u);
  EXPECT_EQ(words_of(outcome)[35], 3u);
}

TEST(Cluster, ReductionsThatCompleteAtAnMbarrierAreSeenBehindItsWait) {
  struct Reduction {
    const char* form;
    uint32_t from_zero;  ///< what 32 lanes with 100 rank + lane make of a zero; rank 1
  };
  const Reduction reductions[] = {
      {"add.u32", 32 * 100 + 31 * 16}, {"max.s32", 131}, {"or.b32", 255}, {"inc.u32", 32}, {"min.u32", 0}};
  for (const Reduction& reduction : reductions) {
    const std::string body =
        store_to_next +
        "add.u32 %r10, %r1, 192; mapa.shared::cluster.u32 %r11, %r10, %r3; setp.eq.u32 %p1, %r32, 0;\n"
        "add.u32 %r12, %r1, 200; mapa.shared::cluster.u32 %r13, %r12, %r3; st.shared.u32 [%r12], 0;\n"
        "@%p1 mbarrier.init.shared.b64 [%r10], 1; @%p1 fence.mbarrier_init.release.cluster;\n" +
        meet +
        "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 128;\n"
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." +
        reduction.form +
        " [%r13], %r8, [%r11];\n"
        "WAIT: mbarrier.try_wait.parity.shared.b64 %p4, [%r10], 0; @!%p4 bra WAIT;\nld.shared.u32 %d, "
        "[%r12];\n" +
        meet;
    const Outcome outcome =
        run_small({.declarations = tile, .body = body, .threads = 32, .blocks = 2, .cluster = {2, 1, 1}});
    ASSERT_FALSE(outcome.trap) << reduction.form << outcome.trap->message;
    EXPECT_EQ(words_of(outcome)[0], reduction.from_zero) << reduction.form;
  }
}

TEST(Cluster, RemoteMbarriersCountArrivals) {
  const std::string body =
      "mov.u32 %r1, tile; mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p1, %r32, 0;\n"
      "setp.eq.and.u32 %p2, %r2, 0, %p1; @%p2 mbarrier.init.shared.b64 [%r1], 3;\n"
      "@%p2 fence.mbarrier_init.release.cluster;\n" +
      meet +
      "mapa.shared::cluster.u32 %r3, %r1, 0;\n"
      "@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];\n"
      "setp.ne.u32 %p3, %r2, 0; @%p3 bra END;\n"
      "WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, [%r1], 0; @!%p4 bra WAIT;\n"
      "mov.u32 %d, 5;\nEND:" +
      meet;
  const Outcome outcome =
      run_small({.declarations = tile, .body = body, .threads = 32, .blocks = 3, .cluster = {3, 1, 1}});
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  EXPECT_EQ(words_of(outcome)[0], 5u);
  EXPECT_EQ(words_of(outcome)[32], 0u);
}

TEST(Cluster, BlocksMeetOnlyWhenAllHaveArrived) {
  // Block 0 reads behind the barrier what block 1 stores in front of it, after a long loop.
  const std::string slow =
      "setp.ne.u32 %p1, %r30, 1; mov.u32 %r9, 0; @%p1 bra ON;\n"
      "SPIN: add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 400000; @%p2 bra SPIN;\nON:\n";
  const Outcome outcome = run_small({.declarations = tile,
                                     .body = store_to_next + slow + "st.shared::cluster.u32 [%r5], %r8;\n" +
                                             meet + "ld.shared.u32 %d, [%r7];",
                                     .threads = 32,
                                     .blocks = 2,
                                     .cluster = {2, 1, 1}});
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  EXPECT_EQ(words_of(outcome)[0], 100u);
  EXPECT_EQ(words_of(outcome)[63], 31u);
}

TEST(Cluster, MisuseTrapsWithItsReason) {
  const std::pair<std::string, const char*> cases[] = {
      {"barrier.cluster.wait;", "without having arrived there"},
      {"barrier.cluster.arrive; barrier.cluster.arrive;", "without having waited for it"},
      {"setp.eq.u32 %p1, %r30, 0; @%p1 bar.sync 0, 64;", "wait at barriers that nobody will complete"},
      {store_to_next + "ld.shared.u32 %d, [%r5];", "shared memory at byte"},
      {store_to_next + "st.shared::cluster.u32 [%r5+256], %r8;", "shared memory at byte"},
      {"mov.u32 %r1, tile; mapa.shared::cluster.u32 %r5, %r1, 2; ld.shared::cluster.u32 %d, [%r5];",
       "shared memory at byte"}};
  for (const auto& [body, message] : cases) {
    const Outcome outcome =
        run_small({.declarations = tile, .body = body, .threads = 32, .blocks = 2, .cluster = {2, 1, 1}});
    ASSERT_TRUE(outcome.trap) << body;
    EXPECT_NE(outcome.trap->message.find(message), std::string::npos) << outcome.trap->message;
  }
  const Outcome second = run_small({.declarations = tile,
                                    .body = "setp.eq.u32 %p1, %r30, 1; @%p1 trap;",
                                    .threads = 32,
                                    .blocks = 2,
                                    .cluster = {2, 1, 1}});
  ASSERT_TRUE(second.trap);
  EXPECT_EQ(second.trap->block[0], 1u);
}

TEST(Cluster, LaunchesThatDoNotFitAreRefused) {
  const auto refused = [](const SmallKernel& kernel, const std::string& directive) {
    TensorMap inputs;
    Program program = plan_of(kernel, inputs);
    std::string text = *program.modules[0].ptx;
    text.insert(text.find("\n{\n"), directive);
    program.modules[0].ptx = std::make_shared<std::string>(text);
    try {
      run(program, inputs, {.threads = 1});
      return std::string();
    } catch (const BadInput& error) {
      return std::string(error.what());
    }
  };
  const std::string two = "\n.explicitcluster\n.reqnctapercluster 2, 1, 1";
  EXPECT_EQ(refused({.blocks = 4}, two), "");
  EXPECT_EQ(refused({.blocks = 4, .cluster = {2, 1, 1}}, two), "");
  EXPECT_NE(refused({.blocks = 3}, two).find("do not fill"), std::string::npos);
  EXPECT_NE(refused({.blocks = 4, .cluster = {4, 1, 1}}, two).find("compiled for 2 x 1 x 1"),
            std::string::npos);
  EXPECT_NE(refused({.blocks = 32, .cluster = {32, 1, 1}}, "").find("at most 16"), std::string::npos);
}

}  // namespace cluster_test
}  // namespace assay::vm
