// Forms that other compilers than nvcc write: 8-bit floats, comparisons of two halves, vector atomics,
// assertions.
#include <gtest/gtest.h>

#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace compiler_forms_test {

struct Case {
  const char* body;
  uint32_t a, b, expected;
};

uint32_t word_of(const Case& row) {
  return first_word({.body = row.body, .a = {row.a}, .b = {row.b}});
}

TEST(Float8, GiveTheBytesOfTheIsa) {
  const char* to_e4m3 = "cvt.rn.satfinite.e4m3x2.f32 %h1, %a, %b; mov.b32 %d, {%h1, 0};";
  const char* to_e5m2 = "cvt.rn.satfinite.e5m2x2.f32 %h1, %a, %b; mov.b32 %d, {%h1, 0};";
  const char* relu = "cvt.rn.satfinite.relu.e4m3x2.f32 %h1, %a, %b; mov.b32 %d, {%h1, 0};";
  const char* halves_to_e5m2 = "cvt.rn.satfinite.e5m2x2.f16x2 %h1, %a; mov.b32 %d, {%h1, 0};";
  const char* from_e4m3 = "mov.b32 {%h1, %h2}, %a; cvt.rn.f16x2.e4m3x2 %d, %h1;";
  const char* from_e5m2 = "mov.b32 {%h1, %h2}, %a; cvt.rn.f16x2.e5m2x2 %d, %h1;";
  const Case rows[] = {
      {to_e4m3, 0x3f800000, 0xc0000000, 0x38c0},  // 1 in the high byte, -2 in the low one
      {to_e4m3, 0x43e00000, 0x43e80000, 0x7e7e},  // 448 is the largest; 464 is midway, saturates
      {to_e4m3, 0x7f800000, 0xff800000, 0x7efe},  // infinities saturate
      {to_e4m3, 0x7fc00000, 0xffc00000, 0x7f7f},  // NaN
      {to_e4m3, 0x3b000000, 0x3a800000, 0x0100},  // 2^-9, and its half: a tie to even
      {to_e4m3, 0x3ac00000, 0x3a800001, 0x0101},  // above the tie
      {to_e4m3, 0x3f880000, 0x3f980000, 0x383a},  // 1 + 1/16: tie to even; 1 + 3/16: tie away
      {to_e4m3, 0x3c7fffff, 0x80000000, 0x0880},  // rounds up to the smallest normal; -0
      {to_e5m2, 0x47600000, 0x47700000, 0x7b7b},  // 57344; beyond
      {to_e5m2, 0x37800000, 0x37000000, 0x0100},  // 2^-16, and its half
      {to_e5m2, 0x3fa00000, 0xbfe00000, 0x3dbf},  // 1.25; -1.75
      {relu, 0xbf800000, 0x3f800000, 0x0038},     // negative: 0
      {halves_to_e5m2, 0x3c00c000, 0, 0x3cc0},    // the top bytes of 1 and -2
      {halves_to_e5m2, 0x7e01fc00, 0, 0x7ffb},    // NaN; -infinity saturates
      {from_e4m3, 0x38c0, 0, 0x3c00c000},
      {from_e4m3, 0x0108, 0, 0x18002400},  // 2^-9: subnormal there, normal here; 2^-6
      {from_e4m3, 0x7fff, 0, 0x7fff7fff},
      {from_e4m3, 0x7efe, 0, 0x5f00df00},  // +-448
      {from_e5m2, 0x7c01, 0, 0x7c000100},  // infinity; the smallest subnormal
      {from_e5m2, 0xfd7f, 0, 0x7fff7fff},
  };
  for (const Case& row : rows)
    EXPECT_EQ(word_of(row), row.expected) << row.body << std::hex << " " << row.a << " " << row.b;
}

TEST(Float8, WhatIsNarrowedWidensToItself) {
  for (const char* type : {"e4m3x2", "e5m2x2"})
    for (uint32_t byte = 0; byte < 0x7b; ++byte) {
      const std::string body = std::string("mov.b32 {%h1, %h2}, %a; cvt.rn.f16x2.") + type +
                               " %r1, %h1; cvt.rn.satfinite." + type +
                               ".f16x2 %h3, %r1; mov.b32 %d, {%h3, 0};";
      const uint32_t pair = byte << 8 | byte | 0x80;
      EXPECT_EQ(first_word({.body = body, .a = {pair}}), pair) << type << std::hex << " " << pair;
    }
}

