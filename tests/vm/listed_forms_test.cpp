// Every form that Triton wrote for linear attention on an H200 (tests/data/ptx_forms.txt) in a program of its
// own, with the word it must give.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "tests/vm/small_kernel.h"

namespace assay::vm {
namespace listed_forms_test {

/// Thread 0's word with a = 7, b = 3, c = 100 in every thread; %r32 is the thread, `buffer` is shared memory.
struct Program {
  const char* form;
  const char* body;
  uint32_t expected;
};

constexpr uint32_t one = 0x3f800000, two = 0x40000000;

const Program kPrograms[] = {
    {"add.s32", "add.s32 %d, %a, %b;", 10},
    {"add.s64", "mov.b64 %rd1, {%a, %b}; add.s64 %rd1, %rd1, %rd1; mov.b64 {%r1, %d}, %rd1;", 6},
    {"add.f32", "add.f32 %d, 0f3F800000, 0f3F800000;", two},
    {"and.b16", "cvt.u16.u32 %h1, %a; and.b16 %h1, %h1, 3; cvt.u32.u16 %d, %h1;", 3},
    {"and.b32", "and.b32 %d, %a, %c;", 4},
    {"and.b64", "mov.b64 %rd1, {%a, %c}; and.b64 %rd1, %rd1, 17179869184; mov.b64 {%r1, %d}, %rd1;", 4},
    {"and.pred",
     "setp.lt.s32 %p1, %b, %a; setp.lt.s32 %p2, %c, %a; and.pred %p3, %p1, %p2; selp.b32 %d, 1, 2, %p3;", 2},
    {"not.pred", "setp.lt.s32 %p1, %b, %a; not.pred %p2, %p1; selp.b32 %d, 1, 2, %p2;", 2},
    {"mov.pred", "setp.lt.s32 %p1, %b, %a; mov.pred %p2, %p1; selp.b32 %d, 1, 2, %p2;", 1},
    {"bar.sync", "bar.sync 0; mov.u32 %d, 5;", 5},
    {"bar.warp.sync", "bar.warp.sync -1; mov.u32 %d, 5;", 5},
    {"bfe.s32", "bfe.s32 %d, %a, 1, 2;", 0xffffffff},
    {"bfe.u32", "bfe.u32 %d, %c, 2, 4;", 9},
    {"bra", "mov.u32 %d, 5; bra DONE; mov.u32 %d, 6;", 5},
    {"bra.uni", "mov.u32 %d, 5; bra.uni DONE; mov.u32 %d, 6;", 5},
    {"ret", "st.global.b32 [%pd], %a; ret;", 7},
    {"cvt.f32.bf16", "mov.b16 %h1, 0x4000; cvt.f32.bf16 %d, %h1;", two},
    {"cvt.rn.bf16.f32", "cvt.rn.bf16.f32 %h1, 0f3F808001; cvt.u32.u16 %d, %h1;", 0x3f81},
    {"cvt.rn.bf16x2.f32", "cvt.rn.bf16x2.f32 %d, 0f3F800000, 0f40000000;", 0x3f804000},
    {"cvt.s64.s32", "cvt.s64.s32 %rd1, -1; mov.b64 {%r1, %d}, %rd1;", 0xffffffff},
    {"cvt.u16.u32", "cvt.u16.u32 %h1, 65541; cvt.u32.u16 %d, %h1;", 5},
    {"cvt.u32.u16", "mov.u16 %h1, -1; cvt.u32.u16 %d, %h1;", 0xffff},
    {"cvt.u32.u64", "mov.b64 %rd1, {%a, %b}; cvt.u32.u64 %d, %rd1;", 7},
    {"cvt.u64.u16", "mov.u16 %h1, -1; cvt.u64.u16 %rd1, %h1; mov.b64 {%d, %r1}, %rd1;", 0xffff},
    {"cvt.u64.u32", "cvt.u64.u32 %rd1, -1; mov.b64 {%r1, %d}, %rd1;", 0},
    {"ex2.approx.f32", "ex2.approx.f32 %d, 0f3F800000;", two},
    {"ex2.approx.ftz.f32", "ex2.approx.ftz.f32 %d, 0fC3020000;", 0},  // 2^-130
    {"fma.rn.f32", "fma.rn.f32 %d, 0f40000000, 0f3F000000, 0f3F800000;", two},
    {"mad.lo.s32", "mad.lo.s32 %d, %a, %b, %c;", 121},
    {"mad.lo.s64", "cvt.s64.s32 %rd1, %a; mad.lo.s64 %rd1, %rd1, %rd1, -50; cvt.u32.u64 %d, %rd1;",
     0xffffffff},
    {"mad.wide.s32", "mov.u64 %rd1, 1; mad.wide.s32 %rd1, -2, %a, %rd1; mov.b64 {%d, %r1}, %rd1;",
     0xfffffff3},
    {"mad.wide.u32", "mov.u64 %rd1, 1; mad.wide.u32 %rd1, -2, %a, %rd1; mov.b64 {%r1, %d}, %rd1;", 6},
    {"max.s32", "max.s32 %d, -1, %a;", 7},
    {"max.s64", "cvt.s64.s32 %rd1, %a; max.s64 %rd1, %rd1, -1; cvt.u32.u64 %d, %rd1;", 7},
    {"min.s32", "min.s32 %d, -1, %a;", 0xffffffff},
    {"min.s64", "cvt.s64.s32 %rd1, %a; min.s64 %rd1, %rd1, -1; cvt.u32.u64 %d, %rd1;", 0xffffffff},
    {"min.u32", "min.u32 %d, -1, %a;", 7},
    {"mov.b16", "mov.b16 %h1, 9; cvt.u32.u16 %d, %h1;", 9},
    {"mov.b32", "mov.b32 %d, %a;", 7},
    {"mov.b64", "mov.b64 %rd1, {%a, %b}; mov.b64 %rd2, %rd1; mov.b64 {%r1, %d}, %rd2;", 3},
    {"mov.u16", "mov.u16 %h1, 9; cvt.u32.u16 %d, %h1;", 9},
    {"mov.u32", "mov.u32 %d, %tid.x;", 0},
    {"mul.bf16", "mov.b16 %h1, 0x4040; mul.bf16 %h1, %h1, %h1; cvt.u32.u16 %d, %h1;", 0x4110},  // 3 * 3
    {"mul.bf16x2", "mov.b32 %r1, 0x40403F80; mul.bf16x2 %d, %r1, %r1;", 0x41103f80},
    {"mul.f32", "mul.f32 %d, 0f40000000, 0f3F000000;", one},
    {"mul.hi.u16", "mov.u16 %h1, -1; mul.hi.u16 %h1, %h1, %h1; cvt.u32.u16 %d, %h1;", 0xfffe},
    {"mul.lo.s16", "mov.u16 %h1, 300; mul.lo.s16 %h1, %h1, %h1; cvt.u32.u16 %d, %h1;", 90000 - 65536},
    {"mul.lo.s32", "mul.lo.s32 %d, %a, %b;", 21},
    {"mul.lo.s64", "cvt.s64.s32 %rd1, %a; mul.lo.s64 %rd1, %rd1, -1; mov.b64 {%r1, %d}, %rd1;", 0xffffffff},
    {"mul.wide.s32", "mul.wide.s32 %rd1, -1, %a; mov.b64 {%r1, %d}, %rd1;", 0xffffffff},
    {"mul.wide.u32", "mul.wide.u32 %rd1, -1, %a; mov.b64 {%r1, %d}, %rd1;", 6},
    {"neg.f32", "neg.f32 %d, 0f3F800000;", 0xbf800000},
    {"neg.s32", "neg.s32 %d, %a;", 0xfffffff9},
    {"or.b16", "mov.u16 %h1, 6; or.b16 %h1, %h1, 9; cvt.u32.u16 %d, %h1;", 15},
    {"or.b32", "or.b32 %d, %a, %c;", 103},
    {"or.b64", "cvt.u64.u32 %rd1, %a; or.b64 %rd1, %rd1, 8; cvt.u32.u64 %d, %rd1;", 15},
    {"prmt.b32", "prmt.b32 %d, 0x03020100, 0x07060504, 0x5410;", 0x05040100},
    {"selp.b16",
     "setp.lt.s32 %p1, %b, %a; mov.u16 %h1, 4; mov.u16 %h2, 5; selp.b16 %h3, %h1, %h2, %p1; cvt.u32.u16 %d, "
     "%h3;",
     4},
    {"selp.b32", "setp.lt.s32 %p1, %b, %a; selp.b32 %d, 4, 5, %p1;", 4},
    {"selp.f32", "setp.lt.s32 %p1, %b, %a; selp.f32 %d, 0f3F800000, 0f00000000, %p1;", one},
    {"setp.eq.b32", "setp.eq.b32 %p1, %a, 7; selp.b32 %d, 1, 2, %p1;", 1},
    {"setp.ne.b32", "setp.ne.b32 %p1, %a, 7; selp.b32 %d, 1, 2, %p1;", 2},
    {"setp.eq.b64", "cvt.s64.s32 %rd1, %a; setp.eq.b64 %p1, %rd1, 7; selp.b32 %d, 1, 2, %p1;", 1},
    {"setp.ne.b64", "cvt.s64.s32 %rd1, %a; setp.ne.b64 %p1, %rd1, 7; selp.b32 %d, 1, 2, %p1;", 2},
    {"setp.lt.s32", "setp.lt.s32 %p1, -1, %a; selp.b32 %d, 1, 2, %p1;", 1},
    {"setp.gt.s32", "setp.gt.s32 %p1, -1, %a; selp.b32 %d, 1, 2, %p1;", 2},
    {"setp.ge.s32", "setp.ge.s32 %p1, %a, 7; selp.b32 %d, 1, 2, %p1;", 1},
    {"setp.lt.u32", "setp.lt.u32 %p1, -1, %a; selp.b32 %d, 1, 2, %p1;", 2},
    {"setp.gt.u32", "setp.gt.u32 %p1, -1, %a; selp.b32 %d, 1, 2, %p1;", 1},
    {"setp.le.u32", "setp.le.u32 %p1, %a, 7; selp.b32 %d, 1, 2, %p1;", 1},
    {"setp.ge.u32", "setp.ge.u32 %p1, %a, -1; selp.b32 %d, 1, 2, %p1;", 2},
    {"setp.lt.s64", "cvt.s64.s32 %rd1, %a; setp.lt.s64 %p1, %rd1, -1; selp.b32 %d, 1, 2, %p1;", 2},
    {"setp.gt.s64", "cvt.s64.s32 %rd1, %a; setp.gt.s64 %p1, %rd1, -1; selp.b32 %d, 1, 2, %p1;", 1},
    {"setp.le.s64", "cvt.s64.s32 %rd1, %a; setp.le.s64 %p1, %rd1, 7; selp.b32 %d, 1, 2, %p1;", 1},
    {"setp.ge.s64", "cvt.s64.s32 %rd1, %a; setp.ge.s64 %p1, %rd1, 8; selp.b32 %d, 1, 2, %p1;", 2},
    {"setp.lt.u64", "cvt.s64.s32 %rd1, %a; setp.lt.u64 %p1, %rd1, -1; selp.b32 %d, 1, 2, %p1;", 1},
    {"setp.gt.u64", "cvt.s64.s32 %rd1, %a; setp.gt.u64 %p1, %rd1, -1; selp.b32 %d, 1, 2, %p1;", 2},
    {"setp.le.u64", "cvt.s64.s32 %rd1, %a; setp.le.u64 %p1, %rd1, 6; selp.b32 %d, 1, 2, %p1;", 2},
    {"shfl.sync.bfly.b32", "shfl.sync.bfly.b32 %d, %r32, 5, 31, -1;", 5},
    {"shfl.sync.idx.b32", "shfl.sync.idx.b32 %d, %r32, 9, 31, -1;", 9},
    {"shfl.sync.up.b32", "shfl.sync.up.b32 %r1, %r32, 2, 0, -1; shfl.sync.idx.b32 %d, %r1, 9, 31, -1;", 7},
    {"shl.b16", "mov.u16 %h1, 0x4001; shl.b16 %h1, %h1, 2; cvt.u32.u16 %d, %h1;", 4},
    {"shl.b32", "shl.b32 %d, %a, 4;", 112},
    {"shl.b64", "cvt.u64.u32 %rd1, %a; shl.b64 %rd1, %rd1, 33; mov.b64 {%r1, %d}, %rd1;", 14},
    {"shr.s32", "shr.s32 %d, -8, 1;", 0xfffffffc},
    {"shr.s64", "cvt.s64.s32 %rd1, -8; shr.s64 %rd1, %rd1, 1; mov.b64 {%d, %r1}, %rd1;", 0xfffffffc},
    {"shr.u16", "mov.u16 %h1, -8; shr.u16 %h1, %h1, 1; cvt.u32.u16 %d, %h1;", 0x7ffc},
    {"shr.u32", "shr.u32 %d, -8, 1;", 0x7ffffffc},
    {"shr.u64", "mov.b64 %rd1, {%a, %b}; shr.u64 %rd1, %rd1, 32; cvt.u32.u64 %d, %rd1;", 3},
    {"sub.f32", "sub.f32 %d, 0f40000000, 0f3F800000;", one},
    {"sub.s16", "mov.u16 %h1, 3; sub.s16 %h1, %h1, 5; cvt.u32.u16 %d, %h1;", 0xfffe},
    {"sub.s32", "sub.s32 %d, %a, %c;", 0xffffffa3},
    {"sub.s64", "cvt.s64.s32 %rd1, %a; sub.s64 %rd1, %rd1, 8; mov.b64 {%r1, %d}, %rd1;", 0xffffffff},
    {"xor.b32", "xor.b32 %d, %a, %b;", 4},
    // Memory. %pa .. %pd are this thread's words; `buffer` takes what is stored.
    {"ld.global.b16", "ld.global.b16 %h1, [%pa]; cvt.u32.u16 %d, %h1;", 7},
    {"ld.global.b32", "ld.global.b32 %d, [%pc];", 100},
    {"ld.global.v2.b32", "@%q ld.global.v2.b32 {%r1, %r2}, [%pa]; add.s32 %d, %r1, %r2;", 14},
    {"ld.global.v4.b32", "@%q ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%pb]; add.s32 %d, %r1, %r4;", 6},
    {"ld.param.b32", "ld.param.b32 %r1, [pa]; cvt.u32.u64 %r2, %pa; sub.s32 %d, %r1, %r2;", 0},
    {"ld.param.b64", "ld.param.b64 %rd1, [pa]; sub.s64 %rd1, %rd1, %pa; cvt.u32.u64 %d, %rd1;", 0},
    {"ld.param.s32",
     "ld.param.s32 %r1, [pa+4]; shr.u64 %rd1, %pa, 32; cvt.u32.u64 %r2, %rd1; sub.s32 %d, %r1, %r2;", 0},
    {"st.global.b32", "st.global.b32 [%pd], %c; ret;", 100},
    {"st.global.v2.b32", "@%q st.global.v2.b32 [%pd], {%c, %b}; ret;", 100},
    {"st.global.v4.b32", "@%q st.global.v4.b32 [%pd], {%b, %b, %b, %b}; ret;", 3},
    {"ld.shared.b16", "st.shared.b32 [%s], %a; ld.shared.b16 %h1, [%s]; cvt.u32.u16 %d, %h1;", 7},
    {"ld.shared.b32", "st.shared.b32 [%s], %a; ld.shared.b32 %d, [%s];", 7},
    {"ld.shared.v2.b16",
     "st.shared.b32 [%s], 0x20003; ld.shared.v2.b16 {%h1, %h2}, [%s]; cvt.u32.u16 %d, %h2;", 2},
    {"ld.shared.v2.b32", "st.shared.v2.b32 [%s], {%a, %b}; ld.shared.v2.b32 {%r1, %d}, [%s];", 3},
    {"ld.shared.v4.b16",
     "st.shared.v2.b32 [%s], {%a, 0x90000}; ld.shared.v4.b16 {%h1, %h2, %h3, %h4}, [%s]; cvt.u32.u16 %d, "
     "%h4;",
     9},
    {"ld.shared.v4.b32",
     "st.shared.v4.b32 [%s], {%a, %b, %c, %a}; ld.shared.v4.b32 {%r1, %r2, %d, %r4}, [%s];", 100},
    {"st.shared.b16",
     "st.shared.b32 [%s], -1; mov.u16 %h1, 2; st.shared.b16 [%s+2], %h1; ld.shared.b32 %d, [%s];", 0x2ffff},
    {"st.shared.b32", "st.shared.b32 [%s], %b; ld.shared.b32 %d, [%s];", 3},
    {"st.shared.v2.b16",
     "mov.u16 %h1, 2; mov.u16 %h2, 5; st.shared.v2.b16 [%s], {%h1, %h2}; ld.shared.b32 %d, [%s];", 0x50002},
    {"st.shared.v2.b32", "st.shared.v2.b32 [%s], {%a, %b}; ld.shared.b32 %d, [%s+4];", 3},
    {"st.shared.v4.b16",
     "mov.u16 %h1, 2; mov.u16 %h2, 5; st.shared.v4.b16 [%s], {%h1, %h1, %h2, %h1}; ld.shared.b32 %d, [%s+4];",
     0x20005},
    {"st.shared.v4.b32", "st.shared.v4.b32 [%s], {%a, %b, %c, %a}; ld.shared.b32 %d, [%s+8];", 100},
    {"cp.async.ca.shared.global",
     "cp.async.ca.shared.global [%s], [%pc], 4; cp.async.commit_group; cp.async.wait_group 0; ld.shared.b32 "
     "%d, [%s];",
     100},
    {"cp.async.cg.shared.global",
     "@%q cp.async.cg.shared.global [%s], [%pc], 16; cp.async.commit_group; cp.async.wait_group 0; "
     "ld.shared.b32 %d, [%s+12];",
     100},
    {"cp.async.commit_group",
     "cp.async.ca.shared.global [%s], [%pa], 4; cp.async.commit_group; cp.async.wait_all; ld.shared.b32 %d, "
     "[%s];",
     7},
    {"cp.async.wait_group",
     "cp.async.ca.shared.global [%s], [%pa], 4; cp.async.commit_group; cp.async.commit_group; "
     "cp.async.wait_group 1;\n"
     "ld.shared.b32 %d, [%s];",
     7},
    {"fence.proxy.async.shared::cta",
     "st.shared.b32 [%s], %a; fence.proxy.async.shared::cta; ld.shared.b32 %d, [%s];", 7},
    // Matrices of 8 x 8 halves: lane l's address is %s, row l mod 8; lane 0 receives row 0, columns 0 and 1.
    {"ldmatrix.sync.aligned.m8n8.x1.shared.b16",
     "st.shared.b32 [%s], %r32; bar.sync 0; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%s];\n"
     "shfl.sync.idx.b32 %d, %r1, 28, 31, -1;",
     7},  // lane 28 has row 7
    {"ldmatrix.sync.aligned.m8n8.x2.shared.b16",
     "st.shared.b32 [%s], %r32; bar.sync 0; ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%s];\n"
     "shfl.sync.idx.b32 %d, %r2, 28, 31, -1;",
     15},
    {"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
     "st.shared.b32 [%s], %r32; bar.sync 0; ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r1, %r2}, "
     "[%s];\n"
     "shfl.sync.idx.b32 %d, %r2, 3, 31, -1;",
     0x000f000e},  // column 0, rows 6 and 7 of the second matrix
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16",
     "st.shared.b32 [%s], %r32; bar.sync 0; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, "
     "[%s];\n"
     "shfl.sync.idx.b32 %d, %r4, 28, 31, -1;",
     31},
    {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
     "st.shared.b32 [%s], %r32; bar.sync 0; ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1, %r2, %r3, "
     "%r4}, [%s];\n"
     "shfl.sync.idx.b32 %d, %r4, 3, 31, -1;",
     0x001f001e},
    {"stmatrix.sync.aligned.m8n8.x1.shared.b16",
     "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%s], {%r32}; bar.sync 0; ld.shared.b32 %d, [buffer+124];",
     31},  // row 7
    {"stmatrix.sync.aligned.m8n8.x2.shared.b16",
     "add.s32 %r1, %r32, 50; stmatrix.sync.aligned.m8n8.x2.shared.b16 [%s], {%r32, %r1}; bar.sync 0;\n"
     "ld.shared.b32 %d, [buffer+252];",
     81},
    {"stmatrix.sync.aligned.m8n8.x4.shared.b16",
     "add.s32 %r1, %r32, 50; stmatrix.sync.aligned.m8n8.x4.shared.b16 [%s], {%r32, %r32, %r32, %r1}; "
     "bar.sync 0;\n"
     "ld.shared.b32 %d, [buffer+508];",
     81},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
     "mov.b32 %r1, 0x3F803F80; mov.b32 %f1, 0f3F800000;\n"
     "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f2,%f3,%f4,%f5}, {%r1,%r1,%r1,%r1}, {%r1,%r1}, "
     "{%f1,%f1,%f1,%f1};\n"
     "mov.b32 %d, %f5;",
     0x41880000},  // 17
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
     "mov.b32 %r1, 0x3F800000; mov.b32 %f1, 0f3F800000;\n"
     "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f2,%f3,%f4,%f5}, {%r1,%r1,%r1,%r1}, {%r1,%r1}, "
     "{%f1,%f1,%f1,%f1};\n"
     "mov.b32 %d, %f5;",
     0x41100000},  // 9
};

