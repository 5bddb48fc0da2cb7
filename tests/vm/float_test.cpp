// Rounding, flushing, saturation and NaN rules of single, double and half precision, word by word.
#include <gtest/gtest.h>

#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace float_test {

struct Case {
  const char* body;
  uint32_t a, b, c, expected;
};

class FloatRules : public testing::TestWithParam<Case> {};

TEST_P(FloatRules, GiveTheWordOfTheIsa) {
  const Case& row = GetParam();
  EXPECT_EQ(first_word({.body = row.body, .a = {row.a}, .b = {row.b}, .c = {row.c}}), row.expected)
      << row.body;
}

constexpr uint32_t one = 0x3f800000, nan = 0x7fffffff, inf = 0x7f800000, tiny = 0x00000001,
                   least = 0x00800000;

// 1 + 2^-24 and its neighbours decide every mode: the sum lies midway between 1 and 1 + 2^-23.
const Case rounding[] = {
    {"add.rn.f32 %d, %a, %b;", one, 0x33800000, 0, one},
    {"add.rz.f32 %d, %a, %b;", one, 0x33800000, 0, one},
    {"add.rm.f32 %d, %a, %b;", one, 0x33800000, 0, one},
    {"add.rp.f32 %d, %a, %b;", one, 0x33800000, 0, one + 1},
    {"add.rn.f32 %d, %a, %b;", one, 0x33800001, 0, one + 1},
    {"add.rz.f32 %d, %a, %b;", one, 0x33800001, 0, one},
    {"sub.rz.f32 %d, %a, %b;", one, 0x2b800000, 0, one - 1},
    {"sub.rn.f32 %d, %a, %b;", one, 0x2b800000, 0, one},
    {"add.rm.f32 %d, %a, %b;", 0xbf800000, 0xb3800000, 0, 0xbf800001},
    {"add.rp.f32 %d, %a, %b;", 0xbf800000, 0xb3800000, 0, 0xbf800000},
    {"add.rm.f32 %d, %a, %b;", one, 0xbf800000, 0, 0x80000000},  // exact zero: -0 when rounding down
    {"add.rn.f32 %d, %a, %b;", one, 0xbf800000, 0, 0},
    {"add.rp.f32 %d, %a, %b;", one, 0xbf800000, 0, 0},
    {"add.rz.f32 %d, %a, %b;", 0x7f7fffff, 0x7f7fffff, 0, 0x7f7fffff},  // overflow stops at the largest
    {"add.rm.f32 %d, %a, %b;", 0x7f7fffff, 0x7f7fffff, 0, 0x7f7fffff},
    {"add.rp.f32 %d, %a, %b;", 0x7f7fffff, 0x7f7fffff, 0, inf},
    {"add.rn.f32 %d, %a, %b;", 0x7f7fffff, 0x7f7fffff, 0, inf},
    {"mul.rn.f32 %d, %a, %b;", 0x3f800001, 0x3f800001, 0, 0x3f800002},
    {"mul.rp.f32 %d, %a, %b;", 0x3f800001, 0x3f800001, 0, 0x3f800003},
    {"mul.rz.f32 %d, %a, %b;", tiny, 0x3f000000, 0, 0},  // half of the smallest subnormal
    {"mul.rp.f32 %d, %a, %b;", tiny, 0x3f000000, 0, tiny},
    {"mul.rm.f32 %d, %a, %b;", tiny, 0xbf000000, 0, 0x80000001},
    // (1 + 2^-23)^2 - (1 + 2^-22) = 2^-46: only a fused operation sees it.
    {"fma.rn.f32 %d, %a, %b, %c;", 0x3f800001, 0x3f800001, 0xbf800002, 0x28800000},
    {"fma.rz.f32 %d, %a, %b, %c;", one, one, 0xb3000000, one - 1},
    {"fma.rn.f32 %d, %a, %b, %c;", one, one, 0xb2800000, one},
    {"fma.rp.f32 %d, %a, %b, %c;", one, one, 0x00000001, one + 1},
    {"fma.rm.f32 %d, %a, %b, %c;", one, one, 0x80000001, one - 1},
    // Double rounding trap: 1 + 2^-24 + 2^-54 must round up although a double would drop the last term.
    {"fma.rn.f32 %d, %a, %b, %c;", 0x39800000, 0x39800001, one, one + 1},
    {"mad.rn.f32 %d, %a, %b, %c;", 0x3f800001, 0x3f800001, 0xbf800002, 0x28800000},
    {"mul.f32 %d, %a, %b;", 0x3f800001, 0x3f800001, 0, 0x3f800002},
    {"div.rn.f32 %d, %a, %b;", one, 0x40400000, 0, 0x3eaaaaab},
    {"rcp.rn.f32 %d, %a;", 0x40400000, 0, 0, 0x3eaaaaab},
    {"sqrt.rn.f32 %d, %a;", 0x40000000, 0, 0, 0x3fb504f3},
};

