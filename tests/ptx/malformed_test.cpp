// Text that is no valid PTX: one line that says where and what. Each row is a whole text or the body of an
// entry.
#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "tests/ptx/front_end.h"

namespace assay::ptx {
namespace malformed_test {

struct Malformed {
  const char* text;
  const char* message;
};

const std::string head = ".version 8.0\n.target sm_90\n.address_size 64\n";
/// The body starts at line 8.
std::string with_body(const std::string& body) {
  return head +
         ".global .b32 g[4];\n.func (.param .b32 r) f(.param .b32 a) { ret; }\n"
         ".entry k(.param .u64 p) {\n.reg .pred %p<3>; .reg .b16 %h<3>; .reg .b32 %r<9>; .reg .b64 %d<9>; "
         ".reg .f32 %f<9>;\n" +
         body + "\n}\n";
}

constexpr Malformed modules[] = {
    {"", "fuzz.ptx:1:1: no .version directive: this is not PTX text"},
    {"hello", "fuzz.ptx:1:1: expected a directive"},
    {".version", "fuzz.ptx:1:9: expected a version such as 8.0"},
    {".version x\n", "fuzz.ptx:1:10: expected a version such as 8.0"},
    {".version 8.0\n.target ;", "fuzz.ptx:2:9: expected a target such as sm_80"},
    {".version 8.0\n.target sm_90\n.address_size 32\n", "fuzz.ptx:3:15: only .address_size 64 is supported"},
    {".version 8.0\n.target sm_90\n/* open", "fuzz.ptx:3:1: comment is not closed"},
    {".version 8.0\n.target sm_90\n.entry", "fuzz.ptx:3:7: expected a function name"},
    {".version 8.0\n.target sm_90\n.entry k(\n",
     "fuzz.ptx:4:1: expected .param (parameters in registers are not supported)"},
    {".version 8.0\n.target sm_90\n.entry k(.reg .b32 x) {}",
     "fuzz.ptx:3:10: expected .param (parameters in registers are not supported)"},
    {".version 8.0\n.target sm_90\n.entry k(.param .u64)(){", "fuzz.ptx:3:22: expected '{', got '('"},
    {".version 8.0\n.target sm_90\n.entry k(.param .pred p) { }",
     "fuzz.ptx:3:10: parameter without a type that has a size"},
    {".version 8.0\n.target sm_90\n.entry k(.param .align 3 .b8 s[4]) { }",
     "fuzz.ptx:3:24: the alignment is no power of two"},
    {".version 8.0\n.target sm_90\n.entry k(.param .b8 s[-1]) { }",
     "fuzz.ptx:3:23: the size of the parameter is not between 0 and 2147483648"},
    {".version 8.0\n.target sm_90\n.entry k(.param .b8 s[99999]) { }",
     "fuzz.ptx:3:8: entry k has 99999 bytes of parameters; at most 32764 are possible"},
    {".version 8.0\n.target sm_90\n.entry k(.param .u32 a, .param .u32 a) { }",
     "fuzz.ptx:3:8: parameter a is declared twice"},
    {".version 8.0\n.target sm_90\n.entry k() { ret; }\n.entry k() { ret; }\n",
     "fuzz.ptx:4:8: function k is defined twice"},
    {".version 8.0\n.target sm_90\n.entry k() {\n ret;\n", "fuzz.ptx:5:1: function k is not closed"},
    {".version 8.0\n.target sm_90\n.entry k() .maxntid { }", "fuzz.ptx:3:21: expected a number"},
    {".version 8.0\n.target sm_90\n.entry k() .maxntid 0x { }", "fuzz.ptx:3:21: malformed number 0x"},
    {".version 8.0\n.target sm_90\n.global .b32 x = other;",
     "fuzz.ptx:3:18: initialiser of x is not a number (nor a 64-bit address)"},
    {".version 8.0\n.target sm_90\n.global .b32 x;\n.global .f32 x;",
     "fuzz.ptx:4:9: variable x is declared twice"},
    {".version 8.0\n.target sm_90\n.global .u64 x = nobody;",
     "fuzz.ptx:3:18: initialiser of x names nobody, which the module does not declare"},
    {".version 8.0\n.target sm_90\n.global .b32 x[2] = {1, 2, 3};",
     "fuzz.ptx:3:21: initialiser of x is too long"},
    {".version 8.0\n.target sm_90\n.global .b32 x[2] = {1, 2",
     "fuzz.ptx:3:26: expected ',', got the end of the text"},
    {".version 8.0\n.target sm_90\n.global .v3 .f32 x;", "fuzz.ptx:3:9: unknown variable attribute .v3"},
    {".version 8.0\n.target sm_90\n.global .b32;", "fuzz.ptx:3:13: expected a variable name"},
    {".version 8.0\n.target sm_90\n.global x;", "fuzz.ptx:3:9: variable without a type that has a size"},
    {".version 8.0\n.target sm_90\n.shared .b32 x = 1;",
     "fuzz.ptx:3:16: only .global and .const variables may have an initialiser"},
    {".version 8.0\n.target sm_90\n.global .b8 x[0x7fffffff][0x7fffffff];",
     "fuzz.ptx:3:9: variable x has more than 2^31 bytes"},
    {".version 8.0\n.target sm_90\n.global .align 0 .b8 x;",
     "fuzz.ptx:3:16: the alignment is not between 1 and 65536"},
    {".version 8.0\n.target sm_90\n.frobnicate x;", "fuzz.ptx:3:1: unknown directive .frobnicate"},
    {".version 8.0\n.target sm_90\n.file \"a.cu\"", "fuzz.ptx:3:7: expected a number"},
    {".version 8.0\n.target sm_90\n.file 1 \"a.cu", "fuzz.ptx:3:14: string is not closed"},
    {".version 8.0\n.target sm_90\n.section .debug { {",
     "fuzz.ptx:3:20: expected '}', got the end of the text"},
    {".version 8.0\n.target sm_90\n\xff", "fuzz.ptx:3:1: expected a directive"},
};

constexpr Malformed bodies[] = {
    {"mov.u32 %r1, %r77;", "fuzz.ptx:8:14: register %r77 is not declared"},
    {"mov.u32 %r1, %q;", "fuzz.ptx:8:14: register %q is not declared"},
    {"bra NOWHERE;", "fuzz.ptx:8:1: unknown name NOWHERE"},
    {"ret", "fuzz.ptx:9:1: expected an operand"},
    {"add.s32 %r1, %r2 %r3;", "fuzz.ptx:8:18: expected ',', got '%'"},
    {"add.s32 %r1, , %r3;", "fuzz.ptx:8:14: expected an operand"},
    {"add.s32 %r1, %r2;", "fuzz.ptx:8:1: add.s32 in k: takes 3 operands, got 2"},
    {"add.s32 %r1, %r2, %d3;",
     "fuzz.ptx:8:1: add.s32 in k: operand %d3 is declared .b64, the instruction reads .s32"},
    {"add.s64 %r1, %d2, %d3;", "fuzz.ptx:8:1: add.s64 in k: destination %r1 does not fit .s64"},
    {"add.q32 %r1, %r2, %r3;", "fuzz.ptx:8:1: add.q32 in k: the machine does not implement this form of add"},
    {"frob.s32 %r1, %r2;", "fuzz.ptx:8:1: frob.s32 in k: PTX has no instruction frob"},
    {"tcgen05.wait::ld.sync.aligned;",
     "fuzz.ptx:8:1: tcgen05.wait::ld.sync.aligned in k: the machine does not implement tcgen05"},
    {"cp.async.bulk.shared::cta.global.bulk_group [%d1], 16;",
     "fuzz.ptx:8:1: cp.async.bulk.shared::cta.global.bulk_group in k: the machine does not implement this "
     "form of cp"},
    {"@%r1 ret;", "fuzz.ptx:8:1: ret in k: the guard is no predicate"},
    {"@%p9 ret;", "fuzz.ptx:8:2: unknown predicate %p9"},
    {"@ret;", "fuzz.ptx:8:2: unknown predicate ret"},
    {"mov.b32 %r1, 0f12;", "fuzz.ptx:8:14: float literal 0f12 has a wrong number of digits"},
    {"mov.b32 %r1, 12q;", "fuzz.ptx:8:14: malformed number 12q"},
    {"mov.b32 %r1, 0x;", "fuzz.ptx:8:14: malformed number 0x"},
    {"mov.b32 %r1, 09;", "fuzz.ptx:8:14: malformed number 09"},
    {"mov.b32 %r1, -;", "fuzz.ptx:8:15: expected a number"},
    {"ld.global.b32 %r1, %d1;", "fuzz.ptx:8:1: ld.global.b32 in k: expected an address in brackets"},
    {"ld.global.b32 %r1, [nosuch];", "fuzz.ptx:8:21: unknown name nosuch in an address"},
    {"ld.global.b32 %r1, [%d1+x];", "fuzz.ptx:8:24: expected a constant offset"},
    {"ld.global.b32 %r1, [%d1;", "fuzz.ptx:8:24: expected ']', got ';'"},
    {"ld.global.b32 %r1, [%tid.x];",
     "fuzz.ptx:8:21: special register %tid.x in an address: move it to a register first"},
    {"ld.global.v2.b32 {%r1, %r2, %r3}, [%d1];",
     "fuzz.ptx:8:1: ld.global.v2.b32 in k: has a vector of a wrong length"},
    {"ld.global.b64 %r1, [%d1];",
     "fuzz.ptx:8:1: ld.global.b64 in k: a register is narrower than the element"},
    {"L: L: ret;", "fuzz.ptx:8:4: label L is defined twice"},
    {".reg .b32 %r3;", "fuzz.ptx:8:11: register %r3 is declared twice"},
    {".reg .v2 .b32 %v;",
     "fuzz.ptx:8:6: register declaration without a known type (vectors of registers are not supported)"},
    {".reg .b32 %x<9999999999>;", "fuzz.ptx:8:14: the number of registers is not between 0 and 1000000"},
    {".reg .b32 5;", "fuzz.ptx:8:11: expected a register name"},
    {".global .b32 x;",
     "fuzz.ptx:8:1: a .global variable inside a function is not supported: declare it outside"},
    {".local .b8 big[600000];",
     "fuzz.ptx: entry k needs 600000 bytes of local memory per thread; at most 524288 are possible"},
    {".shared .b8 s[4]; .shared .b8 s[4];", "fuzz.ptx:8:27: variable s is declared twice"},
    {"call nobody;", "fuzz.ptx:8:1: unknown name nobody"},
    {"call k;", "fuzz.ptx:8:1: call in k: k is an entry, not a function"},
    {"{ .param .b64 q; call (q), f, (q); }", "fuzz.ptx:8:18: call in k: q has 8 bytes, a of f has 4"},
    {"{ .param .b32 q; call (q), f; }", "fuzz.ptx:8:18: call in k: wrong number of arguments for f"},
    {"brx.idx %r1, L; L: ret;", "fuzz.ptx:8:1: brx.idx in k: expected a .branchtargets list"},
    {"t: .branchtargets t;\n brx.idx %r1, t;", "fuzz.ptx:9:2: unknown name t"},
    {"mov.u32 %r1, %tid;", "fuzz.ptx:8:14: %tid needs one of its components .x, .y, .z"},
    {"mov.u32 %r1, %laneid.x;", "fuzz.ptx:8:21: expected ',', got '.'"},
    {"setp.lt.s32 %r1, %r2, %r3;", "fuzz.ptx:8:1: setp.lt.s32 in k: destination %r1 does not fit .pred"},
    {"selp.b32 %r1, %r2, %r3, %r4;",
     "fuzz.ptx:8:1: selp.b32 in k: operand %r4 is declared .b32, the instruction reads .pred"},
    {"shl.b32 %r1, %r2, %d3;",
     "fuzz.ptx:8:1: shl.b32 in k: operand %d3 is declared .b64, the instruction reads .u32"},
    {"cvt.u32 %r1, %r2;", "fuzz.ptx:8:1: cvt.u32 in k: the machine does not implement this form of cvt"},
    {"st.global.b32 [%d1], {%r1, %r2};", "fuzz.ptx:8:1: st.global.b32 in k: has a vector of a wrong length"},
    {"mov.b64 %d1, {%r1, %r2, %r3};", "fuzz.ptx:8:1: mov.b64 in k: has a vector of a wrong length"},
    {"bar.sync;", "fuzz.ptx:8:1: bar.sync in k: takes a barrier and perhaps a number of threads"},
    {"shfl.sync.up.b32 %r1, %r2, 1, 0;", "fuzz.ptx:8:1: shfl.sync.up.b32 in k: takes 5 operands, got 4"},
    {".loc 1;", "fuzz.ptx:8:7: expected a number"},
    {".loc 1 2 3, frob;", "fuzz.ptx:8:17: unknown attribute of .loc: frob"},
    {"{{{{{{;", "fuzz.ptx:10:1: function k is not closed"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2}, {%r1,%r2,%r3,%r4}, {%r1,%r2}, "
     "{%f1,%f2,%f3,%f4};",
     "fuzz.ptx:8:1: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 in k: has a fragment of 2 "
     "registers; the shape needs 4"},
    {"cp.async.wait_group %r1;", "fuzz.ptx:8:1: cp.async.wait_group in k: expected a constant operand"},
    {"mov.u32 %r1, !%p1;", "fuzz.ptx:8:1: mov.u32 in k: a negated operand is not allowed here"},
    {"mov.u32 _, ((((((((((1))))))))));", "fuzz.ptx:8:21: operands are nested too deep"},
    {"add.s32 %r1, %r2, %r3; }\n junk", "fuzz.ptx:9:2: expected a directive"},
};

/// The first line of what the front end says.
std::string said(const std::string& text) {
  const std::string all = front_end(text);
  return all.substr(0, all.find('\n'));
}

TEST(Malformed, ModulesAreRefusedWithLineAndColumn) {
  for (const Malformed& row : modules) EXPECT_EQ(said(row.text), row.message) << row.text;
}

TEST(Malformed, BodiesAreRefusedWithLineAndColumn) {
  for (const Malformed& row : bodies) EXPECT_EQ(said(with_body(row.text)), row.message) << row.text;
  EXPECT_EQ(said(with_body("ret;")), "");
}

}  // namespace malformed_test
}  // namespace assay::ptx
