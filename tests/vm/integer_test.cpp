// Integers, logic, bit fields, packing and carries, word by word.
#include <gtest/gtest.h>

#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace integer_test {

struct Case {
  const char* body;
  uint32_t a, b, c, expected;
};

class IntegerRules : public testing::TestWithParam<Case> {};

TEST_P(IntegerRules, GiveTheWordOfTheIsa) {
  const Case& row = GetParam();
  EXPECT_EQ(first_word({.body = row.body, .a = {row.a}, .b = {row.b}, .c = {row.c}}), row.expected)
      << row.body;
}

constexpr uint32_t min32 = 0x80000000, ones = 0xffffffff;

const Case arithmetic[] = {
    {"add.s32 %d, %a, %b;", 0x7fffffff, 1, 0, min32},
    {"add.sat.s32 %d, %a, %b;", 0x7fffffff, 1, 0, 0x7fffffff},
    {"sub.sat.s32 %d, %a, %b;", min32, 1, 0, min32},
    {"sub.u32 %d, %a, %b;", 0, 1, 0, ones},
    {"mul.lo.s32 %d, %a, %b;", 0x10001, 0x10001, 0, 0x00020001},
    {"mul.hi.s32 %d, %a, %b;", min32, 2, 0, ones},
    {"mul.hi.u32 %d, %a, %b;", min32, 2, 0, 1},
    {"mul.wide.s32 %rd1, %a, %b; shr.u64 %rd1, %rd1, 32; cvt.u32.u64 %d, %rd1;", ones, 3, 0, ones},
    {"mul.wide.u32 %rd1, %a, %b; shr.u64 %rd1, %rd1, 32; cvt.u32.u64 %d, %rd1;", ones, 3, 0, 2},
    {"mad.wide.s32 %rd1, %a, %b, -1; cvt.u32.u64 %d, %rd1;", 2, 3, 0, 5},
    {"mad.lo.s32 %d, %a, %b, %c;", 3, 4, 5, 17},
    {"mul.hi.u64 %rd1, -1, -1; cvt.u32.u64 %d, %rd1;", 0, 0, 0, 0xfffffffe},
    {"mul.hi.s64 %rd1, -1, 5; cvt.u32.u64 %d, %rd1;", 0, 0, 0, ones},
    {"div.s32 %d, %a, %b;", 0xfffffff9, 2, 0, 0xfffffffd},  // -7 / 2 = -3
    {"rem.s32 %d, %a, %b;", 0xfffffff9, 2, 0, ones},        // -7 % 2 = -1
    {"div.s32 %d, %a, %b;", min32, ones, 0, min32},         // no host trap
    {"div.u32 %d, %a, %b;", 7, 0, 0, ones},
    {"rem.u32 %d, %a, %b;", 7, 0, 0, ones},
    {"min.s32 %d, %a, %b;", ones, 1, 0, ones},
    {"min.u32 %d, %a, %b;", ones, 1, 0, 1},
    {"max.s64 %rd1, -5, 3; cvt.u32.u64 %d, %rd1;", 0, 0, 0, 3},
    {"abs.s32 %d, %a;", 0xfffffffb, 0, 0, 5},
    {"neg.s32 %d, %a;", min32, 0, 0, min32},
    {"sad.s32 %d, %a, %b, %c;", 0xfffffffe, 3, 10, 15},
    {"dp4a.s32.s32 %d, %a, %b, %c;", 0x01ff0203, 0x01010102, 5, 5 + 1 - 1 + 2 + 6},
    {"cvt.u16.u32 %h1, %a; cvt.u16.u32 %h2, %b; mul.lo.s16 %h3, %h1, %h2; cvt.u32.u16 %d, %h3;", 0x0101,
     0x0101, 0, 0x0201},
    {"cvt.u16.u32 %h1, %a; cvt.u16.u32 %h2, %b; mul.hi.u16 %h3, %h1, %h2; cvt.u32.u16 %d, %h3;", 0xffff,
     0xffff, 0, 0xfffe},
    {"cvt.u16.u32 %h1, %a; cvt.u16.u32 %h2, %b; sub.s16 %h3, %h1, %h2; cvt.s32.s16 %d, %h3;", 1, 2, 0, ones},
    {"add.cc.u32 %r1, %a, %b; addc.u32 %d, %c, 0;", ones, 1, 5, 6},
    {"add.cc.u32 %r1, %a, %b; addc.u32 %d, %c, 0;", 1, 1, 5, 5},
    {"sub.cc.u32 %r1, %a, %b; subc.u32 %d, %c, 0;", 0, 1, 5, 4},
    {"mad.lo.cc.u32 %r1, %a, %b, %c; madc.hi.u32 %d, %a, %b, 0;", ones, 2, 2, 2},
};