const Case flushing[] = {
    {"add.rn.f32 %d, %a, %b;", tiny, tiny, 0, 2},
    {"add.rn.ftz.f32 %d, %a, %b;", tiny, tiny, 0, 0},
    {"add.rn.ftz.f32 %d, %a, %b;", 0x80000001, 0x80000001, 0, 0x80000000},
    {"add.rn.ftz.f32 %d, %a, %b;", least, 0x80800001, 0,
     0x80000000},  // the result underflows: its sign stays
    {"mul.rn.ftz.f32 %d, %a, %b;", least, 0x3f000000, 0, 0},
    {"mul.rn.f32 %d, %a, %b;", least, 0x3f000000, 0, 0x00400000},
    {"fma.rn.ftz.f32 %d, %a, %b, %c;", 0x7f000000, tiny, one, one},  // a subnormal factor counts as zero
    {"min.ftz.f32 %d, %a, %b;", tiny, one, 0, 0},
    {"abs.ftz.f32 %d, %a;", 0x80000001, 0, 0, 0},
    {"neg.ftz.f32 %d, %a;", tiny, 0, 0, 0x80000000},
    {"neg.f32 %d, %a;", tiny, 0, 0, 0x80000001},
    {"div.rn.ftz.f32 %d, %a, %b;", one, tiny, 0, inf},
    {"sqrt.rn.ftz.f32 %d, %a;", tiny, 0, 0, 0},
    {"setp.eq.ftz.f32 %p1, %a, %b; selp.b32 %d, 1, 2, %p1;", tiny, 0, 0, 1},
    {"setp.eq.f32 %p1, %a, %b; selp.b32 %d, 1, 2, %p1;", tiny, 0, 0, 2},
};

const Case special[] = {
    {"add.rn.f32 %d, %a, %b;", inf, 0xff800000, 0, nan},
    {"add.rn.f32 %d, %a, %b;", 0xffc00001, one, 0, nan},  // payload and sign are not kept
    {"mul.rn.f32 %d, %a, %b;", inf, 0, 0, nan},
    {"fma.rn.f32 %d, %a, %b, %c;", inf, 0, one, nan},
    {"sqrt.rn.f32 %d, %a;", 0xbf800000, 0, 0, nan},
    {"sqrt.rn.f32 %d, %a;", 0x80000000, 0, 0, 0x80000000},
    {"div.rn.f32 %d, %a, %b;", 0, 0, 0, nan},
    {"add.rn.sat.f32 %d, %a, %b;", one, one, 0, one},
    {"add.rn.sat.f32 %d, %a, %b;", 0xbf800000, 0, 0, 0},
    {"add.rn.sat.f32 %d, %a, %b;", 0x7fc00000, 0, 0, 0},  // NaN saturates to +0
    {"add.rn.sat.f32 %d, %a, %b;", 0x80000000, 0x80000000, 0, 0},
    {"min.f32 %d, %a, %b;", 0x7fc00000, one, 0, one},
    {"max.f32 %d, %a, %b;", one, 0x7fc00000, 0, one},
    {"max.f32 %d, %a, %b;", 0x7fc00000, 0xffc00000, 0, nan},
    {"max.NaN.f32 %d, %a, %b;", one, 0x7fc00000, 0, nan},
    {"min.f32 %d, %a, %b;", 0, 0x80000000, 0, 0x80000000},
    {"max.f32 %d, %a, %b;", 0x80000000, 0, 0, 0},
    {"copysign.f32 %d, %a, %b;", 0x80000000, one, 0, 0xbf800000},
    {"setp.lt.f32 %p1, %a, %b; selp.b32 %d, 1, 2, %p1;", 0x7fc00000, one, 0, 2},
    {"setp.ltu.f32 %p1, %a, %b; selp.b32 %d, 1, 2, %p1;", 0x7fc00000, one, 0, 1},
    {"setp.ne.f32 %p1, %a, %b; selp.b32 %d, 1, 2, %p1;", 0x7fc00000, one, 0, 2},
    {"setp.neu.f32 %p1, %a, %b; selp.b32 %d, 1, 2, %p1;", 0x7fc00000, one, 0, 1},
    {"setp.nan.f32 %p1, %a, %b; selp.b32 %d, 1, 2, %p1;", 0x7fc00000, one, 0, 1},
    {"setp.gt.or.f32 %p1|%p2, %a, %b, !%p3; selp.b32 %d, 1, 2, %p2;", one, 0, 0, 2},
    {"testp.infinite.f32 %p1, %a; selp.b32 %d, 1, 2, %p1;", 0xff800000, 0, 0, 1},
    {"testp.subnormal.f32 %p1, %a; selp.b32 %d, 1, 2, %p1;", tiny, 0, 0, 1},
};