/// A wgmma of ones from registers and from shared memory, accumulators 1: every result is 1 + K.
std::string warpgroup_program(const std::string& form) {
  const size_t n_at = form.find("64n") + 3, k_at = form.find('k', n_at);
  const int columns = std::stoi(form.substr(n_at, k_at - n_at));
  const bool words = form.ends_with("tf32");
  std::string text = words ? "mov.b32 %r1, 0x3F800000;\n" : "mov.b32 %r1, 0x3F803F80;\n";
  // 128 threads fill 8 KiB; leading and stride offsets 128 and 256 bytes, no swizzle.
  text += "shl.b32 %r2, %r32, 6; mov.u32 %r3, buffer; add.s32 %r2, %r2, %r3;\n";
  for (int at = 0; at < 64; at += 16)
    text += "st.shared.v4.b32 [%r2+" + std::to_string(at) + "], {%r1, %r1, %r1, %r1};\n";
  text += "fence.proxy.async.shared::cta; bar.sync 0;\n";
  text +=
      "cvt.u64.u32 %rd1, %r3; shr.u64 %rd1, %rd1, 4; and.b64 %rd1, %rd1, 16383;\n"
      "or.b64 %rd1, %rd1, " +
      std::to_string(uint64_t{8} << 16 | uint64_t{16} << 32) + ";\n";
  std::string list;
  for (int i = 0; i < columns / 2; ++i) {
    text += ".reg .f32 %acc" + std::to_string(i) + "; mov.f32 %acc" + std::to_string(i) + ", 0f3F800000;\n";
    list += (i ? ", %acc" : "%acc") + std::to_string(i);
  }
  text += "wgmma.fence.sync.aligned;\n" + form + " {" + list + "}, {%r1, %r1, %r1, %r1}, %rd1, 1, 1, 1" +
          (words ? "" : ", 0") + ";\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n";
  return text + "mov.b32 %d, %acc" + std::to_string(columns / 2 - 1) + ";";
}