TEST(PackedComparison, JudgesEachHalf) {
  const std::string select = " selp.b32 %r1, 1, 0, %p1; selp.b32 %r2, 2, 0, %p2; or.b32 %d, %r1, %r2;";
  const Case rows[] = {
      {"setp.gt.f16x2 %p1|%p2, %a, %b;", 0x3c004000, 0x40003c00, 1},  // low 2 > 1, high 1 > 2
      {"setp.lt.f16x2 %p1|%p2, %a, %b;", 0x3c004000, 0x40003c00, 2},
      {"setp.eq.f16x2 %p1|%p2, %a, %b;", 0x80003c00, 0x00003c00, 3},   // -0 = 0
      {"setp.leu.f16x2 %p1|%p2, %a, %b;", 0x7e003c00, 0x00000000, 2},  // NaN is unordered
      {"setp.le.f16x2 %p1|%p2, %a, %b;", 0x7e003c00, 0x00000000, 0},
      {"setp.eq.ftz.f16x2 %p1|%p2, %a, %b;", 0x00010001, 0x00000002, 3},
      {"setp.eq.f16x2 %p1|%p2, %a, %b;", 0x00010001, 0x00010002, 2},
      {"setp.gt.bf16x2 %p1|%p2, %a, %b;", 0x3f804000, 0x40003f80, 1},
      {"setp.ne.b32 %p3, %a, %b; setp.gt.and.f16x2 %p1|%p2, %a, %b, !%p3;", 0x3c004000, 0x40003c00, 0},
      {"setp.ne.b32 %p3, %a, %b; setp.gt.or.f16x2 %p1|%p2, %a, %b, %p3;", 0x3c004000, 0x40003c00, 3},
  };
  for (const Case& row : rows) {
    const std::string body = row.body + select;
    EXPECT_EQ(first_word({.body = body, .a = {row.a}, .b = {row.b}}), row.expected) << row.body;
  }
}

TEST(VectorAtomic, AddsEachElement) {
  // Eight lanes add their words to the same four.
  const std::string scratch = ".global .align 16 .b8 scratch[64];";
  const std::string begin = "mov.u64 %rd1, scratch; cvt.rn.f32.u32 %f1, %a; setp.lt.u32 %p1, %r32, 8;\n";
  const std::string end = "bar.sync 0; ld.global.b32 %d, [%rd1+8];";
  EXPECT_EQ(first_word({.declarations = scratch,
                        .body = begin + "@%p1 red.global.gpu.add.v4.f32 [%rd1], {%f1, %f1, %f1, %f1};" + end,
                        .a = {3}}),
            0x41c00000u);  // 24
  // The values before it come back: to the last of two lanes what the first one added.
  EXPECT_EQ(
      words_of(
          run_small(
              {.declarations = scratch,
               .body = begin +
                       "atom.global.gpu.acq_rel.add.v2.f32 {%f2, %f3}, [%rd1], {%f1, %f1}; mov.b32 %d, %f3;",
               .a = {5},
               .threads = 2}))
          .at(1),
      0x40a00000u);
  EXPECT_EQ(
      first_word({.declarations = scratch,
                  .body = begin +
                          "cvt.rn.f16.f32 %h1, %f1;\n"
                          "@%p1 red.global.add.noftz.v8.f16 [%rd1], {%h1,%h1,%h1,%h1,%h1,%h1,%h1,%h1};" +
                          end,
                  .a = {3}}),
      0x4e004e00u);  // 24, 24
}

TEST(Assertion, EndsTheRunInItsOwnWords) {
  const std::string declarations =
      ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e) "
      ".noreturn;\n"
      ".global .align 1 .b8 message[6] = {120, 32, 60, 32, 49, 0};\n.global .align 1 .b8 file[5] = {107, 46, "
      "112, 121, 0};\n"
      ".global .align 1 .b8 function[2] = {102, 0};";
  const std::string body =
      "setp.ge.u32 %p1, %r32, %b; @!%p1 bra DONE;\n{ .param .b64 x0; .param .b64 x1; .param .b32 x2; .param "
      ".b64 x3; .param .b64 "
      "x4;\n"
      "mov.u64 %rd1, message; cvta.global.u64 %rd1, %rd1; st.param.b64 [x0], %rd1; mov.u64 %rd1, file; "
      "st.param.b64 [x1], %rd1;\n"
      "st.param.b32 [x2], 17; mov.u64 %rd1, function; st.param.b64 [x3], %rd1; st.param.b64 [x4], 1;\n"
      "call.uni __assertfail, (x0, x1, x2, x3, x4); }";
  const Outcome failed = run_small({.declarations = declarations, .body = body, .b = {7}});
  ASSERT_TRUE(failed.trap.has_value());
  EXPECT_EQ(failed.trap->kind, TrapKind::assertion);
  EXPECT_TRUE(failed.trap->message.ends_with(": assertion failed: x < 1 (k.py:17, f)"))
      << failed.trap->message;
  EXPECT_EQ(failed.trap->thread[0], 7u);
  EXPECT_FALSE(run_small({.declarations = declarations, .body = body, .b = {32}}).trap.has_value());
}

}  // namespace compiler_forms_test
}  // namespace assay::vm