const Case packed[] = {
    {"add.s16x2 %d, %a, %b;", 0x7fffffff, 0x00010001, 0, 0x80000000},  // no carry between the parts
    {"min.s16x2 %d, %a, %b;", 0x8000ffff, 0x00010001, 0, 0x8000ffff},
    {"min.u16x2 %d, %a, %b;", 0x8000ffff, 0x00010001, 0, 0x00010001},
    {"max.u16x2 %d, %a, %b;", 0x8000ffff, 0x00010001, 0, 0x8000ffff},
    {"min.s16x2.relu %d, %a, %b;", 0x80000005, 0x00010007, 0, 0x00000005},
    {"dp2a.lo.s32.s32 %d, %a, %b, %c;", 0xffff0003, 0x0000ff02, 5, 5 + 6 + 1},
    {"dp2a.hi.u32.u32 %d, %a, %b, %c;", 0xffff0003, 0x01020000, 5, 5 + 6 + 0xffff},
    {"dp4a.s32.u32 %d, %a, %b, %c;", 0x000000ff, 0x000000ff, 0, 0xffffff01},
    {"vabsdiff4.u32.u32.u32 %d, %a, %b, %c;", 0x00ff1005, 0xff001205, 9, 0xffff0200},
    {"set.lt.u32.s32 %d, %a, %b;", ones, 0, 0, ones},
    {"set.lt.u32.u32 %d, %a, %b;", ones, 0, 0, 0},
    {"set.eq.f32.u32 %d, %a, %b;", 7, 7, 0, 0x3f800000},
    {"set.ltu.u32.f32 %d, %a, %b;", 0x7fc00000, 0, 0, ones},
    {"set.ne.u32.f32 %d, %a, %b;", 0x7fc00000, 0, 0, 0},  // ordered: NaN differs from nothing
    {"set.gt.f16x2.f16x2 %d, %a, %b;", 0x3c003c00, 0xbc004000, 0, 0x3c000000},
    {"set.nan.u32.f16x2 %d, %a, %b;", 0x7e003c00, 0, 0, 0xffff0000},
    {"set.le.bf16x2.bf16x2 %d, %a, %b;", 0x3f803f80, 0x3f803f00, 0, 0x3f800000},
    {"mov.b64 %rd1, {%a, %b}; cvt.s64.s8 %rd2, %rd1; cvt.u32.u64 %d, %rd2;", 0x80, 7, 0, 0xffffff80},
};