const Case halves[] = {
    {"cvt.rn.f16.f32 %h1, %a; cvt.u32.u16 %d, %h1;", one, 0, 0, 0x3c00},
    {"cvt.rn.f16.f32 %h1, %a; cvt.u32.u16 %d, %h1;", 0x477fefff, 0, 0,
     0x7bff},  // just below the midpoint 65520
    {"cvt.rn.f16.f32 %h1, %a; cvt.u32.u16 %d, %h1;", 0x477ff000, 0, 0, 0x7c00},
    {"cvt.rz.f16.f32 %h1, %a; cvt.u32.u16 %d, %h1;", 0x4f800000, 0, 0, 0x7bff},
    {"cvt.rn.f16.f32 %h1, %a; cvt.u32.u16 %d, %h1;", 0x33000000, 0, 0, 0},  // 2^-25 ties to zero
    {"cvt.rn.f16.f32 %h1, %a; cvt.u32.u16 %d, %h1;", 0x33000001, 0, 0, 1},
    {"cvt.rn.f16.f32 %h1, %a; cvt.u32.u16 %d, %h1;", 0x387fffff, 0, 0,
     0x0400},  // rounds up to the least normal
    {"cvt.rn.f16.f32 %h1, %a; cvt.u32.u16 %d, %h1;", 0xffc00000, 0, 0, 0x7fff},
    {"cvt.rp.f16.f32 %h1, %a; cvt.u32.u16 %d, %h1;", tiny, 0, 0, 1},
    {"cvt.rn.bf16.f32 %h1, %a; cvt.u32.u16 %d, %h1;", 0x3f808000, 0, 0, 0x3f80},
    {"cvt.rn.bf16.f32 %h1, %a; cvt.u32.u16 %d, %h1;", 0x3f818000, 0, 0, 0x3f82},
    {"cvt.rn.bf16.f32 %h1, %a; cvt.u32.u16 %d, %h1;", 0x7f7fffff, 0, 0, 0x7f80},
    {"cvt.rz.bf16.f32 %h1, %a; cvt.u32.u16 %d, %h1;", 0x7f7fffff, 0, 0, 0x7f7f},
    {"cvt.rn.bf16x2.f32 %d, %a, %b;", one, 0xc0000000, 0, 0x3f80c000},  // the first source is the high half
    {"cvt.rn.f16x2.f32 %d, %a, %b;", one, 0xc0000000, 0, 0x3c00c000},
    {"cvt.rn.relu.bf16x2.f32 %d, %a, %b;", 0xbf800000, 0xffc00000, 0, 0x00007fff},
    {"mov.b32 {%h1, %h2}, %a; cvt.f32.f16 %d, %h1;", 0x00000001, 0, 0, 0x33800000},
    {"mov.b32 {%h1, %h2}, %a; cvt.f32.f16 %d, %h2;", 0xfc000000, 0, 0, 0xff800000},
    {"mov.b32 {%h1, %h2}, %a; cvt.f32.bf16 %d, %h1;", 0x0000ff80, 0, 0, 0xff800000},
    {"cvt.rna.tf32.f32 %d, %a;", 0x3f801000, 0, 0, 0x3f802000},  // ties away from zero
    {"cvt.rna.tf32.f32 %d, %a;", 0x3f800fff, 0, 0, one},
    {"cvt.rn.tf32.f32 %d, %a;", 0x3f801000, 0, 0, one},
    {"cvt.rna.tf32.f32 %d, %a;", 0x7f7fffff, 0, 0, inf},
    {"add.rn.f16x2 %d, %a, %b;", 0x3c003c00, 0x10003c00, 0, 0x3c004000},  // 1 + 2^-11 ties to 1
    {"fma.rn.f16x2 %d, %a, %b, %c;", 0x3c013c00, 0x3c013c00, 0xbc02bc00,
     0x00100000},  // (1+2^-10)^2 - (1+2^-9) = 2^-20
    {"mul.bf16x2 %d, %a, %b;", 0x3f813f80, 0x3f814000, 0, 0x3f824000},
    {"fma.rn.bf16x2 %d, %a, %b, %c;", 0x3f803f80, 0x3f807f80, 0x33804000, 0x3f807f80},
    {"add.rn.f16x2 %d, %a, %b;", 0x7bff7c00, 0x7bfffc00, 0, 0x7c007fff},
    {"max.f16x2 %d, %a, %b;", 0x7e008000, 0x3c000000, 0, 0x3c000000},
    {"neg.bf16x2 %d, %a;", 0x3f80bf80, 0, 0, 0xbf803f80},
};

