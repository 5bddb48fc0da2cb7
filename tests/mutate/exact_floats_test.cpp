// Floats that nothing rounds: each with a twin that something does.
#include "src/campaign/mutate/exact_floats.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/mutate/small_program.h"

namespace assay {
namespace {

struct Text {
  explicit Text(const std::string& body)
      : text(small_program(body)), ranges(text.module().functions[0], {}) {}
  const ptx::Function& function() const { return text.module().functions[0]; }
  int32_t reg(const char* name) const {
    for (size_t i = 0; i < function().registers.size(); ++i)
      if (function().registers[i].name == name) return static_cast<int32_t>(i);
    return -1;
  }
  ptx::MutableText text;
  ValueRanges ranges;
};

/// Of the first subtraction.
bool is_rest(const std::string& body) {
  Text text(body);
  for (size_t i = 0; i < text.function().body.size(); ++i)
    if (text.function().body[i].form.operation == ptx::Operation::sub)
      return is_rest_of_split(text.ranges, static_cast<int32_t>(i));
  return false;
}

TEST(ExactFloats, TheRestOfASplitIsOne) {
  EXPECT_TRUE(is_rest("cvt.rna.tf32.f32 %r1, %f1; mov.b32 %f2, %r1; sub.rn.f32 %f3, %f1, %f2;"));
  EXPECT_TRUE(
      is_rest("cvt.rna.tf32.f32 %r1, %f1; cvt.rna.tf32.f32 %r2, %f4; mov.b32 %f2, %r1; "
              "sub.rn.f32 %f3, %f1, %f2; mov.f32 %f1, %f3;"));
  for (const char* other :
       {"cvt.rna.tf32.f32 %r1, %f4; mov.b32 %f2, %r1; sub.rn.f32 %f3, %f1, %f2;",
        "cvt.rna.tf32.f32 %r1, %f1; mov.b32 %f2, %r1; sub.rn.f32 %f3, %f2, %f1;",
        "cvt.rna.tf32.f32 %r1, %f1; mov.b32 %f2, %r1; sub.ftz.f32 %f3, %f1, %f2;",
        "cvt.rz.tf32.f32 %r1, %f1; mov.b32 %f2, %r1; sub.rn.f32 %f3, %f1, %f2;",
        "cvt.rna.tf32.f32 %r1, %f1; mov.f32 %f1, %f4; mov.b32 %f2, %r1; sub.rn.f32 %f3, %f1, %f2;",
        "cvt.rna.tf32.f32 %r1, %f1; mov.b32 %f2, %r2; sub.rn.f32 %f3, %f1, %f2;",
        "cvt.rna.tf32.f32 %r1, %f1; $L_a: mov.b32 %f2, %r1; sub.rn.f32 %f3, %f1, %f2; mov.f32 %f1, %f4; "
        "@%p1 bra $L_a;"})
    EXPECT_FALSE(is_rest(other)) << other;
}

bool is_rounded(const std::string& body) {
  Text text(body);
  return is_rounded_to_bf16_only(text.ranges, text.reg("%f1"));
}

TEST(ExactFloats, WhatIsRoundedToBf16AnyhowStaysAsItIs) {
  EXPECT_TRUE(is_rounded("cvt.rn.bf16x2.f32 %r1, %f1, %f2;"));
  EXPECT_TRUE(is_rounded("selp.f32 %f3, %f1, %f2, %p1; mov.f32 %f4, %f3; cvt.rn.bf16x2.f32 %r1, %f2, %f4;"));
  for (const char* other :
       {"cvt.rn.bf16x2.f32 %r1, %f1, %f2; st.global.f32 [%rd1], %f1;", "cvt.rz.bf16x2.f32 %r1, %f1, %f2;",
        "cvt.rn.f16x2.f32 %r1, %f1, %f2;", "mul.rn.f32 %f3, %f1, %f1; cvt.rn.bf16x2.f32 %r1, %f3, %f3;",
        "cvt.rn.relu.bf16x2.f32 %r1, %f1, %f2;", "mov.f32 %f3, %f1;"})
    EXPECT_FALSE(is_rounded(other)) << other;
}

TEST(ExactFloats, HaveFewBitsWhereTheyComeFromNarrowFormats) {
  const auto bits = [](const std::string& body) {
    Text text(body + " st.global.f32 [%rd1], %f1;");
    const auto last = static_cast<int32_t>(text.function().body.size()) - 2;
    return significant_bits(text.ranges, last, text.function().body[static_cast<size_t>(last)].operands[1]);
  };
  EXPECT_EQ(bits("ld.global.u32 %r2, [%rd1]; shl.b32 %r1, %r2, 16; mov.b32 %f1, %r1;"), 8);
  EXPECT_EQ(bits("ld.global.u32 %r2, [%rd1]; and.b32 %r1, %r2, -65536; mov.b32 %f2, %r1; neg.f32 %f1, %f2;"),
            8);
  EXPECT_EQ(bits("mov.f32 %f1, 0f3FC00000;"), 2);
  EXPECT_EQ(bits("mov.f32 %f1, 0f00000000; @%p1 mov.f32 %f1, 0f3F800001;"), 24);
  EXPECT_EQ(bits("mov.f32 %f1, 0f3F800001; mov.f32 %f1, 0f3F800000;"), 1);
  EXPECT_EQ(bits("ld.global.u32 %r2, [%rd1]; shl.b32 %r1, %r2, 15; mov.b32 %f1, %r1;"), 24);
  EXPECT_EQ(bits("ld.global.u32 %r2, [%rd1]; and.b32 %r1, %r2, -32768; mov.b32 %f1, %r1;"), 24);
  EXPECT_EQ(bits("ld.global.f32 %f1, [%rd1];"), 24);
  EXPECT_EQ(bits("mov.f32 %f2, 0f3F800000; add.rn.f32 %f1, %f2, %f2;"), 24);
}

TEST(ExactFloats, GiveAResultWhereNothingIsRounded) {
  const auto given = [](const char* instruction, std::vector<uint32_t> operands) {
    const Text text(instruction);
    return exact_result(text.function().body[0], operands);
  };
  const char *const add = "add.rn.f32 %f1, %f2, %f3;", *const sub = "sub.rn.f32 %f1, %f2, %f3;",
                    *const mul = "mul.rn.f32 %f1, %f2, %f3;", *const narrow = "cvt.rna.tf32.f32 %r1, %f2;",
                    *const half = "cvt.rn.f16.f32 %r1, %f2;";
  constexpr uint32_t one = 0x3f800000, tiny = 0x01000000, above_one = 0x3f800001;
  EXPECT_EQ(given(add, {one, one}), 0x40000000);
  EXPECT_EQ(given(sub, {one, one}), 0u);
  EXPECT_EQ(given(sub, {0x80000000, 0}), 0x80000000);
  EXPECT_EQ(given(mul, {one, above_one}), above_one);
  EXPECT_EQ(given(narrow, {one}), one);
  EXPECT_EQ(given(half, {0x80000000}), 0x8000);
  EXPECT_EQ(given(half, {0xbf800000}), 0xbc00);
  EXPECT_EQ(given(half, {0x38800000}), 0x0400) << "the least normal one";
  EXPECT_EQ(given(half, {0x477fe000}), 0x7bff) << "the largest";
  EXPECT_FALSE(given(half, {0x3f801000})) << "twelve bits";
  EXPECT_FALSE(given(half, {0x38000000})) << "subnormal";
  EXPECT_FALSE(given(half, {0x47800000})) << "infinite";
  EXPECT_FALSE(given(add, {one, tiny}));
  EXPECT_FALSE(given(mul, {above_one, above_one}));
  EXPECT_FALSE(given(mul, {tiny, tiny}));
  EXPECT_FALSE(given(narrow, {above_one}));
  EXPECT_FALSE(given(add, {0x7f800000, one})) << "infinite";
  EXPECT_FALSE(given("sub.rm.f32 %f1, %f2, %f3;", {one, one})) << "-0";
  EXPECT_FALSE(given("div.rn.f32 %f1, %f2, %f3;", {one, one}));
}

}  // namespace
}  // namespace assay