const Case bits[] = {
    {"and.b32 %d, %a, %b;", 0xff00ff00, 0x0ff00ff0, 0, 0x0f000f00},
    {"not.b32 %d, %a;", 0, 0, 0, ones},
    {"shl.b32 %d, %a, %b;", 1, 31, 0, min32},
    {"shl.b32 %d, %a, %b;", 1, 32, 0, 0},  // amounts are clamped, not masked
    {"shr.u32 %d, %a, %b;", min32, 40, 0, 0},
    {"shr.s32 %d, %a, %b;", min32, 40, 0, ones},
    {"mov.b64 %rd1, {%a, %b}; shr.s64 %rd1, %rd1, 100; cvt.u32.u64 %d, %rd1;", 0, min32, 0, ones},
    {"mov.b64 %rd1, {%a, %b}; shl.b64 %rd1, %rd1, 4; mov.b64 {%r1, %d}, %rd1;", 0xf0000000, 1, 0, 0x1f},
    {"shf.l.wrap.b32 %d, %a, %b, %c;", 0x80000000, 1, 33, 3},
    {"shf.r.clamp.b32 %d, %a, %b, %c;", 0x80000000, 1, 40, 1},
    {"bfe.u32 %d, %a, 4, 8;", 0x00000ab0, 0, 0, 0xab},
    {"bfe.s32 %d, %a, 4, 8;", 0x00000ab0, 0, 0, 0xffffffab},
    {"bfe.s32 %d, %a, 28, 8;", min32, 0, 0, 0xfffffff8},  // beyond the top: the sign
    {"bfe.u32 %d, %a, 40, 8;", ones, 0, 0, 0},
    {"bfe.s32 %d, %a, 0, 0;", ones, 0, 0, 0},
    {"bfi.b32 %d, %a, %b, 8, 4;", 0xf, 0, 0, 0x0f00},
    {"bfi.b32 %d, %a, %b, 28, 8;", 0xff, 0x1, 0, 0xf0000001},
    {"prmt.b32 %d, %a, %b, 0x5410;", 0x33221100, 0x77665544, 0, 0x55441100},
    {"prmt.b32 %d, %a, %b, 0x0008;", 0x00000080, 0, 0, 0x808080ff},
    {"lop3.b32 %d, %a, %b, %c, 0xe8;", 0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa, 0xe8e8e8e8},
    {"popc.b32 %d, %a;", 0xf0f0, 0, 0, 8},
    {"clz.b32 %d, %a;", 0, 0, 0, 32},
    {"bmsk.clamp.b32 %d, %a, %b;", 4, 8, 0, 0xff0},
    {"bmsk.clamp.b32 %d, %a, %b;", 28, 8, 0, 0xf0000000},
    {"bmsk.clamp.b32 %d, %a, %b;", 3, 0, 0, 0},
    {"bmsk.clamp.b32 %d, %a, %b;", 3, 40, 0, 0xfffffff8},
    {"bmsk.clamp.b32 %d, %a, %b;", 32, 1, 0, 0},
    {"bmsk.wrap.b32 %d, %a, %b;", 36, 40, 0, 0xff0},
    {"bmsk.wrap.b32 %d, %a, %b;", 3, 32, 0, 0},
    {"bfind.s32 %d, %a;", 0xfffffff0, 0, 0, 3},
    {"bfind.u32 %d, %a;", 0, 0, 0, ones},
    {"brev.b32 %d, %a;", 1, 0, 0, min32},
    {"setp.lt.s32 %p1, %a, %b; selp.b32 %d, 1, 2, %p1;", ones, 0, 0, 1},
    {"setp.lt.u32 %p1, %a, %b; selp.b32 %d, 1, 2, %p1;", ones, 0, 0, 2},
    {"setp.ne.and.b32 %p1, %a, %b, %p9; selp.b32 %d, 1, 2, %p1;", 1, 0, 0, 1},  // %p9 is unwritten: all ones
    {"mov.pred %p2, -1; setp.eq.xor.s32 %p1, %a, %b, %p2; selp.b32 %d, 1, 2, %p1;", 1, 1, 0, 2},
    {"mov.pred %p2, 0; not.pred %p2, %p2; selp.b32 %d, %a, %b, %p2;", 1, 2, 0, 1},
    {"mov.b32 {%h1, %h2}, %a; mov.b32 %d, {%h2, %h1};", 0x11112222, 0, 0, 0x22221111},
    {"mov.b32 {%h1, _}, %a; cvt.u32.u16 %d, %h1;", 0x11112222, 0, 0, 0x2222},
    {"slct.b32.s32 %d, %a, %b, %c;", 1, 2, ones, 2},
    {"@!%p1 mov.u32 %d, 9; @%p1 mov.u32 %d, 7;", 0, 0, 0, 7},
};

