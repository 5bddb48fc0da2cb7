#include "src/base/vm/checks/async_check.h"

#include <gtest/gtest.h>

#include "tests/vm/checks/checked_kernel.h"

namespace assay::vm {
namespace {

constexpr const char* tile = ".shared .align 1024 .b8 tile[4096];";

// %r1: 16 bytes of this thread. %rd8: descriptor of B at byte 0 of the tile, 128 bytes from 16 bytes of k to
// the next, 256 from eight columns to the next. A in %r10 .. %r13, sums in %f1 .. %f4.
#define SETUP                                                                                              \
  "mov.u32 %r0, tile; shl.b32 %r1, %r32, 4; add.s32 %r1, %r1, %r0;\n"                                      \
  "and.b32 %r2, %r0, 0x3ffff; shr.u32 %r2, %r2, 4; cvt.u64.u32 %rd8, %r2; or.b64 %rd8, %rd8, "             \
  "0x1000080000;\nmov.u32 %r10, 0x3f803f80; mov.u32 %r11, %r10; mov.u32 %r12, %r10; mov.u32 %r13, %r10;\n" \
  "mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1; setp.eq.u32 %p1, %r0, "  \
  "%r0;\n"
#define FILL "st.shared.v4.b32 [%r1], {%t, %t, %t, %t};"
#define FENCES "fence.proxy.async; bar.sync 0; wgmma.fence.sync.aligned;\n"
#define MULTIPLY                                                                                         \
  "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, {%r10,%r11,%r12,%r13}, %rd8, " \
  "%p1, "                                                                                                \
  "1, 1, 0;"
#define COMMIT "wgmma.commit_group.sync.aligned;\n"
#define WAIT "wgmma.wait_group.sync.aligned 0;\n"
#define RESULT "mov.b32 %d, %f1;\n"

// %r3: 16 bytes of this thread of the tile; %r5 an mbarrier of one arrival, and one behind it; %p3: thread 0.
#define GATES                                                                                             \
  "mov.u32 %r4, tile; shl.b32 %r3, %r32, 4; add.u32 %r3, %r3, %r4; mov.u32 %r5, gates; setp.eq.u32 %p3, " \
  "%r32, 0; ld.param.u64 %rd1, [pa]; ld.param.u64 %rd2, [pd];\n"                                          \
  "@%p3 mbarrier.init.shared.b64 [%r5], 1; @%p3 mbarrier.init.shared.b64 [%r5+8], 32; @%p3 "              \
  "fence.mbarrier_init.release.cluster; bar.sync 0;\n"
#define LOAD_TILE_UNMARKED                                                  \
  "@%p3 mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 128;\n"              \
  "@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes " \
  "[%r4], [%rd1], 128, [%r5];"
#define LOAD_TILE LOAD_TILE_UNMARKED " // before\n"
#define STORE_TILE "@%p3 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r4], 128;"
#define COMMIT_BULK "@%p3 cp.async.bulk.commit_group;\n"
#define WAIT_BULK "@%p3 cp.async.bulk.wait_group.read 0; bar.sync 0;\n"
#define PASS(name, parity) \
  name ": mbarrier.try_wait.parity.shared.b64 %p4, [%r5], " parity "; @!%p4 bra " name ";\n"
constexpr const char* gates = ".shared .align 1024 .b8 tile[4096]; .shared .align 8 .b8 gates[16];";

const Twin twins[] = {
    {"a result is read in flight", "wgmma-race",
     SETUP FILL FENCES MULTIPLY " // before\n" COMMIT "FAULT add.f32 %f9, %f1, %f2; // after\n" WAIT RESULT,
     "", WAIT, tile, 128},
    {"a result is overwritten in flight", "wgmma-race",
     SETUP FILL FENCES MULTIPLY " // before\n" COMMIT "FAULT mov.f32 %f3, 0f3F800000; // after\n" WAIT RESULT,
     "", WAIT, tile, 128},
    {"a wait that leaves the newest group in flight", "wgmma-race",
     SETUP FILL FENCES MULTIPLY COMMIT MULTIPLY
     " // before\n" COMMIT
     "wgmma.wait_group.sync.aligned FAULT;\nst.shared.f32 [%r0+3000], %f2; // after\n" WAIT RESULT,
     "1", "0", tile, 128},
    {"what was not committed is not waited for", "wgmma-race",
     SETUP FILL FENCES MULTIPLY " // before\nFAULT\n" WAIT
                                "add.f32 %f9, %f1, %f2; // after\n" COMMIT WAIT RESULT,
     "", COMMIT, tile, 128},
    {"A in registers is overwritten in flight", "wgmma-race",
     SETUP FILL FENCES MULTIPLY " // before\n" COMMIT "FAULT add.s32 %r12, %r12, 1; // after\n" WAIT RESULT,
     "", WAIT, tile, 128},
    {"a sum is written after the fence", "wgmma-race",
     SETUP FILL FENCES "add.f32 %f2, %f2, %f2; // before\nFAULT\n" MULTIPLY " // after\n" COMMIT WAIT RESULT,
     "", "wgmma.fence.sync.aligned;", tile, 128},
    {"shared memory is read without a proxy fence", "wgmma-race",
     SETUP FILL " // before\nFAULT bar.sync 0; wgmma.fence.sync.aligned;\n" MULTIPLY
                " // after\n" COMMIT WAIT RESULT,
     "", "fence.proxy.async;", tile, 128},
    {"a fence of one warp after the barrier is enough", "wgmma-race",
     SETUP FILL " // before\nbar.sync 0; FAULT wgmma.fence.sync.aligned;\n" MULTIPLY
                " // after\n" COMMIT WAIT RESULT,
     "", "fence.proxy.async;", tile, 128},
    {"shared memory is overwritten in flight", "wgmma-race",
     SETUP FILL FENCES MULTIPLY " // before\n" COMMIT "FAULT\n" FILL " // after\n" WAIT RESULT, "",
     WAIT "bar.sync 0;", tile, 128},
    {"cp.async overwrites in flight", "wgmma-race",
     SETUP FILL FENCES MULTIPLY
     " // before\n" COMMIT
     "FAULT\ncp.async.ca.shared.global [%r1], [%pa], 4; // after\ncp.async.wait_all;\n" WAIT RESULT,
     "", WAIT "bar.sync 0;", tile, 128},
    {"a cp.async brings half of what a store wrote", "wgmma-race",
     SETUP "ld.param.u64 %rd7, [pa]; st.shared.v2.b64 [%r1], {%pa, %pa}; // before\nbar.sync 0;\n"
           "cp.async.ca.shared.global [%r1], [%rd7], FAULT; cp.async.wait_all; bar.sync 0; "
           "wgmma.fence.sync.aligned;\n" MULTIPLY " // after\n" COMMIT WAIT RESULT,
     "8", "16", tile, 128},
    {"a copy is read before its wait", "async-copy-race",
     SETUP "cp.async.ca.shared.global [%r1], [%pa], 4; // before\ncp.async.commit_group;\nFAULT\n"
           "ld.shared.b32 %d, [%r1]; // after\ncp.async.wait_all;\n",
     "", "cp.async.wait_group 0;", tile, 32},
    {"a copy of the newest group is read", "async-copy-race",
     SETUP "cp.async.ca.shared.global [%r1], [%pa], 4; cp.async.commit_group;\n"
           "cp.async.ca.shared.global [%r1+4], [%pa], 4; // before\ncp.async.commit_group;\n"
           "cp.async.wait_group FAULT;\nld.shared.b32 %d, [%r1+4]; // after\ncp.async.wait_all;\n",
     "1", "0", tile, 32},
    {"a copy is overwritten before its wait", "async-copy-race",
     SETUP "cp.async.ca.shared.global [%r1], [%pa], 4; // before\nFAULT\nst.shared.b32 [%r1], %t; // after\n"
           "cp.async.wait_all;\n",
     "", "cp.async.wait_all;", tile, 32},
    {"a copy is read by ldmatrix before its wait", "async-copy-race",
     SETUP FILL "bar.sync 0;\ncp.async.ca.shared.global [%r1], [%pa], 4; // before\nFAULT\n"
                "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d}, [%r1]; // after\ncp.async.wait_all;\n",
     "", "cp.async.wait_all; bar.sync 0;", tile, 32},
    {"a tile is read before it has come", "bulk-copy-race",
     GATES LOAD_TILE "FAULT\nld.shared.b32 %d, [%r4+64]; // after\n" PASS("LATER", "0"), "",
     PASS("FIRST", "0"), gates, 32},
    {"a tile is overwritten before it has come", "bulk-copy-race",
     GATES LOAD_TILE "FAULT\n@%p3 st.shared.b32 [%r4+64], %d; // after\n" PASS("LATER", "0"), "",
     PASS("FIRST", "0"), gates, 32},
    {"a tile is filled again before it has come", "bulk-copy-race",
     GATES LOAD_TILE "FAULT\n@%p3 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r5], 128;\n"
                     "@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4+64], "
                     "[%rd1], 128, [%r5]; // "
                     "after\n",
     "", PASS("FIRST", "0"), gates, 32},
    {"a bulk copy overwrites what a wgmma in flight reads", "wgmma-race",
     SETUP GATES FILL FENCES MULTIPLY " // before\n" COMMIT "FAULT\n" LOAD_TILE_UNMARKED
                                      " // after\n" WAIT PASS("LATER", "0") RESULT,
     "", WAIT "bar.sync 0;", gates, 128},
    {"a bulk copy overwrites what the first of two warpgroups still reads", "wgmma-race",
     SETUP GATES FILL FENCES "setp.ge.u32 %p5, %r32, 128; @%p5 bra SECOND;\n" MULTIPLY " // before\n" COMMIT
                             "SECOND: bar.sync 0; @!%p5 bra BOTH;\n" MULTIPLY COMMIT WAIT
                             "BOTH: FAULT bar.sync 0;\n" LOAD_TILE_UNMARKED
                             " // after\n" WAIT PASS("LATER", "0") RESULT,
     "", WAIT, gates, 256},
    {"the source of a bulk store is overwritten", "bulk-copy-race",
     GATES "@!%p3 bra SKIP; st.shared.b32 [%r4], %t;\nSKIP: fence.proxy.async; bar.sync 0;\n" STORE_TILE
           " // before\n" COMMIT_BULK "FAULT @%p3 st.shared.b32 [%r4+16], %t; // after\n" WAIT_BULK,
     "", WAIT_BULK, gates, 32},
    {"the source of the newest bulk store is overwritten", "bulk-copy-race",
     GATES STORE_TILE "\n" COMMIT_BULK STORE_TILE " // before\n" COMMIT_BULK
                      "@%p3 cp.async.bulk.wait_group.read FAULT; @%p3 st.shared.b32 [%r4+16], %t; // after\n",
     "1", "0", gates, 32},
    {"a bulk store reads what no proxy fence has shown it", "proxy-fence",
     GATES "st.shared.b32 [%r3], %t; // before\nFAULT bar.sync 0;\n" STORE_TILE
           " // after\n" COMMIT_BULK WAIT_BULK,
     "", "fence.proxy.async;", gates, 32},
    {"the fence stands in front of the store to shared memory", "proxy-fence",
     GATES "fence.proxy.async; st.shared.b32 [%r3], %t; // before\nFAULT bar.sync 0;\n" STORE_TILE
           " // after\n" COMMIT_BULK WAIT_BULK,
     "", "fence.proxy.async.shared::cta;", gates, 32},
    {"a fence of the issuer behind the barrier is enough", "proxy-fence",
     GATES "st.shared.b32 [%r3], %t; // before\nbar.sync 0; FAULT\n" STORE_TILE
           " // after\n" COMMIT_BULK WAIT_BULK,
     "", "@%p3 fence.proxy.async;", gates, 32},
    {"a parity does not change with the phases", "mbarrier-phase",
     GATES LOAD_TILE_UNMARKED
     "\nFIRST: mbarrier.try_wait.parity.shared.b64 %p4, [%r5], 0; // before\n@!%p4 bra FIRST;\n"
     "ld.shared.b32 %d, [%r4]; bar.sync 0;\n"
     "@%p3 mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 128;\n"
     "@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4+256], [%rd1], 128, [%r5];\n"
     "SECOND: mbarrier.try_wait.parity.shared.b64 %p4, [%r5], FAULT; // after\n@!%p4 bra SECOND;\n",
     "0", "1", gates, 32},
};

Checks only_async() {
  Checks checks = Checks::none();
  checks.async = true;
  return checks;
}

class Asynchronous : public testing::TestWithParam<Twin> {};
INSTANTIATE_TEST_SUITE_P(Table, Asynchronous, testing::ValuesIn(twins), [](const auto& info) {
  std::string name = info.param.name;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
});

TEST_P(Asynchronous, MisuseIsFoundAtBothLinesAndTheRepairedTwinIsSilent) {
  SmallKernel broken = kernel_of(GetParam(), GetParam().fault),
              repaired = kernel_of(GetParam(), GetParam().repair);
  const CheckedRun bad = run_checked(broken, only_async());
  ASSERT_FALSE(bad.trap) << bad.trap->message;
  const int before = line_with(broken, "// before"), after = line_with(broken, "// after");
  bool found = false;
  for (const CheckFinding& finding : bad.report.findings) {
    EXPECT_EQ(finding.check, CheckName::async);
    ASSERT_TRUE(finding.other);
    found |= name_of(finding.kind) == GetParam().kind && finding.at.where.ptx_line == after &&
             finding.other->where.ptx_line == before;
  }
  EXPECT_TRUE(found) << "lines " << before << " and " << after << "\n" << all_messages(bad.report);
  const CheckedRun good = run_checked(repaired);  // under every check
  EXPECT_FALSE(good.trap) << good.trap->message;
  for (const CheckFinding& finding : good.report.findings)
    EXPECT_NE(finding.check, CheckName::async) << finding.message;
}

TEST(AsyncCheck, SumsOfOneShapeFollowEachOtherWithoutAWait) {
  const SmallKernel kernel{.declarations = tile,
                           .body = SETUP FILL FENCES MULTIPLY MULTIPLY COMMIT MULTIPLY COMMIT WAIT RESULT,
                           .threads = 128};
  const CheckedRun run = run_checked(kernel);
  EXPECT_FALSE(run.trap) << run.trap->message;
  EXPECT_TRUE(run.report.findings.empty()) << all_messages(run.report);
}

/// Half of the bytes are told of: the wait passes when half of them have come.
TEST(AsyncCheck, BytesThatNoExpectationCountedAreAFindingWhenTheBlockEnds) {
  for (const bool right : {false, true}) {
    const SmallKernel kernel{
        .declarations = gates,
        .body =
            std::string(GATES "@%p3 mbarrier.arrive.expect_tx.shared.b64 _, [%r5], ") +
            (right ? "128" : "64") +
            ";\n@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd1], 64, "
            "[%r5];\n@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4+64], "
            "[%rd1], 64, [%r5]; // after\n" PASS("FIRST", "0") "ld.shared.b32 %d, [%r3];\n",
        .threads = 32};
    const CheckedRun run = run_checked(kernel, only_async());
    ASSERT_FALSE(run.trap) << run.trap->message;
    const CheckFinding* const found = run.first("mbarrier-phase");
    ASSERT_EQ(found == nullptr, right) << all_messages(run.report);
    if (right) continue;
    EXPECT_EQ(found->at.where.ptx_line, line_with(kernel, "// after"));
    EXPECT_NE(found->message.find("64 bytes have come that no expect_tx counted"), std::string::npos)
        << found->message;
  }
}

/// Its memory has another use when the block ends.
TEST(AsyncCheck, AnMbarrierThatIsOverwrittenCountsNoBytes) {
  const SmallKernel kernel{
      .declarations = gates,
      .body = GATES LOAD_TILE PASS("FIRST", "0") "bar.sync 0; @%p3 st.shared.b64 [%r5], -5;\n",
      .threads = 32};
  const CheckedRun run = run_checked(kernel, only_async());
  EXPECT_TRUE(run.report.findings.empty()) << all_messages(run.report);
}

TEST(AsyncCheck, OneSentenceNamesTheRegisterAndBothLines) {
  const SmallKernel broken = kernel_of(twins[0], "");
  const CheckedRun run = run_checked(broken, only_async());
  ASSERT_FALSE(run.report.findings.empty());
  EXPECT_EQ(run.report.findings[0].message,
            "%f1: read at k, PTX line " + std::to_string(line_with(broken, "// after")) +
                " by thread (0,0,0) of block (0,0,0) while the wgmma.mma_async at k, PTX line " +
                std::to_string(line_with(broken, "// before")) +
                " that makes it is in flight: no wgmma.wait_group between them");
}

}  // namespace
}  // namespace assay::vm
