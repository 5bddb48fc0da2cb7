#include "src/base/vm/checks/race_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/vm/checks/checked_kernel.h"

namespace assay::vm {
namespace checks_race_check_test {

constexpr const char* tile = ".shared .align 16 .b8 tile[512];";

// %r32 is the thread, %r30 the block, %t the thread of the grid. Addresses: %r1 mine, %r2 another warp's, %r3
// my neighbour's in the warp.
#define ADDRESSES                                                                                        \
  "mov.u32 %r0, tile; shl.b32 %r1, %r32, 2; add.s32 %r1, %r1, %r0; xor.b32 %r2, %r32, 32; shl.b32 %r2, " \
  "%r2, 2; add.s32 %r2, %r2, %r0; xor.b32 %r3, %r32, 1; shl.b32 %r3, %r3, 2; add.s32 %r3, %r3, %r0;\n"

const Twin twins[] = {
    {"read after write by another warp", "race",
     ADDRESSES "st.shared.b32 [%r1], %t; // before\nFAULT\nld.shared.b32 %d, [%r2]; // after\n", "",
     "bar.sync 0;", tile},
    {"write after read by another warp, in several blocks", "race",
     ADDRESSES "st.shared.b32 [%r1], %t; bar.sync 0; ld.shared.b32 %d, [%r2]; // before\nFAULT\n"
               "st.shared.b32 [%r1], %d; // after\n",
     "", "bar.sync 0;", tile, 64, 3},
    {"write after write by another warp", "race",
     ADDRESSES "st.shared.b32 [%r1], %t; // before\nFAULT\nst.shared.b32 [%r2], %t; // after\n", "",
     "bar.sync 0;", tile},
    {"two warps store to one place", "race",
     ADDRESSES "and.b32 %r1, %r32, 31; shl.b32 %r1, %r1, 2; add.s32 %r1, %r1, %r0; and.b32 %r6, %r32, 31;\n"
               "st.shared.b32 [%r1], FAULT // before // after\n",
     "%t;", "%r6;", tile},
    {"a barrier for some threads only orders those", "race",
     ADDRESSES "st.shared.b32 [%r1], %t; // before\nFAULT\nld.shared.b32 %d, [%r2]; // after\n",
     "shr.u32 %r4, %r32, 5; add.s32 %r4, %r4, 1; bar.sync %r4, 32;", "bar.sync 3, 64;", tile},
    {"arrivals order those who wait, not those who arrive", "race",
     ADDRESSES "setp.lt.u32 %p1, %r32, 32; @%p1 bra FIRST;\nst.shared.b32 [%r1], %t;\n"
               "FAULT bra DONE; // before\nFIRST: bar.sync 1, 64; ld.shared.b32 %d, [%r2]; // after\n",
     "bar.arrive 1, 64; st.shared.b32 [%r1], %t;", "bar.arrive 1, 64;", tile},
    {"lanes of a warp pass a value through memory", "warp-race",
     ADDRESSES "st.shared.b32 [%r1], %t; // before\nFAULT\nld.shared.b32 %d, [%r3]; // after\n", "",
     "bar.warp.sync -1;", tile},
    {"a shuffle orders the lanes it names", "warp-race",
     ADDRESSES "st.shared.b32 [%r1], %t; // before\nFAULT\nld.shared.b32 %d, [%r3]; // after\n", "",
     "shfl.sync.bfly.b32 %r5, %t, 1, 31, -1;", tile},
    {"a sum by volatile memory that counts on lanes in step", "warp-race",
     ADDRESSES
     "st.volatile.shared.b32 [%r1], %t; // before\nFAULT\nld.volatile.shared.b32 %d, [%r3]; // after\n",
     "", "bar.warp.sync -1;", tile, 32},
    {"a store by volatile memory of what another lane still reads", "warp-race",
     ADDRESSES
     "st.volatile.shared.b32 [%r1], %t; bar.warp.sync -1; ld.volatile.shared.b32 %d, [%r3]; // before\n"
     "FAULT\nst.volatile.shared.b32 [%r1], %d; // after\n",
     "", "bar.warp.sync -1;", tile, 32},
    {"lanes of one access that reach several spaces", "race",
     ADDRESSES
     "cvta.shared.u64 %rd1, 0; cvt.u64.u32 %rd2, %r1; add.s64 %rd1, %rd1, %rd2; setp.lt.u32 %p1, %r32, 40;\n"
     "selp.b64 %rd3, %pc, %rd1, %p1; st.b32 [%rd3], %t; // after\nFAULT\n"
     "setp.lt.u32 %p1, %r32, 32; @%p1 ld.shared.b32 %d, [%r2]; // before\n",
     "", "bar.sync 0;", tile},
    {"synchronising half a warp orders that half", "warp-race",
     ADDRESSES "st.shared.b32 [%r1], %t; // before\nsetp.lt.u32 %p1, %r32, 16; @%p1 bra LOW;\n"
               "FAULT bra DONE;\nLOW: bar.warp.sync 0x0000ffff; ld.shared.b32 %d, [%r3]; bra DONE;\n",
     "ld.shared.b32 %d, [%r3]; // after", "bar.warp.sync 0xffff0000; ld.shared.b32 %d, [%r3];", tile, 32},
    {"halves of a warp that synchronise at one instruction, each by its own mask", "warp-race",
     ADDRESSES "setp.lt.u32 %p1, %r32, 16; selp.b32 %r5, 0x0000ffff, 0xffff0000, %p1;\n"
               "st.shared.b32 [%r1], %t; // before\nFAULT\nld.shared.b32 %d, [%r3]; // after\n",
     "", "bar.warp.sync %r5;", tile, 32},
    {"different values in one store", "warp-race",
     "mov.u32 %r0, tile; mov.u32 %r6, 7;\nst.shared.b32 [%r0], FAULT // before // after\n", "%t;", "%r6;",
     tile, 32},
    {"atomics with a plain read", "race",
     "mov.u32 %r0, tile; red.shared.add.u32 [%r0], 1; // after\nFAULT\nld.shared.b32 %d, [%r0]; // before\n",
     "", "bar.sync 0;", tile},
    {"a counter zeroed by a thread that counts itself before others do", "race",
     "mov.u32 %r0, tile; setp.ne.u32 %p1, %r32, 0; @%p1 bra COUNT;\nst.shared.b32 [%r0], 0; // before\n"
     "COUNT: FAULT\nsetp.ne.u32 %p1, %r32, 0; setp.lt.u32 %p2, %r32, 32; and.pred %p1, %p1, %p2; @%p1 bra "
     "DONE;\n"
     "red.shared.add.u32 [%r0], 1; // after\n",
     "", "bar.sync 0;", tile},
    {"a flag after a fence orders lanes of a warp", "warp-race",
     "mov.u32 %r0, tile; setp.ne.u32 %p1, %r32, 0; @%p1 bra MEET; st.shared.b32 [%r0+8], 0; MEET: bar.sync "
     "0;\n"
     "@!%p1 bra SET; bra WAIT; SET: st.shared.b32 [%r0], %t; // before\n"
     "FAULT atom.shared.exch.b32 %r5, [%r0+8], 1;\n"
     "WAIT: atom.shared.or.b32 %r5, [%r0+8], 0; setp.eq.u32 %p2, %r5, 0; @%p2 bra WAIT; membar.cta;\n"
     "ld.shared.b32 %d, [%r0]; // after\n",
     "", "membar.cta;", tile, 32},
    {"cp.async needs a barrier for others", "race",
     ADDRESSES "cp.async.ca.shared.global [%r1], [%pa], 4; // before\ncp.async.wait_all;\nFAULT\n"
               "ld.shared.b32 %d, [%r2]; // after\n",
     "", "bar.sync 0;", tile},
    {"cp.async issued while others still read", "race",
     ADDRESSES "st.shared.b32 [%r1], %t; bar.sync 0;\nld.shared.b32 %d, [%r2]; // before\nFAULT\n"
               "cp.async.ca.shared.global [%r1], [%pa], 4; // after\nbar.sync 0; cp.async.wait_all;\n",
     "", "bar.sync 0;", tile},
    {"stmatrix before another warp reads", "race",
     ADDRESSES
     "setp.gt.u32 %p1, %r32, 31; @%p1 bra READ; shl.b32 %r5, %r32, 4; and.b32 %r5, %r5, 112; add.s32 %r5, "
     "%r5, %r0;\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%t}; // before\nREAD: FAULT\n"
     "@%p1 ld.shared.b32 %d, [%r2]; // after\n",
     "", "bar.sync 0;", tile},
    {"bytes side by side are not one", "race",
     "mov.u32 %r0, tile; add.s32 %r1, %r0, %r32; xor.b32 %r2, %r32, 32; add.s32 %r2, %r2, %r0;\n"
     "st.shared.u8 [%r1], %t; // before\nFAULT\nld.shared.u8 %d, [%r2]; // after\n",
     "", "bar.sync 0;", tile},
    {"blocks of one launch have no order", "race",
     "ld.param.u64 %rd1, [pd]; mul.wide.u32 %rd2, %r32, 4; add.s64 %rd1, %rd1, %rd2;\n"
     "FAULT // before // after\nmov.u32 %d, 1;\n",
     "st.global.b32 [%rd1], %t;", "st.global.b32 [%pd], %t;", "", 32, 3},
    {"an input that is written in place is followed too", "race",
     "ld.param.u64 %rd1, [pa]; FAULT ld.global.b32 %d, [%rd1]; // after\nst.global.b32 [%pa], %t; // "
     "before\n",
     "", "add.s64 %rd1, %pa, 0;", "", 32, 2},
    {"an early reader does not hide a later one", "race",
     "mov.u64 %rd1, count; setp.lt.u32 %p1, %r32, 32; setp.ge.u32 %p2, %r32, 64;\n"
     "@!%p1 ld.global.b32 %r1, [%rd1];\nbar.sync 0;\n@%p1 ld.global.b32 %d, [%rd1]; // before\n"
     "@%p2 ld.global.b32 %r2, [%rd1];\nFAULT\n@%p2 st.global.b32 [%rd1], 1; // after\n",
     "", "bar.sync 0;", ".global .align 4 .u32 count;", 96},
    {"a read that a compare-and-swap confirms", "race",
     "mov.u64 %rd1, count; ld.global.b32 %r1, [%rd1]; // before\nFAULT // after\n",
     "red.global.add.u32 [%rd1], 1; mov.u32 %d, %r1;", "atom.global.cas.b32 %r2, [%rd1], %r1, 7;",
     ".global .align 4 .u32 count;", 64},
    // Both lanes of a pair make a^2 + b^2, each with its own product fused; only one of them is rounded.
    {"lanes store numbers that no rounding makes equal", "warp-race",
     "mov.u32 %r0, tile; shr.u32 %r1, %r32, 4; and.b32 %r2, %r32, 15; shl.b32 %r3, %r2, 2; add.s32 %r3, %r3, "
     "%r0;\n"
     "cvt.rn.f32.u32 %f1, %r32; add.f32 %f1, %f1, 0f3DCCCCCD; mul.f32 %f2, %f1, %f1;\n"
     "shfl.sync.bfly.b32 %r4, %f2, 16, 31, -1; mov.b32 %f3, %r4; fma.rn.f32 %f4, %f1, %f1, FAULT;\n"
     "st.shared.f32 [%r3], %f4; // before // after\n",
     "%f1", "%f3", tile, 32},
    // All threads hold the element, one stores it: what the others may have read too late reaches nothing.
    {"a load whose value is stored by another thread than the one that changes it", "race",
     "ld.param.u64 %rd1, [pa]; ld.global.b32 %r1, [%rd1]; // after\nsetp.eq.u32 %p1, %r32, 0; add.s32 %r1, "
     "%r1, 1;\n"
     "@%p1 st.global.b32 [%rd1], %r1; // before\nFAULT\n",
     "mov.u32 %d, %r1;", "@%p1 mov.u32 %d, %r1;"},
    {"a load that decides whether a store runs", "race",
     "ld.param.u64 %rd1, [pa]; ld.global.b32 %r1, [%rd1]; // after\nsetp.eq.u32 %p1, %r32, 0; setp.eq.u32 "
     "%p2, %r1, "
     "3;\n@%p1 st.global.b32 [%rd1], %r1; // before\nFAULT st.global.b32 [%pc], 1;\n",
     "@%p2", ""},
    {"a load whose value a shuffle carries to another lane", "warp-race",
     "ld.param.u64 %rd1, [pa]; ld.global.b32 %r1, [%rd1]; // before\nsetp.eq.u32 %p1, %r32, 0;\n"
     "@%p1 st.global.b32 [%rd1], 5; // after\nFAULT\n",
     "shfl.sync.idx.b32 %d, %r1, 1, 31, -1;", "shfl.sync.idx.b32 %d, %r1, 0, 31, -1;", "", 32},
    // The last block to count up reads what the others stored: ordered by the fence before the count.
    {"a count after a fence orders blocks", "race",
     "st.global.b32 [%pd], %t; // before\nFAULT bar.sync 0;\n"
     "atom.global.add.u32 %r1, [count], 1; setp.ne.u32 %p1, %r1, 2; @%p1 bra QUIT;\n"
     "ld.param.u64 %rd1, [pd]; ld.global.b32 %r2, [%rd1]; ld.global.b32 %r3, [%rd1+4]; // after\n"
     "st.global.b32 [%pa], %r2; st.global.b32 [%pa], %r3; QUIT: ret;\n",
     "", "membar.gl;", ".global .align 4 .u32 count;", 1, 3},
};

Checks only_races() {
  Checks checks = Checks::none();
  checks.races = true;
  return checks;
}

class Races : public testing::TestWithParam<Twin> {};
INSTANTIATE_TEST_SUITE_P(Table, Races, testing::ValuesIn(twins), [](const auto& info) {
  std::string name = info.param.name;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
});

TEST_P(Races, AreFoundAtBothLinesAndTheRepairedTwinIsSilent) {
  const SmallKernel broken = kernel_of(GetParam(), GetParam().fault),
                    repaired = kernel_of(GetParam(), GetParam().repair);
  const CheckedRun bad = run_checked(broken, only_races());
  const int before = line_with(broken, "// before"), after = line_with(broken, "// after");
  bool found = false;
  for (const CheckFinding& finding : bad.report.findings) {
    EXPECT_EQ(finding.check, CheckName::races);
    ASSERT_TRUE(finding.other);
    EXPECT_TRUE(finding.at.thread != finding.other->thread || finding.at.block != finding.other->block)
        << finding.message;
    found |= name_of(finding.kind) == GetParam().kind && finding.at.where.ptx_line == after &&
             finding.other->where.ptx_line == before;
  }
  EXPECT_TRUE(found) << "lines " << before << " and " << after << "\n"
                     << all_messages(bad.report) << (bad.trap ? bad.trap->message : "");
  const CheckedRun good = run_checked(repaired, only_races());
  EXPECT_FALSE(good.trap) << good.trap->message;
  EXPECT_TRUE(good.report.findings.empty()) << all_messages(good.report);
}

/// The twin of that name, repaired, has no finding, and a word on what was met.
void expect_dismissed(const char* name, const char* kind, uint64_t times, const char* reason) {
  const auto twin = std::find_if(std::begin(twins), std::end(twins),
                                 [&](const Twin& t) { return t.name == std::string(name); });
  ASSERT_NE(twin, std::end(twins));
  const SmallKernel repaired = kernel_of(*twin, twin->repair);
  const CheckReport report = run_checked(repaired, only_races()).report;
  EXPECT_TRUE(report.findings.empty()) << all_messages(report);
  ASSERT_EQ(report.dismissed.size(), 1u) << name;
  EXPECT_EQ(name_of(report.dismissed[0].met.kind), kind);
  EXPECT_EQ(report.dismissed[0].met.count, times);
  EXPECT_EQ(report.dismissed[0].met.at.where.ptx_line, line_with(repaired, "// after"));
  EXPECT_NE(report.dismissed[0].reason.find(reason), std::string::npos) << report.dismissed[0].reason;
}

TEST(RaceCheck, WhatIsMetAndNoFindingIsToldWithItsReason) {
  uint64_t unequal = 0;  // pairs of lanes whose two fused sums of squares differ
  for (int i = 0; i < 16; ++i) {
    const float a = static_cast<float>(i) + 0.1f, b = static_cast<float>(i + 16) + 0.1f;
    unequal += std::fma(a, a, b * b) != std::fma(b, b, a * a);
  }
  expect_dismissed("lanes store numbers that no rounding makes equal", "warp-race", unequal,
                   "different roundings of fused products");
  expect_dismissed("a load whose value a shuffle carries to another lane", "warp-race", 1,
                   "reaches no store");
}

TEST(RaceCheck, OneSentenceNamesMemoryBothThreadsAndBothLines) {
  const SmallKernel broken = kernel_of(twins[0], "");
  const CheckedRun run = run_checked(broken, only_races());
  // That the first warp read too early is of the same barrier.
  ASSERT_EQ(run.report.findings.size(), 1u) << all_messages(run.report);
  const CheckFinding& finding = run.report.findings[0];
  EXPECT_EQ(finding.element, "shared tile");
  EXPECT_EQ(finding.message,
            "shared tile: written at k, PTX line " + std::to_string(line_with(broken, "// before")) +
                " by thread (0,0,0) of block (0,0,0); read at k, PTX line " +
                std::to_string(line_with(broken, "// after")) +
                " by thread (32,0,0) of block (0,0,0): no barrier (__syncthreads) between them");
  EXPECT_EQ(finding.count, 32u);
  ASSERT_EQ(finding.also.size(), 1u);
  EXPECT_TRUE(finding.also[0].message.starts_with("shared tile + 128: read at k, PTX line"))
      << finding.also[0].message;
}

TEST(RaceCheck, SharedMemoryIsABlocksOfTheGridOrOfACluster) {
  SmallKernel racing{
      .declarations = ".shared .align 4 .b8 s[256];",
      .body = "mov.u32 %r0, s; setp.ne.u32 %p0, %r30, 1; @%p0 bra DONE; st.shared.u32 [%r0], %t;",
      .threads = 64,
      .blocks = 2,
      .cluster = {2, 1, 1}};
  const CheckedRun of_cluster = run_checked(racing);
  ASSERT_NE(of_cluster.first("race"), nullptr);
  EXPECT_EQ(of_cluster.first("race")->element, "shared s of block 1 of the cluster");
  racing.cluster = {};
  TensorMap inputs;
  Program program = plan_of(racing, inputs);
  program.launches[0].cooperative = true;
  CheckedRun of_grid;
  of_grid.report = run_checked(program, inputs, {.threads = 1}, Checks{}, &of_grid.trap);
  ASSERT_NE(of_grid.first("race"), nullptr);
  EXPECT_EQ(of_grid.first("race")->element, "shared s of block (1,0,0)");
}

TEST(RaceCheck, VolatileAccessesAndAtomicsDoNotRaceWithEachOther) {
  SmallKernel kernel;
  kernel.declarations = tile;
  kernel.threads = 64;
  kernel.body =
      "mov.u32 %r0, tile; st.volatile.shared.b32 [%r0], 5; atom.shared.exch.b32 %r1, [%r0], 5; "
      "ld.volatile.shared.b32 %d, [%r0];";
  const CheckedRun run = run_checked(kernel);
  EXPECT_TRUE(run.report.findings.empty()) << all_messages(run.report);
}

TEST(RaceCheck, AVolatileLoadThatWaitsForAValueNeedsNoOrder) {
  SmallKernel kernel;
  kernel.declarations = tile;
  kernel.body =
      "mov.u32 %r0, tile; setp.ne.u32 %p1, %r32, 0; @%p1 bra MEET; st.shared.b32 [%r0], 0; MEET: bar.sync "
      "0;\n"
      "@!%p1 bra SET; bra WAIT; SET: st.volatile.shared.b32 [%r0], 7;\n"
      "WAIT: ld.volatile.shared.b32 %d, [%r0]; setp.eq.u32 %p2, %d, 0; @%p2 bra WAIT;";
  const CheckedRun run = run_checked(kernel, only_races());
  EXPECT_FALSE(run.trap) << run.trap->message;
  EXPECT_TRUE(run.report.findings.empty()) << all_messages(run.report);
}

TEST(RaceCheck, ABlockOfAClusterEndsAfterWhatOthersDoInItsMemory) {
  SmallKernel kernel;
  kernel.declarations = ".shared .align 8 .b8 s[512];";
  kernel.threads = 64, kernel.blocks = 4, kernel.cluster = {2, 1, 1};
  const std::string
      meet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n",
      begin =
          "mov.u32 %r0, s; shl.b32 %r1, %r32, 2; add.s32 %r1, %r1, %r0; st.shared.b32 [%r1], %t;\n"
          "setp.ne.u32 %p1, %r32, 0; @%p1 bra MADE; mbarrier.init.shared.b64 [%r0+256], 64;\nMADE: " +
          meet +
          "mov.u32 %r2, %cluster_ctarank; xor.b32 %r2, %r2, 1;\n"
          "mapa.shared::cluster.u32 %r3, %r1, %r2; mapa.shared::cluster.u32 %r4, %r0, %r2;\n"
          "ld.shared::cluster.u32 %d, [%r3]; // here\n";
  kernel.body = begin;
  const CheckedRun bad = run_checked(kernel, only_races());
  ASSERT_EQ(bad.kinds(), std::vector<std::string>{"ended-block"}) << all_messages(bad.report);
  EXPECT_EQ(bad.report.findings[0].at.where.ptx_line, line_with(kernel, "// here"));
  EXPECT_EQ(bad.report.findings[0].count, 8u);  // each warp, once
  for (const std::string& end :
       {meet, std::string("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4+256];\n"
                          "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r0+256], 0; @!%p2 bra WAIT;")}) {
    kernel.body = begin + end;
    const CheckedRun good = run_checked(kernel, only_races());
    EXPECT_FALSE(good.trap) << good.trap->message;
    EXPECT_TRUE(good.report.findings.empty()) << all_messages(good.report);
  }
  // One thread that waits is enough: the block is there until the last has gone.
  kernel.body =
      begin + "barrier.cluster.arrive; setp.lt.u32 %p2, %r32, 32; @%p2 bra DONE; barrier.cluster.wait;";
  const CheckedRun one = run_checked(kernel, only_races());
  EXPECT_TRUE(one.report.findings.empty()) << all_messages(one.report) << (one.trap ? one.trap->message : "");
}

TEST(RaceCheck, ALaunchIsOrderedAfterTheOneBeforeIt) {
  SmallKernel kernel;
  kernel.threads = 32;
  kernel.blocks = 2;
  kernel.body =
      "xor.b32 %r1, %t, 32; ld.param.u64 %rd1, [pd]; mul.wide.u32 %rd2, %t, 4; add.s64 %rd1, %rd1, %rd2;";
  TensorMap inputs;
  Program plan = plan_of(kernel, inputs);
  plan.launches.push_back(plan.launches[0]);
  EXPECT_TRUE(run_checked(plan, inputs, {"sm_90", 1, 0}, {}).findings.empty());
}

}  // namespace checks_race_check_test
}  // namespace assay::vm
