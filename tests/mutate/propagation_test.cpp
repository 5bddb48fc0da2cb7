// Where a changed result stops making a difference, and what keeps a run from an instruction.
#include "src/campaign/mutate/propagation.h"

#include <gtest/gtest.h>

#include "tests/mutate/subject.h"

namespace assay {
namespace {

/// f(a, n): `body` between loading a's word of the thread into %r1 and its store from %r9, on one warp.
struct SmallRun {
  std::shared_ptr<const std::string> text;
  Program plan;
  TensorMap inputs;

  explicit SmallRun(const std::string& body) {
    text = std::make_shared<const std::string>(
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry f(.param .u64 a, .param .u64 b)\n{\n"
        ".reg .pred %p<9>; .reg .b32 %r<19>; .reg .f32 %f<9>; .reg .b64 %rd<9>;\n"
        "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nmov.u32 %r10, %tid.x;\nmul.wide.u32 %rd3, %r10, "
        "4;\n"
        "add.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\nld.global.u32 %r1, [%rd4];\n" +
        body + "\n$L_store:\nst.global.u32 [%rd5], %r9;\n$L_end:\nret;\n}\n");
    plan.name = "small";
    plan.modules.push_back({"m", "small.ptx", text});
    plan.outputs.push_back({"out", Dtype::i32, {{"T", 32}}});
    plan.launches.push_back(
        {"m", "f", {1, 1, 1}, {32, 1, 1}, 0, {PointerArgument{"in", 0}, PointerArgument{"out", 0}}});
    Tensor words("in", Dtype::i32, {{"T", 32}});
    for (int64_t i = 0; i < 32; ++i) words.set_bits(i, static_cast<uint64_t>(i + 1));
    inputs.emplace("in", std::move(words));
  }
  Program with(const ptx::MutableText& program, const ptx::Mutation& m) const {
    Program changed = plan;
    changed.modules[0].ptx = std::make_shared<const std::string>(program.with(m));
    return changed;
  }
};

TEST(Propagation, ADifferenceEndsWhereWhatIsMadeOfItIsTheSame) {
  const struct {
    const char *body, *changed, *change;  // the instruction that starts so
    std::vector<const char*> ends;
  } rows[] = {
      {"add.s32 %r2, %r1, 7;\nsetp.lt.u32 %p1, %r1, 100;\nselp.b32 %r9, %r1, %r2, %p1;",
       "add.s32",
       "add-to-sub",
       {"selp.b32"}},
      {"add.s32 %r2, %r1, 7;\nsetp.lt.u32 %p1, %r1, 100;\nselp.b32 %r9, %r2, %r1, %p1;",
       "add.s32",
       "add-to-sub",
       {"st.global.u32"}},
      {"add.s32 %r2, %r1, 64;\nmul.lo.s32 %r3, %r2, 2;\nsetp.lt.u32 %p1, %r3, 2000;\nselp.b32 %r9, 1, 2, "
       "%p1;",
       "add.s32",
       "zero-result",
       {"setp.lt.u32"}},
      {"add.s32 %r2, %r1, 64;\nand.b32 %r3, %r2, 1;\nmin.s32 %r4, %r2, 3;\nadd.s32 %r9, %r3, %r4;",
       "add.s32",
       "shift-constant",
       {"min.s32", "st.global.u32"}},
  };
  int tried = 0;
  for (const auto& row : rows) {
    const SmallRun small(row.body);
    const ptx::MutableText program(small.text, "small.ptx");
    const ptx::Function& f = program.module().functions[0];
    for (const ptx::Mutation& m : program.mutations(0)) {
      const ptx::Instruction& in = f.body[static_cast<size_t>(m.instruction)];
      if (m.change->name != row.change || !in.opcode.starts_with(row.changed) || m.way != 0) continue;
      if (in.ptx_line <= 13) continue;  // the loads' own
      std::vector<std::string> ends;
      for (const int32_t at :
           difference_ends(small.plan, small.with(program, m), small.inputs, one_thread(), "m", f, m))
        ends.push_back(f.body[static_cast<size_t>(at)].opcode);
      EXPECT_EQ(ends, (std::vector<std::string>{row.ends.begin(), row.ends.end()})) << row.body;
      ++tried;
      break;
    }
  }
  EXPECT_EQ(tried, std::ssize(rows));
}

TEST(Propagation, AClosedBranchIsTheNearestOnEachWay) {
  const SmallRun small(
      "mov.u32 %r9, 0;\nsetp.gt.u32 %p1, %r1, 5;\n@%p1 bra $L_a;\nadd.s32 %r9, %r9, 1;\n$L_a:\n"
      "setp.gt.u32 %p2, %r1, 99;\n@!%p2 bra $L_store;\nadd.s32 %r9, %r9, 2;\nadd.s32 %r9, %r9, 3;");
  const ptx::MutableText program(small.text, "small.ptx");
  const ptx::Function& f = program.module().functions[0];
  std::vector<bool> came_to(f.body.size(), true);
  int32_t last = -1, branch = -1;
  for (size_t i = 0; i < f.body.size(); ++i) {
    if (f.body[i].opcode == "bra" && f.body[i].predicate_negated) branch = static_cast<int32_t>(i);
    if (branch >= 0 && f.body[i].opcode == "add.s32") came_to[i] = false, last = static_cast<int32_t>(i);
  }
  ASSERT_GE(last, 0);
  EXPECT_EQ(closed_branches(f, came_to, last), (std::vector<int32_t>{branch}));
}

TEST(Propagation, EveryOpcodeHasAReason) {
  ptx::Instruction in;
  const auto of = [&](const char* opcode) { in.opcode = opcode, in.form = ptx::form_of(opcode); };
  of("selp.b32");
  EXPECT_EQ(why_it_ends(in), "the other one is chosen");
  of("mul.wide.s32");
  EXPECT_EQ(why_it_ends(in), "the number is the same");
  of("mul.rn.f32");
  EXPECT_EQ(why_it_ends(in), "it is rounded away, or times zero");
  of("unheard.of");
  EXPECT_EQ(why_it_ends(in), "not where it differs");
}

}  // namespace
}  // namespace assay