// By hand from the pseudocode of the PTX ISA.
const Case rare[] = {
    {"mul24.lo.u32 %d, %a, %b;", 0xff000003, 4, 0, 12},
    {"mul24.lo.s32 %d, %a, %b;", 0x00ffffff, 5, 0, 0xfffffffb},
    {"mul24.hi.u32 %d, %a, %b;", 0xffffff, 0xffffff, 0, 0xfffffe00},
    {"mul24.hi.s32 %d, %a, %b;", 0x800000, 0x7fffff, 0, 0xc0000080},
    {"mad24.lo.s32 %d, %a, %b, %c;", 0xffffff, 5, 7, 2},
    {"mad24.hi.u32 %d, %a, %b, %c;", 0xffffff, 0xffffff, 0x300, 0x100},
    {"mad24.hi.sat.s32 %d, %a, %b, %c;", 0x7fffff, 0x7fffff, 0x7fffffff, 0x7fffffff},
    {"mad.hi.sat.s32 %d, %a, %b, %c;", min32, min32, 0x7fffffff, 0x7fffffff},
    {"mad.hi.sat.s32 %d, %a, %b, %c;", min32, 0x7fffffff, min32, min32},
    {"prmt.b32.f4e %d, %a, %b, %c;", 0x33221100, 0x77665544, 1, 0x44332211},
    {"prmt.b32.b4e %d, %a, %b, %c;", 0x33221100, 0x77665544, 1, 0x66770011},
    {"prmt.b32.rc8 %d, %a, %b, %c;", 0x33221100, 0x77665544, 6, 0x22222222},
    {"prmt.b32.ecl %d, %a, %b, %c;", 0x33221100, 0x77665544, 2, 0x33222222},
    {"prmt.b32.ecr %d, %a, %b, %c;", 0x33221100, 0x77665544, 2, 0x22221100},
    {"prmt.b32.rc16 %d, %a, %b, %c;", 0x33221100, 0x77665544, 1, 0x33223322},
    {"prmt.b32.rc16 %d, %a, %b, %c;", 0x33221100, 0x77665544, 2, 0x11001100},
    {"fns.b32 %d, %a, %b, %c;", 0xb4, 0, 2, 4},
    {"fns.b32 %d, %a, %b, %c;", 0xb4, 5, 1, 5},
    {"fns.b32 %d, %a, %b, %c;", 0xb4, 7, 0xfffffffe, 5},
    {"fns.b32 %d, %a, %b, %c;", 0xb4, 0, 5, ones},
    {"fns.b32 %d, %a, %b, %c;", 0xb4, 4, 0, 4},
    {"fns.b32 %d, %a, %b, %c;", 0xb4, 3, 0, ones},
    {"szext.wrap.s32 %d, %a, %b;", 0x9f, 8, 0, 0xffffff9f},
    {"szext.wrap.u32 %d, %a, %b;", 0x19f, 8, 0, 0x9f},
    {"szext.wrap.s32 %d, %a, %b;", 0x19f, 40, 0, 0xffffff9f},
    {"szext.wrap.u32 %d, %a, %b;", 0x19f, 32, 0, 0},
    {"szext.clamp.s32 %d, %a, %b;", 0x19f, 40, 0, 0x19f},
    {"szext.clamp.u32 %d, %a, %b;", 0x19f, 0, 0, 0},
    {"bfind.shiftamt.s32 %d, %a;", 0xfffffff0, 0, 0, 28},
    {"mov.b64 %rd1, {%b, %a}; bfind.shiftamt.u64 %d, %rd1;", 0x100, 0, 0, 23},
    {"mov.b64 %rd1, {%b, %a}; bfind.shiftamt.s64 %d, %rd1;", ones, ones, 0, ones},
    {"mov.b32 %f1, %c; slct.b32.f32 %d, %a, %b, %f1;", 1, 2, min32, 1},  // -0
    {"mov.b32 %f1, %c; slct.b32.f32 %d, %a, %b, %f1;", 1, 2, 0x7fc00000, 2},
    {"mov.b32 %f1, %c; slct.b32.f32 %d, %a, %b, %f1;", 1, 2, 0x80000001, 2},
    {"mov.b32 %f1, %c; slct.ftz.b32.f32 %d, %a, %b, %f1;", 1, 2, 0x80000001, 1},
    {"mov.b32 %f1, %c; slct.ftz.b32.f32 %d, %a, %b, %f1;", 1, 2, 0x80800000, 2},  // the first normal number
    {"mov.b32 %f1, %c; mov.b64 %rd1, {%a, %a}; mov.b64 %rd2, {%b, %b}; slct.u64.f32 %rd3, %rd1, %rd2, %f1; "
     "cvt.u32.u64 %d, %rd3;",
     1, 2, 0xbf800000, 2},
    {"cvt.pack.sat.s8.s32.b32 %d, %a, %b, %c;", 300, static_cast<uint32_t>(-300), 0x11223344, 0x33447f80},
    {"cvt.pack.sat.u8.s32.b32 %d, %a, %b, %c;", static_cast<uint32_t>(-5), 300, 0x11223344, 0x334400ff},
    {"cvt.pack.sat.s4.s32.b32 %d, %a, %b, %c;", 9, static_cast<uint32_t>(-9), 0x11223344, 0x22334478},
    {"cvt.pack.sat.u4.s32.b32 %d, %a, %b, %c;", 20, 3, 0x11223344, 0x223344f3},
    {"cvt.pack.sat.s2.s32.b32 %d, %a, %b, %c;", 5, static_cast<uint32_t>(-5), 0x11223344, 0x12233446},
    {"cvt.pack.sat.u2.s32.b32 %d, %a, %b, %c;", 9, ones, 0x11223344, 0x1223344c},
    {"cvt.pack.sat.u16.s32 %d, %a, %b;", 70000, ones, 0, 0xffff0000},
    {"cvt.pack.sat.s16.s32 %d, %a, %b;", static_cast<uint32_t>(-70000), 40000, 0, 0x80007fff},
    {"neg.ftz.f16x2 %d, %a;", 0x00013c00, 0, 0, 0x8000bc00},
    {"abs.ftz.f16x2 %d, %a;", 0x8001bc00, 0, 0, 0x00003c00},
    {"min.ftz.NaN.f16x2 %d, %a, %b;", 0x7e000001, 0x3c003c00, 0, 0x7fff0000},
    {"max.ftz.NaN.f16x2 %d, %a, %b;", 0x7e008001, 0x3c008400, 0, 0x7fff8000},
    // Advice to the cache changes no value.
    {"createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %rd1, [%pa], 4, 4; "
     "createpolicy.cvt.L2.b64 "
     "%rd2, 1; createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %rd3, 0.5; "
     "prefetch.global.L2::evict_last [%pa]; prefetchu.L1 [%pa]; applypriority.global.L2::evict_normal [%pa], "
     "128; pmevent.mask 3; ld.global.L2::cache_hint.b32 %d, [%pa], %rd1;",
     7, 0, 0, 7},
};

INSTANTIATE_TEST_SUITE_P(Rare, IntegerRules, testing::ValuesIn(rare));
INSTANTIATE_TEST_SUITE_P(Arithmetic, IntegerRules, testing::ValuesIn(arithmetic));
INSTANTIATE_TEST_SUITE_P(PackedAndSet, IntegerRules, testing::ValuesIn(packed));
INSTANTIATE_TEST_SUITE_P(Bits, IntegerRules, testing::ValuesIn(bits));

}  // namespace integer_test
}  // namespace assay::vm
