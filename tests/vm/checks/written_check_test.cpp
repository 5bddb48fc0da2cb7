#include "src/base/vm/checks/written_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/vm/checks/checked_kernel.h"

namespace assay::vm {
namespace checks_written_check_test {

constexpr const char* tile = ".shared .align 16 .b8 tile[1024];";

// %r1 is my word of the tile; the word of the other warp is at +128.
#define MINE "mov.u32 %r0, tile; shl.b32 %r1, %r32, 2; add.s32 %r1, %r1, %r0;\n"
// One accumulator row of 16 columns: A row l / 4 from %a (register 0) and zeros, B from constants.
#define PRODUCT                                                                               \
  "mov.b32 %r10, 0x3f803f80; mov.f32 %f10, 0f00000000;\n"                                     \
  "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r3,%r4}, {%r10}, " \
  "{%f10,%f10,%f10,%f10};\n"

const Twin twins[] = {
    {"shared memory to an output", "unwritten-output", MINE "FAULT ld.shared.b32 %d, [%r1]; // read\n", "",
     "st.shared.b32 [%r1], %t;", tile, 32},
    {"through arithmetic and registers", "unwritten-output",
     MINE "FAULT ld.shared.b32 %r2, [%r1]; // read\nadd.s32 %r3, %r2, 5; mov.b32 %r4, %r3; mad.lo.s32 %d, "
          "%r4, 3, %t;\n",
     "", "st.shared.b32 [%r1], %t;", tile, 32},
    {"half of a word", "unwritten-output",
     MINE "st.shared.b16 [%r1], 5; FAULT ld.shared.b32 %d, [%r1]; // read\n", "", "st.shared.b16 [%r1+2], 5;",
     tile, 32},
    {"the bits that a conversion keeps", "unwritten-output",
     MINE "st.shared.b16 [%r1+2], 5; FAULT ld.shared.b32 %r2, [%r1]; // read\ncvt.u16.u32 %h1, %r2; "
          "cvt.u32.u16 %d, %h1;\n",
     "", "st.shared.b16 [%r1], 5;", tile, 32},
    {"the sign that a conversion repeats", "unwritten-output",
     MINE "st.shared.b8 [%r1], 5; FAULT ld.shared.b32 %r2, [%r1]; // read\ncvt.s32.s16 %r3, %r2; and.b32 %d, "
          "%r3, -65536;\n",
     "", "st.shared.b8 [%r1+1], 5;", tile, 32},
    {"a local array", "unwritten-output",
     "{ .local .align 4 .b8 stack[64]; FAULT ld.local.b32 %d, [stack+8]; // read\n}\n", "",
     "st.local.b32 [stack+8], %t;", "", 32},
    {"a register", "unwritten-output", "FAULT mov.b32 %d, %r7; // read\n", "", "mov.u32 %r7, 1;", "", 32},
    {"through a shuffle and shared memory", "unwritten-output",
     MINE
     "FAULT ld.shared.b32 %r2, [%r1]; // read\nshfl.sync.bfly.b32 %r3, %r2, 1, 31, -1; bar.warp.sync -1;\n"
     "st.shared.b32 [%r1], %r3; ld.shared.b32 %d, [%r1];\n",
     "", "st.shared.b32 [%r1], %t;", tile, 32},
    {"an inactive lane of a shuffle", "unwritten-output",
     "setp.lt.u32 %p1, %r32, 16; @!%p1 bra DONE;\nshfl.sync.idx.b32 %d, %t, FAULT, 31, 0xffff; // read\n",
     "20", "3", "", 32},
    {"cp.async of an unwritten workspace", "unwritten-output",
     MINE "FAULT cp.async.ca.shared.global [%r1], [%pd], 4; // read\ncp.async.wait_all; ld.shared.b32 %d, "
          "[%r1];\n",
     "", "st.global.b32 [%pd], %t;", tile, 32},
    {"an atomic on what nobody set", "unwritten-output",
     "mov.u32 %r0, tile; FAULT bar.warp.sync -1;\nred.shared.add.u32 [%r0], 1; // read\nbar.warp.sync -1; "
     "ld.shared.b32 %d, [%r0];\n",
     "", "st.shared.b32 [%r0], 0;", tile, 32},
    {"what an exchange found", "unwritten-output", MINE "FAULT atom.shared.exch.b32 %d, [%r1], %t; // read\n",
     "", "st.shared.b32 [%r1], %t;", tile, 32},
    {"what an exchange leaves", "unwritten-output",
     MINE "FAULT atom.shared.exch.b32 %r3, [%r1], %r7; // read\nld.shared.b32 %d, [%r1];\n", "",
     "mov.b32 %r7, %t;", tile, 32},
    {"what a compare and swap may leave", "unwritten-output",
     MINE "FAULT atom.shared.cas.b32 %r3, [%r1], %t, 5; // read\nld.shared.b32 %d, [%r1];\n", "",
     "st.shared.b32 [%r1], 4;", tile, 32},
    {"a branch", "unwritten-branch",
     MINE "FAULT ld.shared.b32 %r2, [%r1]; // read\nsetp.eq.s32 %p1, %r2, 0;\n@%p1 bra DONE; // "
          "reached\nmov.u32 %d, 1;\n",
     "", "st.shared.b32 [%r1], %t;", tile, 32},
    {"a store that may not happen", "unwritten-branch",
     MINE "FAULT ld.shared.b32 %r2, [%r1]; // read\nsetp.eq.s32 %p1, %r2, 0;\n@%p1 st.global.b32 [%pd], 3; "
          "// reached\n",
     "", "st.shared.b32 [%r1], %t;", tile, 32},
    {"an address", "unwritten-address",
     MINE "FAULT ld.shared.b32 %r2, [%r1]; // read\nand.b32 %r2, %r2, 60; add.s32 %r2, %r2, %r0;\n"
          "st.shared.b32 [%r2], 5; // reached\n",
     "", "st.shared.b32 [%r1], 4;", tile, 1},
    {"a tensor-core operand whose row is used", "unwritten-tensor-core",
     "mov.b32 %r3, %t; FAULT\n" PRODUCT "add.f32 %f5, %f1, %f3; mov.b32 %d, %f5;\n",
     "mov.b32 %r4, %r9; // read\n", "mov.b32 %r4, 0;\n", "", 32},
    {"a tensor-core operand of which one lane is not written", "unwritten-tensor-core",
     "mov.b32 %r3, %t; mov.b32 %r4, 0; setp.eq.u32 %p1, %r32, FAULT;\n@%p1 mov.b32 %r4, %r9; // "
     "read\n" PRODUCT "add.f32 %f5, %f1, %f3; mov.b32 %d, %f5;\n",
     "9", "32", "", 32},
    {"ldmatrix of rows that nobody wrote", "unwritten-tensor-core",
     MINE "shl.b32 %r2, %r32, 4; and.b32 %r2, %r2, 112; add.s32 %r2, %r2, %r0; FAULT bar.warp.sync -1;\n"
          "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r2]; // read\nmov.b32 %r4, 0;\n" PRODUCT
          "mov.b32 %d, %f1;\n",
     "", "st.shared.b32 [%r1], %t;", tile, 32},
    {"stmatrix of a register that nobody wrote", "unwritten-output",
     MINE
     "shl.b32 %r2, %r32, 4; and.b32 %r2, %r2, 112; add.s32 %r2, %r2, %r0; FAULT\n"
     "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r3}; bar.warp.sync -1; ld.shared.b32 %d, [%r1];\n",
     "mov.b32 %r3, %r9; // read", "mov.b32 %r3, %t;", tile, 32},
    {"movmatrix of a register that one lane did not write", "unwritten-output",
     "setp.eq.u32 %p1, %r32, FAULT; @!%p1 mov.b32 %r3, %t;\nmovmatrix.sync.aligned.m8n8.trans.b16 %d, %r3; "
     "// read\n",
     "9", "32", "", 32},
    {"elements of the output", "never-written",
     "setp.gt.u32 %p1, %r32, FAULT; @%p1 bra QUIT; bra DONE; QUIT: ret;\n", "20", "31", "", 32},
};

class Unwritten : public testing::TestWithParam<Twin> {};
INSTANTIATE_TEST_SUITE_P(Table, Unwritten, testing::ValuesIn(twins), [](const auto& info) {
  std::string name = info.param.name;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
});

TEST_P(Unwritten, IsFoundWhereItIsReadAndWhereItMattersAndTheRepairedTwinIsSilent) {
  const SmallKernel broken = kernel_of(GetParam(), GetParam().fault),
                    repaired = kernel_of(GetParam(), GetParam().repair);
  Checks checks = Checks::none();
  checks.unwritten = true;
  const CheckedRun bad = run_checked(broken, checks);
  const CheckFinding* finding = bad.first(GetParam().kind);
  ASSERT_NE(finding, nullptr) << all_messages(bad.report) << (bad.trap ? bad.trap->message : "");
  EXPECT_EQ(finding->check, CheckName::unwritten);
  const int read = line_with(broken, "// read"), reached = line_with(broken, "// reached");
  const CheckedPlace& place = finding->other ? *finding->other : finding->at;
  EXPECT_EQ(place.where.ptx_line, read) << finding->message;
  if (reached) {
    EXPECT_EQ(finding->at.where.ptx_line, reached) << finding->message;
  }
  const CheckedRun good = run_checked(repaired, checks);
  EXPECT_FALSE(good.trap) << good.trap->message;
  EXPECT_TRUE(good.report.findings.empty()) << all_messages(good.report);
}

/// Reads of what nobody wrote that do no harm.
const char* const harmless[] = {
    // selected away
    MINE "ld.shared.b32 %r2, [%r1]; setp.lt.u32 %p1, %r32, 64; selp.b32 %d, %t, %r2, %p1;",
    // masked away, by bytes
    MINE "ld.shared.b32 %r2, [%r1]; and.b32 %d, %r2, 0;",
    MINE "st.shared.b16 [%r1], 7; ld.shared.b32 %r2, [%r1]; and.b32 %d, %r2, 0xffff;",
    MINE "st.shared.b16 [%r1], 7; ld.shared.b32 %r2, [%r1]; shl.b32 %d, %r2, 16;",
    MINE "st.shared.b16 [%r1], 7; ld.shared.b32 %r2, [%r1]; mov.b32 {%h1, %h2}, %r2; cvt.u32.u16 %d, %h1;",
    MINE
    "st.shared.b16 [%r1], 7; ld.shared.b32 %r2, [%r1]; prmt.b32 %d, %r2, %t, 0x5410; and.b32 %d, %d, 255;",
    // exchanged for something else
    MINE "atom.shared.exch.b32 %r2, [%r1], %t; ld.shared.b32 %d, [%r1];",
    "atom.global.exch.b32 %r2, [%pd], %t; ld.global.b32 %d, [%pd];",
    // cut off by a conversion
    MINE "st.shared.b16 [%r1], 7; ld.shared.b32 %r2, [%r1]; cvt.u16.u32 %h1, %r2; cvt.u32.u16 %d, %h1;",
    MINE "st.shared.b16 [%r1], 7; ld.shared.b32 %r2, [%r1]; cvt.u32.s8 %d, %r2;",
    // only one half of a pair is used
    MINE
    "st.shared.b16 [%r1], 7; ld.shared.b32 %r2, [%r1]; mov.b32 %r3, 0x3f803f80; fma.rn.bf16x2 %r4, %r2, %r3, "
    "%r3; "
    "and.b32 %d, %r4, 0xffff;",
    // an index times 0
    MINE "ld.shared.b32 %r2, [%r1]; mul.lo.s32 %d, %r2, 0;",
    // a predicate that the other one decides
    MINE
    "ld.shared.b32 %r2, [%r1]; setp.gt.u32 %p2, %r32, 500; setp.eq.and.s32 %p1, %r2, 3, %p2; @%p1 bra DONE;",
    MINE
    "ld.shared.b32 %r2, [%r1]; setp.eq.s32 %p1, %r2, 3; setp.gt.u32 %p2, %r32, 500; and.pred %p3, %p1, %p2; "
    "@%p3 bra DONE;",
    // stored where nobody looks again
    MINE "ld.shared.b32 %r2, [%r1]; st.shared.b32 [%r1+512], %r2;",
    // the result of a guarded instruction, selected away
    MINE
    "ld.shared.b32 %r2, [%r1]; setp.eq.s32 %p1, %r2, 0; mov.u32 %r3, 0; @%p1 mov.u32 %r3, 5; and.b32 %d, "
    "%r3, 0;",
    // a padded row of a product: rows 8 to 15 of A came from nowhere, rows 0 to 7 are used
    "mov.b32 %r3, %t; " PRODUCT "mov.b32 %d, %f1;",
};

TEST(WrittenCheck, IsSilentWhereTheValueIsSelectedMaskedOrPaddedAway) {
  for (const char* body : harmless) {
    SmallKernel kernel;
    kernel.declarations = tile;
    kernel.body = body;
    const CheckedRun run = run_checked(kernel);
    EXPECT_FALSE(run.trap) << body << ": " << run.trap->message;
    EXPECT_TRUE(run.report.findings.empty()) << body << "\n" << all_messages(run.report);
  }
}

TEST(WrittenCheck, NamesMemoryByItsVariableAndTheElementItReaches) {
  SmallKernel kernel;
  kernel.declarations = tile;
  kernel.body =
      MINE "setp.lt.u32 %p1, %r32, 5; @%p1 st.shared.b32 [%r1], 1;\nld.shared.b32 %d, [%r1]; // read\n";
  const CheckedRun run = run_checked(kernel);
  ASSERT_EQ(run.report.findings.size(), 1u) << all_messages(run.report);
  EXPECT_EQ(
      run.report.findings[0].message,
      fmt::format("27 of 32 elements of d, first d[t=5], depend on shared tile + 20, never written, read by "
                  "ld.shared.b32 at k, PTX line {} by thread (5,0,0) of block (0,0,0)",
                  line_with(kernel, "// read")));
  EXPECT_EQ(run.report.findings[0].count, 27u);
}

TEST(WrittenCheck, OutputElementsNeverWrittenAreNamed) {
  SmallKernel kernel;
  kernel.body = "setp.gt.u32 %p1, %r32, 28; @%p1 bra QUIT; bra DONE; QUIT: ret;";
  const CheckedRun run = run_checked(kernel);
  ASSERT_EQ(run.kinds(), std::vector<std::string>{"never-written"});
  EXPECT_EQ(run.report.findings[0].message,
            "3 of 32 elements of d [T=32] were never written, from d[t=29] to d[t=31]");
}

/// Sixteen lanes store what they had, the others what nothing wrote.
TEST(WrittenCheck, WhatIsStoredIntoAnInputThatIsAnOutputTooIsFollowed) {
  for (const bool written : {true, false}) {
    SmallKernel kernel;
    kernel.declarations = tile;
    kernel.body = std::string(
                      "mov.u32 %r1, tile; shl.b32 %r2, %r32, 2; add.u32 %r1, %r1, %r2;\n"
                      "setp.lt.u32 %p1, %r32, ") +
                  (written ? "32" : "16") +
                  "; @%p1 st.shared.b32 [%r1], %a; bar.sync 0; ld.shared.b32 %d, [%r1];";
    TensorMap inputs;
    const Program plan = plan_of(kernel, inputs);
    inputs["d"] = Tensor("d", Dtype::i32, {{"T", 32}});
    const CheckReport report = run_checked(plan, inputs, {"sm_90", 1, 0}, {});
    ASSERT_EQ(report.findings.empty(), written);
    if (written) continue;
    EXPECT_EQ(name_of(report.findings[0].kind), "unwritten-output");
    EXPECT_TRUE(report.findings[0].message.starts_with(
        "16 of 32 elements of d, first d[t=16], depend on shared tile"))
        << report.findings[0].message;
  }
}

TEST(WrittenCheck, StrictReadsTrapAtTheFirstReadWhetherItMattersOrNot) {
  SmallKernel kernel;
  kernel.declarations = tile;
  kernel.body = std::string(harmless[0]);
  Checks checks;
  checks.strict_reads = true;
  const CheckedRun run = run_checked(kernel, checks);
  ASSERT_TRUE(run.trap);
  EXPECT_EQ(run.trap->kind, TrapKind::unwritten_read);
  EXPECT_NE(run.trap->message.find("shared tile was never written"), std::string::npos) << run.trap->message;
  kernel.body = "mov.u32 %d, %t;";
  EXPECT_FALSE(run_checked(kernel, checks).trap);
}

TEST(WrittenCheck, AWorkspaceIsUnwrittenUntilALaunchWritesIt) {
  SmallKernel kernel;
  kernel.body =
      "ld.param.u64 %rd1, [pb]; mul.wide.u32 %rd2, %t, 4; add.s64 %rd1, %rd1, %rd2; ld.global.b32 %d, "
      "[%rd1]; "
      "st.global.b32 [%rd1], %d;";
  TensorMap inputs;
  Program plan = plan_of(kernel, inputs);
  plan.workspaces.push_back({"room", 128});
  plan.launches[0].arguments[1] = PointerArgument{"room", 0};
  EXPECT_EQ(run_checked(plan, inputs, {"sm_90", 1, 0}, {}).findings.size(), 1u);
  Launch writer = plan.launches[0];  // stores into the workspace as if it were the output
  writer.arguments[1] = PointerArgument{"a", 0};
  writer.arguments[3] = PointerArgument{"room", 0};
  plan.launches.insert(plan.launches.begin(), writer);
  EXPECT_TRUE(run_checked(plan, inputs, {"sm_90", 1, 0}, {}).findings.empty());
}

TEST(WrittenCheck, LanesOfOneStoreThatReachSeveralSpacesWriteEachTheirOwn) {
  SmallKernel kernel;
  kernel.declarations = ".shared .align 4 .b8 s[128];";
  kernel.body =
      "mov.u64 %rd1, s; cvta.shared.u64 %rd1, %rd1; mul.wide.u32 %rd2, %r32, 4; add.s64 %rd1, %rd1, %rd2;\n"
      "setp.lt.u32 %p1, %r32, 16; selp.b64 %rd3, %pd, %rd1, %p1; st.b32 [%rd3], %t; @%p1 ret;\n"
      "ld.shared.b32 %d, [s+64]; setp.eq.u32 %p2, %d, 3; @%p2 trap;";
  const CheckedRun run = run_checked(kernel);
  EXPECT_FALSE(run.trap) << run.trap->message;
  EXPECT_EQ(run.first("never-written"), nullptr) << all_messages(run.report);
  EXPECT_EQ(run.first("unwritten-branch"), nullptr) << all_messages(run.report);
}

}  // namespace checks_written_check_test
}  // namespace assay::vm
