// The parser: what compilers write, and where it says that something is wrong.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/program.h"

namespace assay::ptx {
namespace {

const std::string head = ".version 8.0\n.target sm_80, debug\n.address_size 64\n";

Module with_body(const std::string& body) {
  return parse(head +
                   ".visible .entry k(.param .u64 p, .param .align 4 .b8 s[12])\n{\n.reg .pred %p<3>; .reg "
                   ".b32 %r<9>; .reg .b64 %rd<5>; .reg .f32 %f<5>;\n" +
                   body + "\n}\n",
               "t.ptx");
}

TEST(Parser, ReadsModulesWithEverythingCompilersWrite) {
  const Module module = parse(
      "// a comment\n.version 9.0\n.target sm_90a\n.address_size 64\n"
      ".extern .shared .align 16 .b8 dynamic[];\n.visible .global .align 8 .v2 .f32 pair = {0f3F800000, "
      "2.0};\n"
      ".const .align 4 .b32 grid[2][2] = {{1, -2}, {3}};\n.global .attribute(.managed) .b32 managed_one;\n"
      ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
      ".weak .func nothing() { ret; }\n"
      ".visible .entry k(.param .u64 .ptr .global .align 16 x, .param .f32 y)\n.maxntid 128, 2, "
      "1\n.reqntid 128, 2\n.minnctapersm 2\n.pragma \"nounroll\";\n{\n"
      ".reg .b32 %r<3>;\n.loc 1 10 5\nmov.u32 %r1, %tid.x;\n"
      ".loc 2 20 7, function_name $L__info_string0, inlined_at 1 10 5\nmov.u32 %r2, 0x1F;\nret;\n}\n"
      ".file 1 \"a.cu\"\n.file 2 \"b.cuh\", 17, 4\n.section .debug_str\n{\n$L__info_string0:\n.b8 95, "
      "90\n}\n",
      "t.ptx");
  EXPECT_EQ(module.version, "9.0");
  EXPECT_EQ(module.target, "sm_90a");
  ASSERT_EQ(module.variables.size(), 4u);
  EXPECT_EQ(module.variables[0].bytes, 0);
  EXPECT_TRUE(module.variables[0].external);
  EXPECT_EQ(module.variables[1].bytes, 8);
  EXPECT_EQ(module.variables[1].initial, (std::vector<uint8_t>{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}));
  EXPECT_EQ(module.variables[2].initial.size(), 16u);
  EXPECT_EQ(module.variables[2].initial[4], 0xfe);
  ASSERT_EQ(module.functions.size(), 3u);
  EXPECT_FALSE(module.functions[0].defined);
  const Function& kernel = module.functions[2];
  EXPECT_EQ(kernel.max_threads, 256);
  EXPECT_EQ(kernel.required_block, (std::array<int32_t, 3>{128, 2, 1}));
  EXPECT_EQ(kernel.parameters[1].offset, 8);
  ASSERT_EQ(kernel.body.size(), 3u);
  EXPECT_EQ(kernel.body[0].ptx_line, 19);
  const Line& inlined = module.lines[static_cast<size_t>(kernel.body[1].line)];
  EXPECT_EQ(module.files[static_cast<size_t>(inlined.file)], "b.cuh");
  const Line& site = module.lines[static_cast<size_t>(inlined.inlined_at)];
  EXPECT_EQ(module.files[static_cast<size_t>(site.file)], "a.cu");
  EXPECT_EQ(site.line, 10);
}

TEST(Parser, FindsCallSitesThatOnlyACommentNames) {
  const Module module = parse(
      ".version 8.7\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<3>;\n"
      ".loc 2 263 15 // standard.py:263:15 @[ standard.py:343:60 @[ kernel.py:47:39 ] ]\nmov.u32 %r1, 1;\n"
      ".loc 2 264 15 // standard.py:264:15 @[ standard.py:343:60 @[ kernel.py:47:39 ] ]\nmov.u32 %r1, 1;\n"
      ".loc 2 9 1 // standard.py:9:1 @[ nothing ]\nmov.u32 %r1, 1;\n.loc 1 9 1 // a comment\nmov.u32 %r1, "
      "1;\nret;\n}\n"
      ".file 1 \"/somewhere/kernel.py\"\n.file 2 \"/elsewhere/standard.py\"\n",
      "t.ptx");
  const auto& body = module.functions.at(0).body;
  const auto line = [&](int32_t index) { return module.lines.at(static_cast<size_t>(index)); };
  const auto file = [&](const Line& of) { return module.files.at(static_cast<size_t>(of.file)); };
  const Line first = line(body[0].line), between = line(first.inlined_at), outer = line(between.inlined_at);
  EXPECT_EQ(first.line, 263);
  EXPECT_EQ(file(between), "/elsewhere/standard.py");
  EXPECT_EQ(between.line, 343);
  EXPECT_EQ(between.column, 60);
  EXPECT_EQ(file(outer), "/somewhere/kernel.py");
  EXPECT_EQ(outer.line, 47);
  EXPECT_EQ(outer.inlined_at, -1);
  EXPECT_EQ(line(body[1].line).inlined_at, first.inlined_at);
  EXPECT_EQ(line(body[2].line).inlined_at, -1);
  EXPECT_EQ(line(body[3].line).inlined_at, -1);
}

TEST(Parser, LinesOfInlineAssemblyAreTheStatementsThatWroteIt) {
  const Module module = parse(
      ".version 8.7\n.target sm_80\n.address_size 64\n.file 1 \"a.py\"\n.visible .entry k()\n{\n.reg .b32 "
      "%r<3>;\n"
      ".loc 1 15 24 // a.py:15:24\n// begin inline asm\n.loc 1 15 24 // a.py:15:24\nmov.u32 %r1, 0x0;\n"
      ".loc 1 16 24 // a.py:16:24\nmov.u32 %r2, 0x1;\n\n// end inline asm\n.loc 1 17 4\nmov.u32 %r1, 1;\n"
      "// begin inline asm\n.loc 1 18 4\nmov.u32 %r1, 1;\n// end inline asm\nret;\n}\n",
      "t.ptx");
  std::vector<int> lines;
  for (const Instruction& in : module.functions.at(0).body)
    lines.push_back(module.lines.at(static_cast<size_t>(in.line)).line);
  EXPECT_EQ(lines, (std::vector<int>{15, 15, 17, 17, 17}));
}

TEST(Parser, ReadsEveryKindOfOperand) {
  const Module module = with_body(
      "@!%p1 ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f1, %f2, _, %f4}, [%rd1+-16];\n"
      "setp.lt.and.s32 %p1|%p2, %r1, -5, !%p0;\n"
      "mov.f32 %f1, 0fBF800000;\nld.param.u64 %rd1, [p];\nld.param.b32 %r1, [s+8];\n"
      "L: bra.uni L;\nts: .branchtargets L, M;\nM: brx.idx %r1, ts;\n"
      "mov.b64 %rd1, {%r1, %r2};\nmov.u32 %r1, %ctaid.y;\nst.shared.b32 [4], 0b101;\nmov.u64 %rd2, "
      "0xFFFFFFFFFFFFFFFFU;\n");
  const std::vector<Instruction>& body = module.functions[0].body;
  EXPECT_EQ(body[0].opcode, "ld.global.nc.L1::no_allocate.L2::128B.v4.f32");
  EXPECT_TRUE(body[0].predicate_negated);
  EXPECT_EQ(body[0].operands[0].elements[2].kind, Operand::Kind::sink);
  EXPECT_EQ(body[0].operands[1].offset, -16);
  EXPECT_EQ(body[1].operands[0].kind, Operand::Kind::pair);
  EXPECT_EQ(static_cast<int64_t>(body[1].operands[2].bits), -5);
  EXPECT_TRUE(body[1].operands[3].negated);
  EXPECT_EQ(body[2].operands[1].bits, 0xbf800000u);
  EXPECT_EQ(body[2].operands[1].literal_bytes, 4);
  EXPECT_EQ(body[3].operands[1].parameter, 0);
  EXPECT_EQ(body[4].operands[1].offset, 8);
  EXPECT_EQ(body[5].operands[0].target, 5);
  EXPECT_EQ(body[6].operands[1].elements[1].target, 6);
  EXPECT_EQ(body[8].operands[1].name, "%ctaid.y");
  EXPECT_EQ(body[9].operands[0].offset, 4);
  EXPECT_EQ(body[9].operands[1].bits, 5u);
  EXPECT_EQ(body[10].operands[1].bits, ~uint64_t{0});
}

TEST(Parser, KeepsNamesOfScopesApart) {
  const Module module =
      with_body("{ .reg .b32 %q; L: mov.b32 %q, 1; bra L; }\n{ .reg .f32 %q; L: mov.f32 %q, %f1; bra L; }\n");
  const Function& kernel = module.functions[0];
  EXPECT_NE(kernel.body[0].operands[0].reg, kernel.body[2].operands[0].reg);
  EXPECT_EQ(kernel.body[1].operands[0].target, 0);
  EXPECT_EQ(kernel.body[3].operands[0].target, 2);
}

struct Fault {
  std::string text, message;
};

/// By type: which range each name is a member of.
TEST(Parser, ANameIsANumberOfARangeWhereverTheRangesNameEnds) {
  const Module module = parse(
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n"
      ".reg .b32 %r<20>; .reg .b64 %rd<20>;\n"
      "mov.b32 %r12, %r3; mov.b64 %rd12, %rd3;\n"
      ".reg .b16 %q1<5>;\nmov.b16 %q12, %q14; mov.b32 %r12, %r13; ret;\n}\n",
      "t.ptx");
  const Function& k = module.functions.at(0);
  const Type expected[] = {Type::b32, Type::b64, Type::b16, Type::b32};
  for (size_t i = 0; i < std::size(expected); ++i)
    for (const Operand& operand : k.body.at(i).operands)
      EXPECT_EQ(k.registers.at(static_cast<size_t>(operand.reg)).type, expected[i]) << i;
  EXPECT_EQ(k.body[3].operands[0].reg, k.body[0].operands[0].reg);
  EXPECT_NE(k.body[3].operands[1].reg, k.body[0].operands[1].reg);
}

TEST(Parser, SaysWhereTheTextIsWrong) {
  const Fault faults[] = {
      {"", "t.ptx:1:1: no .version directive: this is not PTX text"},
      {"hello", "t.ptx:1:1: expected a directive"},
      {head + ".visible .entry k(\n", "t.ptx:5:1: expected .param"},
      {head + ".entry k()\n{\n mov.u32 %r1, 1;\n}\n", "t.ptx:6:10: register %r1 is not declared"},
      {head + ".entry k()\n{\n bra NOWHERE;\n}\n", "t.ptx:6:2: unknown name NOWHERE"},
      {head + ".entry k()\n{\n ret\n}\n", "t.ptx:7:1: expected an operand"},
      {head + ".entry k()\n{\n ret;\n", "t.ptx:7:1: function k is not closed"},
      {head + ".entry k()\n{\n .reg .b32 %r; mov.b32 %r, 0f12;\n}\n",
       "float literal 0f12 has a wrong number of digits"},
      {head + ".entry k()\n{\n .reg .b32 %r; mov.b32 %r, 12q;\n}\n", "malformed number 12q"},
      {head + ".entry k()\n{\n .rag .b32 %r;\n}\n", "t.ptx:6:2: unknown directive .rag"},
      {head + "/* open\n", "comment is not closed"},
      {head + ".entry k() { ret; }\n.entry k() { ret; }\n", "function k is defined twice"},
      {head + ".address_size 32\n", "only .address_size 64 is supported"},
      {head + ".global .b32 x = other;\n", "is not a number"},
      {head + ".entry k()\n{\n .reg .b32 %r; ld.global.b32 %r, [nosuch];\n}\n",
       "unknown name nosuch in an address"},
      {head + ".entry k()\n{\n @%p9 ret;\n}\n", "unknown predicate %p9"},
  };
  for (const Fault& fault : faults) {
    try {
      parse(fault.text, "t.ptx");
      ADD_FAILURE() << "accepted: " << fault.text;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(fault.message), std::string::npos)
          << error.what() << " for " << fault.message;
    }
  }
}

TEST(Parser, AnOpcodeMayHaveBlanksBeforeItsDots) {
  const Module module =
      parse(head + ".visible .entry k()\n{\n.reg .b32 %r<3>;\nxor  .b32 %r1, %r2, 1;\n}\n", "t.ptx");
  EXPECT_EQ(module.functions[0].body[0].opcode, "xor.b32");
  EXPECT_EQ(module.functions[0].body[0].operands.size(), 3u);
}

TEST(Parser, ABodyThatCannotBeReadRefusesItsFunctionAlone) {
  const std::string text =
      head + ".global .texref tex;\n.visible .entry bad()\n{\n{ strange construct; }\nret;\n}\n" +
      ".visible .entry good()\n{\n.reg .b32 %r;\nmov.u32 %r, WARP_SZ;\nret;\n}\n";
  EXPECT_THROW(parse(text, "t.ptx"), BadInput);
  const Module module = parse_functions(text, "t.ptx");
  ASSERT_EQ(module.functions.size(), 2u);
  const Function &bad = module.functions[0], &good = module.functions[1];
  EXPECT_TRUE(bad.refused.starts_with("t.ptx:") && bad.body.empty()) << bad.refused;
  EXPECT_EQ(good.refused, "");
  ASSERT_EQ(good.body.size(), 2u);
  EXPECT_EQ(good.body[0].operands[1].bits, 32u);
  const auto before = text.begin() + static_cast<ptrdiff_t>(text.find("mov.u32"));
  EXPECT_EQ(good.body[0].ptx_line, std::count(text.begin(), before, '\n') + 1);
  EXPECT_THROW(parse_functions(text.substr(0, text.rfind("ret")), "t.ptx"), BadInput) << "no end";
}

TEST(Parser, EveryTruncationOfAModuleIsAnErrorOrAModule) {
  const std::string whole = head +
                            ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<3>;\n{ .reg .pred %q; @%q bra "
                            "L; }\nL: ld.param.b32 %r1, [p+4];\nret;\n}\n";
  for (size_t length = 0; length < whole.size(); ++length) {
    try {
      parse(whole.substr(0, length), "t.ptx");
    } catch (const BadInput&) {
    }
  }
}

}  // namespace
}  // namespace assay::ptx