const Case conversions[] = {
    {"cvt.rzi.s32.f32 %d, %a;", 0xc0200000, 0, 0, 0xfffffffe},
    {"cvt.rni.s32.f32 %d, %a;", 0x40200000, 0, 0, 2},  // 2.5 to even
    {"cvt.rpi.s32.f32 %d, %a;", 0x40200000, 0, 0, 3},
    {"cvt.rmi.s32.f32 %d, %a;", 0xc0200000, 0, 0, 0xfffffffd},
    {"cvt.rzi.s32.f32 %d, %a;", 0x4f000000, 0, 0, 0x7fffffff},  // saturates
    {"cvt.rzi.u32.f32 %d, %a;", 0xbf800000, 0, 0, 0},
    {"cvt.rzi.s32.f32 %d, %a;", nan, 0, 0, 0},
    {"cvt.rzi.s64.f32 %rd1, %a; shr.u64 %rd1, %rd1, 32; cvt.u32.u64 %d, %rd1;", nan, 0, 0, 0x80000000},
    {"cvt.rn.f32.u32 %d, %a;", 0x01000001, 0, 0, 0x4b800000},  // 2^24 + 1 ties to even
    {"cvt.rp.f32.u32 %d, %a;", 0x01000001, 0, 0, 0x4b800001},
    {"cvt.rz.f32.u32 %d, %a;", 0xffffffff, 0, 0, 0x4f7fffff},
    {"cvt.rn.f32.s32 %d, %a;", 0x80000000, 0, 0, 0xcf000000},
    {"mov.b64 %rd1, {%a, %b}; cvt.rn.f32.u64 %d, %rd1;", 1, 0x01000001, 0,
     0x5b800001},  // sticky bit far below the midpoint
    {"cvt.rni.f32.f32 %d, %a;", 0xbf000000, 0, 0, 0x80000000},
    {"cvt.sat.f32.f32 %d, %a;", nan, 0, 0, 0},
    {"cvt.f64.f32 %fd1, %a; mul.rn.f64 %fd1, %fd1, %fd1; cvt.rn.f32.f64 %d, %fd1;", 0x3f800001, 0, 0,
     0x3f800002},
    {"cvt.f64.f32 %fd1, %a; cvt.f64.f32 %fd2, %b; add.rn.f64 %fd1, %fd1, %fd2; cvt.rp.f32.f64 %d, %fd1;", one,
     0x2b800000, 0, one + 1},
    {"cvt.s8.s32 %d, %a;", 0x000000ff, 0, 0, 0xffffffff},
    {"cvt.u8.s32 %d, %a;", 0x000001ff, 0, 0, 0x000000ff},
    {"cvt.sat.s8.s32 %d, %a;", 1000, 0, 0, 127},
    {"cvt.sat.u16.s32 %d, %a;", 0xffffff00, 0, 0, 0},
    {"cvt.u16.u32 %h1, %a; cvt.s32.s16 %d, %h1;", 0x00018001, 0, 0, 0xffff8001},
    {"mov.f32 %d, 0f3F800000; add.rn.f32 %d, %d, 1.5;", 0, 0, 0, 0x40200000},  // a decimal literal
};

