// Runs in which an instruction takes or gives something else, on a program of a few instructions.
#include "src/base/vm/changed_run.h"

#include <gtest/gtest.h>

#include "src/base/vm/code.h"
#include "src/base/vm/opcode.h"

namespace assay::vm {
namespace {

/// Two launches: y[t] = x[t] + 2, and o[t] = y[t] * x[t] for t < 3, 7 beyond.
Program two_steps() {
  const std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry first(.param .u64 px, .param .u64 py) {
  .reg .f32 %x;
  .reg .b32 %t;
  .reg .b64 %ax, %ay, %step;
  ld.param.u64 %ax, [px];
  ld.param.u64 %ay, [py];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %step, %t, 4;
  add.s64 %ax, %ax, %step;
  add.s64 %ay, %ay, %step;
  ld.global.f32 %x, [%ax];
  add.rn.f32 %x, %x, 0f40000000;
  st.global.f32 [%ay], %x;
  ret;
}
.visible .entry second(.param .u64 px, .param .u64 py, .param .u64 po) {
  .reg .f32 %x, %y, %r;
  .reg .b32 %t;
  .reg .b64 %ax, %ay, %ao, %step;
  .reg .pred %p;
  ld.param.u64 %ax, [px];
  ld.param.u64 %ay, [py];
  ld.param.u64 %ao, [po];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %step, %t, 4;
  add.s64 %ax, %ax, %step;
  add.s64 %ay, %ay, %step;
  add.s64 %ao, %ao, %step;
  ld.global.f32 %x, [%ax];
  ld.global.f32 %y, [%ay];
  mov.f32 %r, 0f40E00000;
  setp.lt.u32 %p, %t, 3;
  @%p mul.rn.f32 %r, %y, %x;
  st.global.f32 [%ao], %r;
  ret;
}
)";
  Program program;
  program.name = "two steps";
  program.modules.push_back({"m", "steps.ptx", std::make_shared<const std::string>(text)});
  program.workspaces.push_back({"y", 16});
  program.outputs.push_back({"o", Dtype::fp32, {{"T", 4}}});
  program.launches.push_back(
      {"m", "first", {1, 1, 1}, {4, 1, 1}, 0, {PointerArgument{"x"}, PointerArgument{"y"}}});
  program.launches.push_back({"m",
                              "second",
                              {1, 1, 1},
                              {4, 1, 1},
                              0,
                              {PointerArgument{"x"}, PointerArgument{"y"}, PointerArgument{"o"}}});
  return program;
}

TensorMap two_step_inputs() {
  Tensor x("x", Dtype::fp32, {{"T", 4}});
  for (int64_t i = 0; i < 4; ++i) x.set(i, static_cast<double>(1 + i));
  return {{"x", x}};
}

size_t op_of(const Code& code, const std::string& opcode) {
  for (const Op& op : code.ops)
    if (opcode_of(code, op) == opcode) return code.index(op);
  ADD_FAILURE() << opcode;
  return 0;
}

/// o where one op of a launch is changed.
std::vector<double> changed(ChangedRuns& runs, size_t launch, const std::string& opcode, OpChange change) {
  change.op = op_of(runs.code(launch), opcode);
  const auto outputs = runs.run({{launch, {change}}});
  return outputs ? outputs->at("o") : std::vector<double>();
}

using Of = OpChange::Of;
using Values = std::vector<double>;
const Values kAsItIs{3, 8, 15, 7};

TEST(ChangedRun, ASourceIsTakenForSomethingElse) {
  ChangedRuns runs(two_steps(), two_step_inputs(), {});
  ASSERT_TRUE(runs.can_run());
  EXPECT_EQ(runs.unchanged().at("o"), kAsItIs);
  EXPECT_EQ(changed(runs, 1, "mul.rn.f32", {.source = 1, .instead = Instead::one}), (Values{3, 4, 5, 7}));
  EXPECT_EQ(changed(runs, 1, "mul.rn.f32", {.source = 0, .instead = Instead::negated}),
            (Values{-3, -8, -15, 7}));
  EXPECT_EQ(changed(runs, 1, "setp.lt.u32", {.source = 1, .instead = Instead::next}), (Values{3, 8, 15, 24}));
  EXPECT_EQ(changed(runs, 1, "setp.lt.u32", {.source = 1, .instead = Instead::previous}),
            (Values{3, 8, 7, 7}));
}

TEST(ChangedRun, AfterAChangeLiteralsAndRegistersAreAsTheyWere) {
  ChangedRuns runs(two_steps(), two_step_inputs(), {});
  changed(runs, 0, "add.rn.f32", {.source = 1, .instead = Instead::zero});
  EXPECT_EQ(changed(runs, 0, "add.rn.f32", {.source = 0, .instead = Instead::one}), (Values{3, 6, 9, 7}));
  EXPECT_EQ(changed(runs, 1, "mov.f32", {.source = 0, .instead = Instead::zero}), (Values{3, 8, 15, 0}));
  EXPECT_EQ(changed(runs, 1, "setp.lt.u32", {.of = Of::result, .instead = Instead::zero}),
            (Values{7, 7, 7, 7}));
}

TEST(ChangedRun, AnEarlierLaunchIsChangedForThoseAfterIt) {
  ChangedRuns runs(two_steps(), two_step_inputs(), {});
  EXPECT_EQ(changed(runs, 0, "add.rn.f32", {.source = 1, .instead = Instead::zero}), (Values{1, 4, 9, 7}));
}

TEST(ChangedRun, AGuardHoldsAlwaysNeverOrElsewhere) {
  ChangedRuns runs(two_steps(), two_step_inputs(), {});
  const size_t mul = op_of(runs.code(1), "mul.rn.f32");
  EXPECT_TRUE(runs.executed(1).held[mul] && runs.executed(1).failed[mul]);
  EXPECT_EQ(changed(runs, 1, "mul.rn.f32", {.of = Of::guard, .instead = Instead::one}),
            (Values{3, 8, 15, 24}));
  EXPECT_EQ(changed(runs, 1, "mul.rn.f32", {.of = Of::guard, .instead = Instead::zero}),
            (Values{7, 7, 7, 7}));
  EXPECT_EQ(changed(runs, 1, "mul.rn.f32", {.of = Of::guard, .instead = Instead::negated}),
            (Values{7, 7, 7, 24}));
}

TEST(ChangedRun, AnotherRegisterIsReadAndAnAddressMovesByWhatIsAccessed) {
  ChangedRuns runs(two_steps(), two_step_inputs(), {});
  const Code& code = runs.code(1);
  const Slot x = code.signatures[op_of(code, "mul.rn.f32")].reads[1].slot;
  EXPECT_EQ(changed(runs, 1, "mul.rn.f32", {.source = 0, .instead = Instead::another, .by = x}),
            (Values{1, 4, 9, 7}));
  EXPECT_EQ(changed(runs, 1, "st.global.f32", {.source = 0, .instead = Instead::next}), Values());
  EXPECT_EQ(changed(runs, 0, "ld.global.f32", {.source = 0, .instead = Instead::previous}), Values());
}

/// o[4 b + t] = 2 x[4 b + t] of block b.
Program in_two_blocks() {
  const std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry doubled(.param .u64 px, .param .u64 po) {
  .reg .f32 %x;
  .reg .b32 %t, %b;
  .reg .b64 %ax, %ao, %step;
  ld.param.u64 %ax, [px];
  ld.param.u64 %ao, [po];
  mov.u32 %t, %tid.x;
  mov.u32 %b, %ctaid.x;
  mad.lo.u32 %t, %b, 4, %t;
  mul.wide.u32 %step, %t, 4;
  add.s64 %ax, %ax, %step;
  add.s64 %ao, %ao, %step;
  ld.global.f32 %x, [%ax];
  mul.rn.f32 %x, %x, 0f40000000;
  st.global.f32 [%ao], %x;
  ret;
}
)";
  Program program;
  program.name = "in two blocks";
  program.modules.push_back({"m", "doubled.ptx", std::make_shared<const std::string>(text)});
  program.outputs.push_back({"o", Dtype::fp32, {{"T", 8}}});
  program.launches.push_back(
      {"m", "doubled", {2, 1, 1}, {4, 1, 1}, 0, {PointerArgument{"x"}, PointerArgument{"o"}}});
  return program;
}

