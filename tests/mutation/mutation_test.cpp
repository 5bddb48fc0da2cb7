// Mutation operators, and texts with one instruction changed.
#include "src/base/mutation/mutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "src/base/numerics/bad_input.h"

namespace assay::ptx {
namespace {

/// A module of one entry whose lines 8 and on are `body`.
MutableText program(const std::string& body) {
  const std::string text =
      ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry f(.param .u64 a, .param .u32 n)\n{\n"
      ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>;\n.shared "
      ".align 16 .b8 s[64];\n" +
      body + "\n$L_end:\nret;\n}\n";
  return MutableText(std::make_shared<const std::string>(text), "test.ptx");
}

/// What an operator makes of the first instruction of `body`, blanks as written.
std::vector<std::string> made_by(const std::string& change, const std::string& body) {
  const MutableText text = program(body);
  std::vector<std::string> made;
  for (const Mutation& m : text.mutations(0))
    if (m.instruction == 0 && m.change->name == change) made.push_back(text.replacement(m));
  return made;
}

TEST(MutationOperators, ChangeWhatTheirRowsSay) {
  using Made = std::vector<std::string>;
  const struct {
    const char *change, *from;
    Made to;
  } rows[] = {
      {"drop-guard", "@%p1 bra $L_end;", {"bra $L_end;"}},
      {"drop-guard", "bra $L_end;", {}},
      {"invert-guard", "@%p1 bra $L_end;", {"@!%p1 bra $L_end;"}},
      {"invert-guard", "@!%p1 bra $L_end;", {"@%p1 bra $L_end;"}},
      {"drop-branch", "@%p1 bra $L_end;", {""}},
      {"drop-branch", "bra $L_end;", {}},
      {"drop-store", "st.global.f32 [%rd1+4], %f1;", {""}},
      {"drop-store", "ld.global.f32 %f1, [%rd1];", {}},
      {"drop-barrier", "bar.sync 0;", {""}},
      {"drop-copy", "cp.async.cg.shared.global [%r1], [%rd1], 16, %r2;", {""}},
      {"drop-wait", "cp.async.wait_group 1;", {""}},
      {"drop-commit", "cp.async.commit_group;", {""}},
      {"wait-for-fewer", "cp.async.wait_group 1;", {"cp.async.wait_group 2;"}},
      {"shift-constant", "add.s32 %r1, %r2, -1;", {"add.s32 %r1, %r2, 0;", "add.s32 %r1, %r2, -2;"}},
      {"shift-constant", "add.s32 %r1, %r2, %r3;", {}},
      {"shift-address",
       "ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r1+16];",
       {"ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r1+32];",
        "ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r1+0];"}},
      {"shift-address",
       "st.global.u16 [%rd1], %rs1;",
       {"st.global.u16 [%rd1+2], %rs1;", "st.global.u16 [%rd1+-2], %rs1;"}},
      {"shift-address", "ld.param.u32 %r1, [n];", {}},
      {"change-literal", "mul.rn.f32 %f1, %f2, 0f3FB8AA3B;", {"mul.rn.f32 %f1, %f2, 0f4038AA3B;"}},
      {"change-literal", "mov.f32 %f1, 0f00000000;", {"mov.f32 %f1, 0f3F800000;"}},
      {"swap-sources", "sub.s32 %r1, %r2, %r3;", {"sub.s32 %r1, %r3, %r2;"}},
      {"swap-sources", "add.s32 %r1, %r2, %r3;", {}},
      {"swap-sources", "setp.eq.s32 %p1, %r2, %r3;", {}},
      {"swap-sources", "fma.rn.f32 %f1, %f2, %f3, %f4;", {"fma.rn.f32 %f1, %f2, %f4, %f3;"}},
      {"swap-addresses",
       "ld.global.f32 %f1, [%rd1+8]; ld.global.f32 %f2, [%rd2];",
       {"ld.global.f32 %f1, [%rd2+8];"}},
      {"swap-addresses", "ld.global.f32 %f1, [%rd1+8]; ld.shared.f32 %f2, [%r2];", {}},
      {"swap-elements", "mov.b32 %r1, {%rs1, %rs2};", {"mov.b32 %r1, {%rs2, %rs1};"}},
      {"swap-elements", "mov.b32 %r1, {%rs1, %rs1};", {}},
      {"fma-to-mul", "fma.rn.f32 %f1, %f2, %f3, %f4;", {"mul.rn.f32 %f1, %f2, %f3;"}},
      {"fma-to-add", "fma.rn.f32 %f1, %f2, %f3, %f4;", {"add.rn.f32 %f1, %f2, %f4;"}},
      {"fma-to-add", "mad.lo.s32 %r1, %r2, %r3, %r4;", {"add.s32 %r1, %r2, %r4;"}},
      {"add-to-sub", "@%p1 add.rn.f32 %f1, %f2, %f3;", {"@%p1 sub.rn.f32 %f1, %f2, %f3;"}},
      {"max-to-min", "max.s32 %r1, %r2, 0;", {"min.s32 %r1, %r2, 0;"}},
      {"and-to-or", "and.pred %p1, %p2, %p3;", {"or.pred %p1, %p2, %p3;"}},
      {"shift-direction", "shr.s32 %r1, %r2, 2;", {"shl.b32 %r1, %r2, 2;"}},
      {"compare-edge", "setp.lt.s32 %p1, %r2, %r3;", {"setp.le.s32 %p1, %r2, %r3;"}},
      {"compare-edge", "setp.eq.s32 %p1, %r2, %r3;", {}},
      {"compare-opposite", "setp.lt.s32 %p1, %r2, %r3;", {"setp.ge.s32 %p1, %r2, %r3;"}},
      {"fix-predicate", "setp.lt.s32 %p1, %r2, %r3;", {"mov.pred %p1, 1;", "mov.pred %p1, 0;"}},
      {"fix-choice",
       "selp.f32 %f1, %f2, 0f00000000, %p1;",
       {"mov.f32 %f1, %f2;", "mov.f32 %f1, 0f00000000;"}},
      {"drop-sign", "neg.f32 %f1, %f2;", {"mov.f32 %f1, %f2;"}},
      {"drop-function", "ex2.approx.ftz.f32 %f1, %f2;", {"mov.f32 %f1, %f2;"}},
      {"change-rounding",
       "add.rn.f32 %f1, %f2, %f3;",
       {"add.rz.f32 %f1, %f2, %f3;", "add.rp.f32 %f1, %f2, %f3;"}},
      {"change-rounding", "add.s32 %r1, %r2, %r3;", {}},
      {"round-to-bf16", "add.s32 %r1, %r2, %r3;", {}},
      {"zero-result", "ld.global.u16 %rs1, [%rd1];", {"mov.b16 %rs1, 0;"}},
      {"zero-result", "mov.f32 %f1, 0f00000000;", {}},
      {"zero-result", "st.global.f32 [%rd1], %f1;", {}},
  };
  for (const auto& row : rows)
    EXPECT_EQ(made_by(row.change, row.from), row.to) << row.change << ": " << row.from;
}

TEST(MutationOperators, AllAppearInTheRowsAboveOrHere) {
  EXPECT_EQ(made_by("round-to-bf16", "@%p1 add.rn.f32 %f1, %f2, %f3;"),
            (std::vector<std::string>{"@%p1 add.rn.f32 %f1, %f2, %f3; { .reg .b16 %assay_low, %assay_high; "
                                      "@%p1 cvt.rn.bf16.f32 %assay_high, %f1; mov.b16 %assay_low, 0; "
                                      "@%p1 mov.b32 %f1, {%assay_low, %assay_high}; }"}));
  std::set<std::string_view> names;
  for (const MutationOperator& row : mutation_operators()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.summary.empty() || row.opcodes.empty()) << row.name;
  }
}

TEST(MutableText, EveryMutantParsesAndOnlyItsInstructionDiffers) {
  const MutableText text = program(
      "ld.param.u64 %rd1, [a];\nsetp.lt.s32 %p1, %r2, 4;\n@%p1 bra $L_end;\nfma.rn.f32\n  %f1, %f2,\n  %f3, "
      "%f4;\n"
      "{ st.global.v2.f32 [%rd1], {%f1, %f2}; bar.sync 0; }");
  const size_t whole = text.module().functions[0].body.size();
  const std::vector<Mutation> all = text.mutations(0);
  EXPECT_GT(all.size(), 20u);
  for (const Mutation& m : all) {
    SCOPED_TRACE(text.name(m));
    const Module changed = parse(text.with(m), "test.ptx");
    const auto &before = text.module().functions[0].body, &after = changed.functions[0].body;
    const std::string replacement = text.replacement(m);
    const auto added = static_cast<size_t>(std::count(replacement.begin(), replacement.end(), ';')) -
                       (m.change->name == "round-to-bf16" ? 1 : 0);
    EXPECT_EQ(after.size(), whole - 1 + added);
    for (size_t i = 0; i < static_cast<size_t>(m.instruction); ++i)
      EXPECT_EQ(after[i].opcode, before[i].opcode);
    EXPECT_EQ(after.back().ptx_line, before.back().ptx_line);
    const Mutation again = text.named(text.name(m));
    EXPECT_EQ(again.instruction, m.instruction);
    EXPECT_EQ(again.change, m.change);
    EXPECT_EQ(again.way, m.way);
  }
}

TEST(MutableText, SaysWhatItDoesNotKnow) {
  const MutableText text = program("add.s32 %r1, %r2, 1;");
  const std::pair<const char*, const char*> rows[] = {
      {"fma-to-mul", "LINE+OPERATOR"},
      {"3+fma-to-mul", "line 3 holds no instruction"},
      {"8+fma-to-mul", "there are: 8+shift-constant, 8+shift-constant.2"}};
  for (const auto& [name, message] : rows) {
    try {
      text.named(name);
      ADD_FAILURE() << name;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace assay::ptx