// 1 + 2^-60 lies above 1 by far less than an ulp of f64; the low word of the result tells the mode.
const Case directed[] = {
    {"mov.b64 %fd1, {0, %a}; mov.b64 %fd2, {0, %b}; add.rp.f64 %fd1, %fd1, %fd2; mov.b64 {%d, _}, %fd1;",
     0x3ff00000, 0x3c300000, 0, 1},
    {"mov.b64 %fd1, {0, %a}; mov.b64 %fd2, {0, %b}; add.rm.f64 %fd1, %fd1, %fd2; mov.b64 {%d, _}, %fd1;",
     0x3ff00000, 0x3c300000, 0, 0},
    {"mov.b64 %fd1, {0, %a}; mov.b64 %fd2, {0, %b}; sub.rz.f64 %fd1, %fd1, %fd2; mov.b64 {%d, _}, %fd1;",
     0x3ff00000, 0x3c300000, 0, 0xffffffff},
    {"mov.b64 %fd1, {1, %a}; mul.rp.f64 %fd1, %fd1, %fd1; mov.b64 {%d, _}, %fd1;", 0x3ff00000, 0, 0, 3},
    {"mov.b64 %fd1, {1, %a}; mul.rm.f64 %fd1, %fd1, %fd1; mov.b64 {%d, _}, %fd1;", 0x3ff00000, 0, 0, 2},
    {"mov.b64 %fd1, {1, %a}; fma.rp.f64 %fd1, %fd1, %fd1, 0d0000000000000000; mov.b64 {%d, _}, %fd1;",
     0x3ff00000, 0, 0, 3},
    {"mov.b64 %fd1, {-1, %a}; add.rz.f64 %fd1, %fd1, %fd1; mov.b64 {_, %d}, %fd1;", 0x7fefffff, 0, 0,
     0x7fefffff},
    {"mov.b64 %fd1, {0, %a}; rcp.rp.f64 %fd1, %fd1; mov.b64 {%d, _}, %fd1;", 0x40080000, 0, 0, 0x55555556},
    {"mov.b64 %fd1, {0, %a}; rcp.rm.f64 %fd1, %fd1; mov.b64 {%d, _}, %fd1;", 0x40080000, 0, 0, 0x55555555},
    {"div.rp.f32 %d, %a, %b;", one, 0x40400000, 0, 0x3eaaaaab},
    {"div.rz.f32 %d, %a, %b;", one, 0x40400000, 0, 0x3eaaaaaa},
    {"rcp.rm.ftz.f32 %d, %a;", tiny, 0, 0, inf},
    {"sqrt.rp.f32 %d, %a;", 0x40000000, 0, 0, 0x3fb504f4},
    {"sqrt.rz.f32 %d, %a;", 0x40000000, 0, 0, 0x3fb504f3},
    {"sqrt.rp.f32 %d, %a;", 0xbf800000, 0, 0, nan},
    {"cvt.rp.f64.u64 %fd1, -1; mov.b64 {_, %d}, %fd1;", 0, 0, 0, 0x43f00000},
    {"cvt.rz.f64.u64 %fd1, -1; mov.b64 {_, %d}, %fd1;", 0, 0, 0, 0x43efffff},
    {"cvt.f64.f32 %fd1, %a; cvt.rni.f64.f64 %fd1, %fd1; cvt.rn.f32.f64 %d, %fd1;", 0x40200000, 0, 0,
     0x40000000},
    {"mov.b32 {%h1, %h2}, %a; cvt.rpi.f16.f16 %h1, %h1; cvt.u32.u16 %d, %h1;", 0x3c01, 0, 0, 0x4000},
    {"mov.b32 {%h1, %h2}, %a; cvt.rmi.bf16.bf16 %h1, %h1; cvt.u32.u16 %d, %h1;", 0xbf81, 0, 0, 0xc000},
    {"cvt.rp.bf16.f32 %h1, %a; cvt.u32.u16 %d, %h1;", 0x3f800001, 0, 0, 0x3f81},
    {"cvt.rm.bf16.f32 %h1, %a; cvt.u32.u16 %d, %h1;", 0x3f80ffff, 0, 0, 0x3f80},
};

INSTANTIATE_TEST_SUITE_P(Directed, FloatRules, testing::ValuesIn(directed));
INSTANTIATE_TEST_SUITE_P(Rounding, FloatRules, testing::ValuesIn(rounding));
INSTANTIATE_TEST_SUITE_P(Flushing, FloatRules, testing::ValuesIn(flushing));
INSTANTIATE_TEST_SUITE_P(SpecialValues, FloatRules, testing::ValuesIn(special));
INSTANTIATE_TEST_SUITE_P(Halves, FloatRules, testing::ValuesIn(halves));
INSTANTIATE_TEST_SUITE_P(Conversions, FloatRules, testing::ValuesIn(conversions));

}  // namespace float_test
}  // namespace assay::vm
