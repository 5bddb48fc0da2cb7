#include "src/base/vm/checks/wrap_check.h"

#include <gtest/gtest.h>

#include "tests/vm/checks/checked_kernel.h"

namespace assay::vm {
namespace checks_wrap_check_test {

// %c is 70000: its square is above 2^32. Addresses wrap back into the tensor a, so that the machine has
// nothing to trap on.
#define LOAD(index) \
  "shl.b64 %rd2, " index ", 2; add.s64 %rd3, %pa, %rd2;\nld.global.b32 %d, [%rd3]; // used\n"

const Twin twins[] = {
    {"a product", "index-wrap",
     "mul.lo.s32 %r1, %c, %c; // wraps\nsub.s32 %r1, %r1, 605032704; FAULT\n" LOAD("%rd1"),
     "cvt.s64.s32 %rd1, %r1;", "mov.u64 %rd1, 0;", "", 1},
    {"a sum of an unsigned index", "index-wrap",
     "mul.lo.s32 %r1, %c, 61356; FAULT // wraps\ncvt.u64.u32 %rd1, %r2;\n" LOAD("%rd1"),
     "add.s32 %r2, %r1, 47296;", "sub.s32 %r2, %r1, %r1;", "", 1},
    {"a multiply-add widened by mul.wide", "index-wrap",
     "FAULT // wraps\nmul.wide.s32 %rd2, %r1, 4; add.s64 %rd3, %pa, %rd2;\nld.global.b32 %d, [%rd3]; // "
     "used\n",
     "mad.lo.s32 %r1, %c, %c, -605032704;", "mov.u32 %r1, 0;", "", 1},
    {"a shift", "index-wrap",
     "mov.u32 %r2, FAULT; shl.b32 %r1, %r2, 4; // wraps\ncvt.u64.u32 %rd1, %r1;\n" LOAD("%rd1"), "0x10000000",
     "0", "", 1},
    {"through memory, a move and a selection", "index-wrap",
     "{ .local .align 4 .b32 stack; FAULT // wraps\nst.local.u32 [stack], %r1; ld.local.u32 %r2, [stack];\n"
     "setp.eq.u32 %p1, %t, 0; selp.b32 %r3, %r2, 0, %p1; mov.b32 %r4, %r3; shfl.sync.idx.b32 %r5, %r4, 0, "
     "31, 1;\n"
     "cvt.u64.u32 %rd1, %r5; }\n" LOAD("%rd1"),
     "mad.lo.s32 %r1, %c, %c, -605032704;", "mov.u32 %r1, 0;", "", 1},
    {"a shift of a sum with a shortened constant", "index-wrap",
     "FAULT add.s32 %r2, %r1, 33554431; shl.b32 %r3, %r2, 7; // wraps\ncvt.u64.u32 %rd1, %r3;\n" LOAD("%rd1"),
     "mov.u32 %r1, 0x2000001;", "mov.u32 %r1, 1;", "", 1},
    {"a 64-bit index that is narrowed", "index-wrap",
     "mov.u64 %rd4, FAULT; cvt.u32.u64 %r1, %rd4; // wraps\ncvt.u64.u32 %rd1, %r1;\n" LOAD("%rd1"),
     "0x100000000", "0", "", 1},
    {"a narrowed sum of a negative index that was widened without its sign", "index-wrap",
     "sub.s32 %r1, %t, 64; cvt.u64.u32 %rd4, %r1; mov.u64 %rd5, %rd4; add.s64 %rd4, %rd5, FAULT;\n"
     "cvt.u32.u64 %r2, %rd4; // wraps\ncvt.s64.s32 %rd1, %r2;\n" LOAD("%rd1"),
     "0x100000040", "64", "", 1},
    {"a narrowed sum with a constant that is a negative word", "index-wrap",
     "mov.u64 %rd4, FAULT; add.s64 %rd4, %rd4, 4294967232; cvt.u32.u64 %r2, %rd4; // wraps\n"
     "cvt.s64.s32 %rd1, %r2;\n" LOAD("%rd1"),
     "0x100000040", "64", "", 1},
    {"a shared address", "index-wrap",
     "mov.u32 %r0, tile; st.shared.b32 [%r0], 1; FAULT // wraps\nadd.s32 %r2, %r1, %r0;\nld.shared.b32 %d, "
     "[%r2]; // used\n",
     "mad.lo.s32 %r1, %c, %c, -605032704;", "mov.u32 %r1, 0;", ".shared .align 4 .b8 tile[16];", 1},
};

TEST(WrapCheck, OfASharedAddressInA64BitRegisterTheUpperBitsMeanNothing) {
  SmallKernel kernel;
  kernel.declarations = ".shared .align 4 .b8 tile[16];";
  kernel.threads = 1;
  kernel.body =
      "mov.u32 %r0, tile; st.shared.b32 [%r0+4], 1; mov.u64 %rd4, 0x100000004; cvt.u32.u64 %r1, %rd4;\n"
      "add.s32 %r2, %r1, %r0; ld.shared.b32 %d, [%r2];";
  const CheckedRun run = run_checked(kernel);
  EXPECT_TRUE(run.report.findings.empty()) << all_messages(run.report);
}

class Wraps : public testing::TestWithParam<Twin> {};
INSTANTIATE_TEST_SUITE_P(Table, Wraps, testing::ValuesIn(twins), [](const auto& info) {
  std::string name = info.param.name;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
});

TEST_P(Wraps, AreFoundAtTheLineThatWrapsAndTheLineThatUsesItAlsoInBounds) {
  SmallKernel broken = kernel_of(GetParam(), GetParam().fault),
              repaired = kernel_of(GetParam(), GetParam().repair);
  broken.c = repaired.c = {70000};
  const CheckedRun bad = run_checked(broken), good = run_checked(repaired);
  ASSERT_EQ(bad.kinds(), std::vector<std::string>{GetParam().kind}) << all_messages(bad.report);
  EXPECT_FALSE(bad.trap) << bad.trap->message;  // in bounds
  const CheckFinding& finding = bad.report.findings[0];
  EXPECT_EQ(finding.check, CheckName::wrap);
  EXPECT_EQ(finding.at.where.ptx_line, line_with(broken, "// wraps")) << finding.message;
  ASSERT_TRUE(finding.other);
  EXPECT_EQ(finding.other->where.ptx_line, line_with(broken, "// used")) << finding.message;
  EXPECT_FALSE(good.trap) << good.trap->message;
  EXPECT_TRUE(good.report.findings.empty()) << all_messages(good.report);
}

/// Wraps that are meant, or that are none: 32-bit registers hold signed and unsigned numbers alike.
const char* const harmless[] = {
    // above 2^31, unsigned: the sum of two halves
    "mov.u32 %r1, 0x50000000; add.s32 %r2, %r1, %r1; cvt.u64.u32 %rd1, %r2; sub.s64 %rd1, %rd1, "
    "0xa0000000;" LOAD("%rd1"),
    // -1 is added to an unsigned number
    "mov.u32 %r1, 1; add.s32 %r2, %r1, -1; cvt.u64.u32 %rd1, %r2;" LOAD("%rd1"),
    // a negative number on the way
    "mov.u32 %r1, 3; sub.s32 %r2, %r1, 8; add.s32 %r3, %r2, 5; cvt.s64.s32 %rd1, %r3;" LOAD("%rd1"),
    // (x - 1) 128, (x - 1 + y) 128 and 128 (1 - x), as compilers shorten their constants before a shift
    "mov.u32 %r1, %ntid.x; add.s32 %r2, %r1, 33554431; shl.b32 %r3, %r2, 7; cvt.u64.u32 %rd1, %r3;" LOAD(
        "%rd1"),
    "mov.u32 %r1, %ntid.x; add.s32 %r2, %r1, 33554431; add.s32 %r2, %r2, %t; shl.b32 %r3, %r2, 7; "
    "mul.wide.s32 %rd1, "
    "%r3, 1;" LOAD("%rd1"),
    "mov.u32 %r1, %ntid.x; sub.s32 %r2, 33554431, %r1; add.s32 %r2, %r2, 2; shl.b32 %r3, %r2, 7; cvt.s64.s32 "
    "%rd1, %r3;" LOAD("%rd1"),
    // wraps, and back
    "mov.u32 %r1, 0x7fffffff; add.s32 %r2, %r1, 10; sub.s32 %r3, %r2, %r1; sub.s32 %r3, %r3, 10; cvt.s64.s32 "
    "%rd1, "
    "%r3;" LOAD("%rd1"),
    // a hash, masked, and one by its high bits
    "mul.lo.s32 %r1, %c, -1640531527; and.b32 %r2, %r1, 0; cvt.u64.u32 %rd1, %r2;" LOAD("%rd1"),
    "mul.lo.s32 %r1, %c, -1640531527; shr.u32 %r2, %r1, 31; mul.lo.s32 %r2, %r2, 0; cvt.u64.u32 %rd1, "
    "%r2;" LOAD("%rd1"),
    "mul.lo.s32 %r1, %c, -1640531527; rem.u32 %r2, %r1, 1; cvt.u64.u32 %rd1, %r2;" LOAD("%rd1"),
    // a shared address that starts below 0
    "mov.u32 %r1, 3; sub.s32 %r2, %r1, 67; add.s32 %r2, %r2, 0; ld.shared.b32 %r3, [%r2+64]; and.b32 %d, "
    "%r3, 0;",
    // wrapped, and no address
    "mul.lo.s32 %d, %c, %c;",
};

TEST(WrapCheck, IsSilentWhereEitherReadingIsRightOrWrappingIsMeant) {
  for (const char* body : harmless) {
    SmallKernel kernel;
    kernel.declarations = ".shared .align 4 .b8 tile[16];";
    kernel.body = body;
    kernel.c = {70000};
    kernel.threads = 1;
    const CheckedRun run = run_checked(kernel);
    EXPECT_FALSE(run.trap) << body << ": " << run.trap->message;
    EXPECT_TRUE(run.report.findings.empty()) << body << "\n" << all_messages(run.report);
  }
}

TEST(WrapCheck, SaysWhatTheIndexIsAndWhatItShouldBe) {
  SmallKernel kernel = kernel_of(twins[2], twins[2].fault);
  kernel.c = {70000};
  const CheckedRun run = run_checked(kernel);
  ASSERT_EQ(run.report.findings.size(), 1u);
  EXPECT_NE(run.report.findings[0].message.find("the index is 0 and should be 4294967296;"),
            std::string::npos)
      << run.report.findings[0].message;
  EXPECT_NE(run.report.findings[0].message.find("reaches a[t=0]"), std::string::npos)
      << run.report.findings[0].message;
}

TEST(WrapCheck, IsFoundAlsoWhereTheAccessThenTraps) {
  SmallKernel kernel;
  kernel.body = "mul.lo.s32 %r1, %c, %c; cvt.s64.s32 %rd1, %r1;" LOAD("%rd1");
  kernel.c = {70000};
  const CheckedRun run = run_checked(kernel);
  ASSERT_TRUE(run.trap);
  EXPECT_EQ(run.trap->kind, TrapKind::out_of_bounds);
  EXPECT_NE(run.first("index-wrap"), nullptr);
}

}  // namespace checks_wrap_check_test
}  // namespace assay::vm