std::vector<std::string> listed() {
  std::ifstream file(ASSAY_SOURCE_DIR "/tests/data/ptx_forms.txt");
  std::vector<std::string> forms;
  for (std::string line; std::getline(file, line);) forms.push_back(line);
  return forms;
}

uint32_t word_of(const std::string& body, uint32_t threads) {
  SmallKernel kernel{.declarations = ".shared .align 1024 .b8 buffer[16384];",
                     .body =
                         ".reg .pred %q; .reg .b32 %s; setp.eq.u32 %q, %r32, 0; mov.u32 %s, buffer;\n"
                         "mad.lo.u32 %s, %r32, 16, %s;\n" +
                         body,
                     .a = {7},
                     .b = {3},
                     .c = {100},
                     .threads = threads};
  const Outcome outcome = run_small(kernel);
  if (outcome.trap) ADD_FAILURE() << outcome.trap->message << "\n" << body;
  return outcome.trap ? 0xdead0000u : words_of(outcome).front();
}

TEST(ListedForms, EachGivesItsWord) {
  std::set<std::string> tried;
  for (const Program& row : kPrograms) {
    const std::string body = row.body, form = row.form;
    EXPECT_TRUE(body.find(form + " ") != std::string::npos || body.find(form + ";") != std::string::npos)
        << form;
    EXPECT_EQ(word_of(row.body, 32), row.expected) << row.form << "\n" << row.body;
    tried.insert(row.form);
  }
  for (const std::string& form : listed()) {
    if (form.starts_with("wgmma.mma_async")) {
      EXPECT_EQ(word_of(warpgroup_program(form), 128), form.ends_with("tf32") ? 0x41100000u : 0x41880000u)
          << form;
    } else {  // fence, commit_group and wait_group stand in each wgmma program
      EXPECT_TRUE(form.starts_with("wgmma.") || tried.contains(form)) << form << " has no program here";
    }
  }
  EXPECT_EQ(listed().size(), 144u);
}

}  // namespace listed_forms_test
}  // namespace assay::vm
