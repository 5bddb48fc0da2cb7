#include "src/base/vm/checks/bounds_check.h"

#include <gtest/gtest.h>

#include "tests/vm/checks/checked_kernel.h"

namespace assay::vm {
namespace checks_bounds_check_test {

constexpr const char* two =
    ".shared .align 16 .b8 left[64]; .shared .align 16 .b8 right[64]; .extern .shared .align 16 .b8 more[];";

const Twin twins[] = {
    {"past the end of a variable", "out-of-bounds",
     "mov.u32 %r0, left; shl.b32 %r1, %r32, 2; add.s32 %r1, %r1, %r0;\nst.shared.b32 [%r1+FAULT], %t; // "
     "here\n",
     "4", "0", two, 16},
    {"before the first element", "out-of-bounds",
     "mov.u32 %r0, right; shl.b32 %r1, %r32, 2; add.s32 %r1, %r1, %r0; sub.s32 %r1, %r1, "
     "FAULT;\nst.shared.b32 [%r1], %t; // here\n",
     "4", "0", two, 16},
    {"by the symbol itself", "out-of-bounds", "st.shared.b32 [right+FAULT], 3; // here\n", "64", "60", two, 1,
     1, 64},
    {"through a generic address and a selection", "out-of-bounds",
     "mov.u64 %rd1, left; cvta.shared.u64 %rd2, %rd1; add.s64 %rd2, %rd2, FAULT; setp.eq.u32 %p1, %t, 0; "
     "selp.b64 %rd3, %rd2, %rd1, %p1;\nst.b32 [%rd3], %t; // here\n",
     "64", "60", two, 1},
    {"a vector that is half inside", "out-of-bounds",
     "mov.u32 %r0, left; add.s32 %r0, %r0, FAULT; mov.u32 %r1, 1;\nst.shared.v2.b32 [%r0+8], {%r1, %r1}; // "
     "here\n",
     "48", "40", ".shared .align 16 .b8 left[60]; .shared .align 16 .b8 right[64];", 1},
    {"cp.async", "out-of-bounds",
     "mov.u32 %r0, left; add.s32 %r0, %r0, FAULT;\ncp.async.ca.shared.global [%r0], [%pa], 4; // "
     "here\ncp.async.wait_all;\n",
     "64", "60", two, 1},
    {"a local array", "out-of-bounds",
     "{ .local .align 4 .b8 first[16]; .local .align 4 .b8 second[16]; mov.u64 %rd1, first; add.s64 %rd1, "
     "%rd1, FAULT;\n"
     "st.local.b32 [%rd1], 3; // here\n}\n",
     "16", "12", "", 1},
};

class Bounds : public testing::TestWithParam<Twin> {};
INSTANTIATE_TEST_SUITE_P(Table, Bounds, testing::ValuesIn(twins), [](const auto& info) {
  std::string name = info.param.name;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
});

TEST_P(Bounds, OfAVariableAreFoundThoughTheMachineDoesNotTrap) {
  Checks checks = Checks::none();
  checks.bounds = true;
  const SmallKernel broken = kernel_of(GetParam(), GetParam().fault),
                    repaired = kernel_of(GetParam(), GetParam().repair);
  const CheckedRun bad = run_checked(broken, checks), good = run_checked(repaired, checks);
  ASSERT_EQ(bad.kinds(), std::vector<std::string>{GetParam().kind}) << all_messages(bad.report);
  EXPECT_FALSE(bad.trap) << bad.trap->message;
  EXPECT_EQ(bad.report.findings[0].at.where.ptx_line, line_with(broken, "// here"));
  EXPECT_FALSE(good.trap) << good.trap->message;
  EXPECT_TRUE(good.report.findings.empty()) << all_messages(good.report);
}

TEST(BoundsCheck, NamesBothVariablesAndTheDistance) {
  Checks checks = Checks::none();
  checks.bounds = true;
  const CheckedRun run = run_checked(kernel_of(twins[0], "4"), checks);
  ASSERT_EQ(run.report.findings.size(), 1u);
  EXPECT_NE(run.report.findings[0].message.find("by thread (15,0,0) of block (0,0,0) reaches shared right: 4 "
                                                "bytes past the end of left of 64 bytes"),
            std::string::npos)
      << run.report.findings[0].message;
}

TEST(BoundsCheck, DynamicSharedMemoryReachesToItsEnd) {
  SmallKernel kernel;
  kernel.declarations = two;
  kernel.shared_bytes = 256;
  kernel.threads = 1;
  kernel.body = "mov.u32 %r0, more; st.shared.b32 [%r0+252], 1;";
  const CheckedRun run = run_checked(kernel);
  EXPECT_TRUE(run.report.findings.empty()) << all_messages(run.report);
}

}  // namespace checks_bounds_check_test
}  // namespace assay::vm
