// Which stretches of a program can run a second time.
#include "src/base/watch/repeatable.h"

#include <gtest/gtest.h>

#include <string>

namespace assay::watch {
namespace repeatable_test {

/// How many instructions from the first on can.
int taken(const std::string& body) {
  const std::string text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry f()\n{\n.reg .f32 %f<9>;\n"
      ".reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .pred %p<9>;\n" +
      body + "\nret;\n}\n";
  const ptx::Module module = ptx::parse(text, "f.ptx");
  RepeatableStretch stretch;
  int count = 0;
  for (const ptx::Instruction& in : module.functions[0].body) {
    if (!stretch.take(in, vm::signature_of(in))) break;
    ++count;
  }
  return count;
}

TEST(RepeatableStretch, EndsBeforeWhatItBeginsWithIsWritten) {
  EXPECT_EQ(taken("mul.rn.f32 %f2, %f1, %f1; add.rn.f32 %f2, %f2, %f1; add.rn.f32 %f1, %f2, %f2;"), 2);
  EXPECT_EQ(taken("add.rn.f32 %f1, %f1, %f2;"), 0);
  EXPECT_EQ(taken("@%p1 mov.f32 %f1, %f2;"), 0);
  EXPECT_EQ(taken("mov.f32 %f1, %f2; @%p1 mov.f32 %f1, %f3;"), 2);
}

TEST(RepeatableStretch, ReadsMemoryThatNothingInItChanges) {
  EXPECT_EQ(taken("ld.shared.f32 %f1, [%rd1]; add.rn.f32 %f2, %f1, %f1; st.shared.f32 [%rd1], %f2;"), 2);
  EXPECT_EQ(taken("ld.global.f32 %f1, [%rd1];"), 0);
  EXPECT_EQ(taken("ld.f32 %f1, [%rd1];"), 0);
  EXPECT_EQ(taken("ld.volatile.shared.f32 %f1, [%rd1];"), 0);
  EXPECT_EQ(taken("atom.shared.add.u32 %r1, [%rd1], 1;"), 0);
}

TEST(RepeatableStretch, HoldsNothingThatOtherLanesOrTheTimeDecide) {
  EXPECT_EQ(taken("mov.u32 %r1, %clock;"), 0);
  EXPECT_EQ(taken("shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;"), 0);
  EXPECT_EQ(taken("activemask.b32 %r1;"), 0);
  EXPECT_EQ(taken("bar.sync 0;"), 0);
  EXPECT_EQ(taken("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, "
                  "{%r5,%r6}, {%f5,%f6,%f7,%f8};"),
            1);
}

}  // namespace repeatable_test
}  // namespace assay::watch
