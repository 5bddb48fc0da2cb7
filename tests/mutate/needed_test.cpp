// Registers that reach memory or a branch: of a tensor core's sums each for itself.
#include "src/campaign/mutate/needed.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/mutate/small_program.h"

namespace assay {
namespace {

/// Names of those of %f1 to %f8 and %r1 to %r8 that are needed.
std::string needed(const std::string& body) {
  const ptx::MutableText text = small_program(body);
  const ptx::Function& f = text.module().functions[0];
  const NeededRegisters needed{ValueRanges(f, {})};
  std::string names;
  for (const char kind : {'f', 'r'})
    for (char number = '1'; number <= '8'; ++number)
      for (size_t i = 0; i < f.registers.size(); ++i)
        if (f.registers[i].name == std::string{'%', kind, number} && needed.has(static_cast<int32_t>(i)))
          names += std::string{kind, number, ' '};
  return names;
}

TEST(NeededRegisters, OfASumOfProductsAreTheFactorsAndItsOwnAddend) {
  const std::string product =
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, "
      "{%f5,%f6,%f7,%f8};";
  EXPECT_EQ(needed(product), "");
  EXPECT_EQ(needed(product + "st.global.f32 [%rd1], %f3;"), "f3 f7 r1 r2 r3 r4 r5 r6 ");
  EXPECT_EQ(needed(product + "mov.f32 %f8, %f1; st.global.f32 [%rd1], %f4;"),
            "f1 f4 f5 f8 r1 r2 r3 r4 r5 r6 ");
  EXPECT_EQ(needed("mov.f32 %f1, %f2; mov.f32 %f3, %f4; st.global.f32 [%rd1], %f1;"), "f1 f2 ");
  EXPECT_EQ(needed("add.s32 %r1, %r2, %r3; setp.lt.s32 %p1, %r1, %r4; @%p1 bra $L_end; mov.u32 %r5, %r6;"),
            "r1 r2 r3 r4 ");
}

TEST(NeededRegisters, AreAskedOfWhatStandsInAnInstructionsPlace) {
  const ptx::MutableText text =
      small_program("mov.u32 %r1, %r2; st.global.u32 [%rd1], %r1; mov.u32 %r1, %r3;");
  const ptx::Function& f = text.module().functions[0];
  const auto number = [&](const char* name) {
    for (size_t i = 0; i < f.registers.size(); ++i)
      if (f.registers[i].name == name) return static_cast<int32_t>(i);
    return -1;
  };
  const NeededRegisters changed(ValueRanges(f, {}), 0, f.body[2]);
  EXPECT_FALSE(changed.has(number("%r2")));
  EXPECT_TRUE(changed.has(number("%r3")));
}

}  // namespace
}  // namespace assay