TEST(ChangedRun, OnlyBlocksBehindTheWatchedElementsRun) {
  Tensor x("x", Dtype::fp32, {{"T", 8}});
  for (int64_t i = 0; i < 8; ++i) x.set(i, static_cast<double>(1 + i));
  ChangedRuns runs(in_two_blocks(), {{"x", x}}, {});
  const std::vector<OutputElement> watched = runs.watch({{"o", 5}, {"o", 2}, {"o", 7}});
  ASSERT_EQ(watched.size(), 2u);
  EXPECT_EQ(watched[0].flat, 5);
  EXPECT_EQ(watched[1].flat, 7);
  const ChangedRuns::Changes half{
      {0, {{.op = op_of(runs.code(0), "mul.rn.f32"), .source = 1, .instead = Instead::one}}}};
  const auto some = runs.run_watched(half), all = runs.run(half);
  ASSERT_TRUE(some && all);
  EXPECT_EQ(some->at("o")[5], 6);
  EXPECT_EQ(some->at("o")[7], 8);
  EXPECT_NE(some->at("o")[2], 3) << "its block has not run";
  EXPECT_EQ(all->at("o"), (Values{1, 2, 3, 4, 5, 6, 7, 8}));
}

/// The other block's number, of the launch before: as the program is, nobody reads it there.
TEST(ChangedRun, WatchedBlocksReadWhatOthersLeftBefore) {
  Program program = in_two_blocks();
  std::string text = *program.modules[0].ptx, second = text.substr(text.find(".visible"));
  second.replace(second.find("doubled"), 7, "copied");
  second.erase(second.find("  mul.rn"), second.find("  st.global") - second.find("  mul.rn"));
  program.modules[0].ptx = std::make_shared<const std::string>(text + second);
  program.outputs.push_back({"w", Dtype::fp32, {{"T", 8}}});
  program.launches[0].arguments[1] = PointerArgument{"w"};
  program.launches.push_back(
      {"m", "copied", {2, 1, 1}, {4, 1, 1}, 0, {PointerArgument{"w"}, PointerArgument{"o"}}});
  Tensor x("x", Dtype::fp32, {{"T", 8}});
  for (int64_t i = 0; i < 8; ++i) x.set(i, static_cast<double>(1 + i));
  ChangedRuns runs(program, {{"x", x}}, {});
  ASSERT_EQ(runs.watch({{"o", 3}}).size(), 1u);
  const ChangedRuns::Changes next{
      {1, {{.op = op_of(runs.code(1), "ld.global.f32"), .source = 0, .instead = Instead::next}}}};
  const auto some = runs.run_watched(next);
  ASSERT_TRUE(some);
  EXPECT_EQ(some->at("o")[3], 10) << "2 x[4]";
}

TEST(ChangedRun, WhereEveryBlockIsNeededNoneIsWatched) {
  ChangedRuns runs(two_steps(), two_step_inputs(), {});
  EXPECT_TRUE(runs.watch({{"o", 1}}).empty());
}

}  // namespace
}  // namespace assay::vm
