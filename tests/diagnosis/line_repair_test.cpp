// Which changed instruction makes a program right.
#include "src/verification/diagnosis/line_repair.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

/// o[t] = 2 x[t], and 0 for t = 3; thread 3 goes another way. `sourced`: x is loaded on line 5 of k.cu, the
/// comparison stands on line 10, the branch on line 20, or another.
Program masked(bool sourced = false, int branch = 20) {
  std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 px, .param .u64 po) {
  .reg .f32 %x, %r;
  .reg .b32 %t;
  .reg .b64 %ax, %ao, %step;
  .reg .pred %p;
  ld.param.u64 %ax, [px];
  ld.param.u64 %ao, [po];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %step, %t, 4;
  add.s64 %ax, %ax, %step;
  add.s64 %ao, %ao, %step;
  mov.f32 %r, 0f00000000;
  ld.global.f32 %x, [%ax];
  setp.eq.s32 %p, %t, 3;
  @%p bra DONE;
  mul.rn.f32 %r, %x, 0f40000000;
DONE:
  st.global.f32 [%ao], %r;
  ret;
}
)";
  const auto put = [&](const std::string& before, const std::string& what) {
    if (sourced) text.insert(text.find(before), what);
  };
  put("ld.global", ".loc 1 5 0\n  "), put("setp", ".loc 1 10 0\n  "),
      put("@%p", fmt::format(".loc 1 {} 0\n  ", branch)), put(".visible", ".file 1 \"k.cu\"\n");
  Program program;
  program.name = "masked";
  program.modules.push_back({"m", "masked.ptx", std::make_shared<const std::string>(text)});
  program.outputs.push_back({"o", Dtype::fp32, {{"T", 8}}});
  program.launches.push_back(
      {"m", "kernel", {1, 1, 1}, {8, 1, 1}, 0, {PointerArgument{"x"}, PointerArgument{"o"}}});
  return program;
}

/// `should` of t and x[t].
std::vector<Repair> repairs_of(const Program& program, const std::function<double(int64_t, double)>& should,
                               double seconds = 5, double decision_seconds = 0) {
  Tensor x("x", Dtype::fp32, {{"T", 8}});
  for (int64_t i = 0; i < 8; ++i) x.set(i, static_cast<double>(1 + i * i));
  vm::ChangedRuns runs(program, {{"x", x}}, {});
  RepairSearch search;
  search.judge = [&](const vm::RealOutputs& outputs) {
    RepairVerdict verdict;
    verdict.whole = verdict.harmless = true;
    double before = 0, after = 0;
    for (int64_t i = 0; i < 8; ++i) {
      const double was = i == 3 ? 0 : 2 * x.value(i), right = should(i, x.value(i)),
                   now = outputs.at("o")[static_cast<size_t>(i)];
      before += (was - right) * (was - right), after += (now - right) * (now - right);
      verdict.whole &= now == right;
      verdict.harmless &= was != right || now == right;
    }
    verdict.left = before > 0 ? std::sqrt(after / before) : 1;
    return verdict;
  };
  search.may_compute_wrong = [](const SourceLocation&) { return true; };
  search.suspicion = [](const ptx::Module*, int32_t, int32_t) { return 1.0; };
  search.seconds = seconds, search.decision_seconds = decision_seconds;
  return find_repairs(runs, SourceText("masked"), search);
}

std::vector<Repair> repairs_where(const std::function<double(int64_t, double)>& should, double seconds = 5,
                                  bool sourced = false, int branch = 20, double decision_seconds = 0) {
  return repairs_of(masked(sourced, branch), should, seconds, decision_seconds);
}

bool is_whole(const std::vector<Repair>& repairs, int ptx_line) {
  return std::any_of(repairs.begin(), repairs.end(),
                     [&](const Repair& r) { return r.left == 0 && r.at.where.ptx_line == ptx_line; });
}

TEST(LineRepair, AGuardThatShouldNotHoldAndWhatItDecides) {
  const std::vector<Repair> repairs = repairs_where([](int64_t, double x) { return 2 * x; });
  ASSERT_FALSE(repairs.empty());
  EXPECT_TRUE(is_whole(repairs, 17) && is_whole(repairs, 18));
  EXPECT_FALSE(is_whole(repairs, 16) || is_whole(repairs, 19));
  const auto branch =
      std::find_if(repairs.begin(), repairs.end(), [](const Repair& r) { return r.at.where.ptx_line == 18; });
  EXPECT_EQ(branch->change, "the guard %p of bra (PTX line 18) never true");
  EXPECT_FALSE(branch->decides);  // a line of no source
}

TEST(LineRepair, AComparisonAndTheBranchThatItDecidesOnAnotherLine) {
  const std::vector<Repair> repairs = repairs_where([](int64_t, double x) { return 2 * x; }, 5, true);
  const auto comparison =
      std::find_if(repairs.begin(), repairs.end(), [](const Repair& r) { return r.at.where.line == 10; });
  ASSERT_NE(comparison, repairs.end());
  ASSERT_TRUE(comparison->branch);
  EXPECT_EQ(comparison->branch->where.line, 20);
  for (const Repair& repair : repairs_where([](int64_t, double x) { return 2 * x; }))
    EXPECT_FALSE(repair.branch) << "on one line, or on none";
}

/// Thread 3 lacks its term where it should be thread 6.
TEST(LineRepair, ASizeThatIsHalfOfWhatItShouldBe) {
  const std::vector<Repair> repairs = repairs_where([](int64_t t, double x) { return t == 6 ? 0 : 2 * x; });
  const auto bound = std::find_if(repairs.begin(), repairs.end(), [](const Repair& r) {
    return r.left == 0 && r.change == "a literal doubled in setp.eq.s32 (PTX line 17)";
  });
  EXPECT_NE(bound, repairs.end());
}

/// Thread t is at t + 1: an index that is computed on line 3 of k.cu and taken on line 4.
TEST(LineRepair, AnIntegerAndTheLineThatTakesIt) {
  Program program = masked(true);
  std::string text = *program.modules[0].ptx;
  text.insert(text.find("mov.u32 %t"), ".loc 1 3 0\n  ");
  text.replace(text.find("mul.wide.u32 %step, %t, 4"), 25,
               "add.u32 %i, %t, 1;\n  and.b32 %i, %i, 7;\n"
               "  .loc 1 4 0\n  mul.wide.u32 %step, %i, 4");
  text.insert(text.find(".reg .b32 %t"), ".reg .b32 %i;\n  ");
  program.modules[0].ptx = std::make_shared<const std::string>(text);
  bool named = false;
  for (const Repair& r : repairs_of(program, [](int64_t i, double x) { return i == 3 ? 0 : 2 * x; }))
    named |= r.at.where.line == 3 && r.taker && r.taker->where.line == 4;
  EXPECT_TRUE(named);
}

TEST(LineRepair, AFactorTooMany) {
  const std::vector<Repair> repairs = repairs_where([](int64_t t, double x) { return t == 3 ? 0 : x; });
  ASSERT_FALSE(repairs.empty());
  EXPECT_EQ(repairs.front().left, 0);
  EXPECT_EQ(repairs.front().at.where.ptx_line, 19);
  EXPECT_EQ(repairs.front().change, "a literal taken for 1 in mul.rn.f32 (PTX line 19)");
}

TEST(LineRepair, WhatMadeTheOperandThatIsChanged) {
  const std::vector<Repair> repairs =
      repairs_where([](int64_t t, double x) { return t == 3 ? 0 : x; }, 5, true);
  const auto product = std::find_if(repairs.begin(), repairs.end(), [](const Repair& r) {
    return r.left == 0 && r.change.find("taken for 1 in mul") != std::string::npos;
  });
  ASSERT_NE(product, repairs.end());
  EXPECT_FALSE(product->maker) << "a literal";
  const auto stored = repairs_where([](int64_t, double) { return 0; }, 5, true);
  const auto of_product = std::find_if(stored.begin(), stored.end(), [](const Repair& r) {
    return r.left == 0 && r.change.find("%x taken for 0 in mul") != std::string::npos;
  });
  ASSERT_NE(of_product, stored.end());
  ASSERT_TRUE(of_product->maker);
  EXPECT_EQ(of_product->maker->instruction.substr(0, 13), "ld.global.f32");
}

/// What is compared may be made wrongly on a line of its own.
TEST(LineRepair, WhatMadeANumberThatIsCompared) {
  const auto maker_of = [](bool on_a_line) {
    Program program = masked(true);
    std::string text = *program.modules[0].ptx;
    text.replace(text.find("setp.eq.s32 %p, %t, 3;"), 22,
                 fmt::format("{}add.s32 %n, %t, 1;\n  .loc 1 10 0\n  setp.eq.s32 %p, %n, 4;",
                             on_a_line ? ".loc 1 7 0\n  " : ""));
    text.insert(text.find(".reg .b64"), ".reg .b32 %n;\n  ");
    program.modules[0].ptx = std::make_shared<const std::string>(text);
    for (const Repair& repair : repairs_of(program, [](int64_t, double x) { return 2 * x; }))
      if (repair.left == 0 && repair.change.find("of setp.eq.s32") != std::string::npos)
        return repair.maker ? repair.maker->where.line : -1;
    return -2;
  };
  EXPECT_EQ(maker_of(true), 7);
  EXPECT_EQ(maker_of(false), -1) << "it is on the line of the comparison";
}

/// A function as it stands in an unoptimised program where it was called: twice the input where `live` is
/// more than 0, in place of `step`.
std::string call_of(int call, int line, int depth) {
  std::string text = R"(
  .loc 1 5 0, inlined_at 1 LINE 0
  mov.u32 %dDr1, %t;
  mov.u32 %dDr2, 5;
  mov.f32 %dDf1, 0f00000000;
  setp.gt.s32 %dDp1, %dDr2, 0;
  @!%dDp1 bra LABEL;
  mul.rn.f32 %dDf1, %x, 0f40000000;
LABEL:
  .loc 1 LINE 0
  st.global.f32 [%ao+AT], %dDf1;
)";
  for (const auto& [name, value] : {std::pair<std::string, std::string>{"%dD", fmt::format("%d{}", depth)},
                                    {"LINE", std::to_string(line)},
                                    {"LABEL", fmt::format("END{}", call)},
                                    {"AT", std::to_string(32 * call)}})
    for (size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), value);
  return text;
}

TEST(LineRepair, ARegisterForAnotherInEveryCallOfAFunction) {
  Program program = masked(true);
  std::string text = *program.modules[0].ptx;
  const size_t body = text.find("  .loc 1 10 0");
  text.replace(body, text.find("  ret;") - body, call_of(0, 20, 1) + call_of(1, 21, 2));
  for (const char* depth : {"1", "2"})
    text.insert(
        text.find(".reg .pred"),
        fmt::format(".reg .b32 %d{0}r<3>;\n  .reg .f32 %d{0}f<2>;\n  .reg .pred %d{0}p<2>;\n  ", depth));
  program.modules[0].ptx = std::make_shared<const std::string>(text);
  program.outputs[0].axes = {{"T", 16}};
  Tensor x("x", Dtype::fp32, {{"T", 8}});
  for (int64_t i = 0; i < 8; ++i) x.set(i, static_cast<double>(1 + i));
  vm::ChangedRuns runs(program, {{"x", x}}, {});
  RepairSearch search;
  search.judge = [&](const vm::RealOutputs& outputs) {
    RepairVerdict verdict;
    int right = 0;
    for (int64_t i = 0; i < 16; ++i)
      right += outputs.at("o")[static_cast<size_t>(i)] == (i % 8 < 5 ? 2 * x.value(i % 8) : 0);
    verdict.whole = right == 16, verdict.harmless = true, verdict.left = (16 - right) / 6.0;
    return verdict;
  };
  search.may_compute_wrong = [](const SourceLocation&) { return true; };
  search.suspicion = [](const ptx::Module*, int32_t, int32_t) { return 1.0; };
  search.seconds = 0, search.decision_seconds = 5;
  const std::vector<Repair> repairs = find_repairs(runs, SourceText("masked"), search);
  ASSERT_FALSE(repairs.empty());
  EXPECT_EQ(repairs.front().left, 0);
  EXPECT_NE(repairs.front().change.find("r1 for a literal in setp.gt.s32"), std::string::npos)
      << repairs.front().change;
}

TEST(LineRepair, DecisionsHaveTimeOfTheirOwn) {
  const auto bound = [](int64_t t, double x) { return t == 4 ? 0 : 2 * x; };
  const auto factor = [](int64_t t, double x) { return t == 3 ? 0 : x; };
  EXPECT_TRUE(repairs_where(bound, 0).empty());
  EXPECT_FALSE(repairs_where(bound, 0, false, 20, 5).empty());
  EXPECT_TRUE(repairs_where(factor, 0, false, 20, 5).empty());
}

TEST(LineRepair, ABoundThatIsOneTooLow) {
  const std::vector<Repair> repairs = repairs_where([](int64_t t, double x) { return t == 4 ? 0 : 2 * x; });
  ASSERT_FALSE(repairs.empty());
  EXPECT_EQ(repairs.front().left, 0);
  EXPECT_EQ(repairs.front().change, "a literal one more in setp.eq.s32 (PTX line 17)");
}

/// On line 10 a comparison and the branch that it decides: to change the one is to change the other.
TEST(LineRepair, AConditionIsChangedOnceWhereItStandsOnOneLine) {
  for (const bool apart : {true, false}) {
    std::string changes;
    for (const Repair& r : repairs_where([](int64_t, double x) { return 2 * x; }, 5, true, apart ? 20 : 10))
      changes += r.change + '\n';
    EXPECT_NE(changes.find("the guard %p of bra"), changes.npos) << changes;
    EXPECT_EQ(changes.find("%p of setp") != changes.npos, apart) << changes;
  }
}

TEST(LineRepair, WhatMendsNothingIsNone) {
  EXPECT_TRUE(
      repairs_where([](int64_t t, double x) { return 2 * x + 100 * static_cast<double>(t % 3); }).empty());
}

TEST(LineRepair, WithoutTimeNothingIsTried) {
  EXPECT_TRUE(repairs_where([](int64_t, double x) { return 2 * x; }, 0).empty());
}

/// o[t] = x[t] times the steps of a loop from `first` on, before 4. Line 7 of k.cu heads it.
Program looped(int first) {
  const std::string text = fmt::format(R"(.version 7.8
.target sm_80
.address_size 64
.file 1 "k.cu"
.visible .entry kernel(.param .u64 px, .param .u64 po) {{
  .reg .f32 %x, %r;
  .reg .b32 %t, %i;
  .reg .b64 %ax, %ao, %step;
  .reg .pred %p;
  .loc 1 6 0
  ld.param.u64 %ax, [px];
  ld.param.u64 %ao, [po];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %step, %t, 4;
  add.s64 %ax, %ax, %step;
  add.s64 %ao, %ao, %step;
  mov.f32 %r, 0f00000000;
  ld.global.f32 %x, [%ax];
  .loc 1 7 0
  mov.u32 %i, {};
LOOP:
  setp.ge.s32 %p, %i, 4;
  @%p bra DONE;
  .loc 1 8 0
  add.rn.f32 %r, %r, %x;
  .loc 1 7 0
  add.s32 %i, %i, 1;
  bra LOOP;
DONE:
  .loc 1 9 0
  st.global.f32 [%ao], %r;
  ret;
}}
)",
                                       first);
  Program program;
  program.name = "looped";
  program.modules.push_back({"m", "looped.ptx", std::make_shared<const std::string>(text)});
  program.outputs.push_back({"o", Dtype::fp32, {{"T", 8}}});
  program.launches.push_back(
      {"m", "kernel", {1, 1, 1}, {8, 1, 1}, 0, {PointerArgument{"x"}, PointerArgument{"o"}}});
  return program;
}

/// Decisions alone that make it `steps` times x; what was tried and left element 2 as wrong ran no further.
std::vector<Repair> decisions_of_loop(int first, double steps, bool watch = false) {
  Tensor x("x", Dtype::fp32, {{"T", 8}});
  for (int64_t i = 0; i < 8; ++i) x.set(i, static_cast<double>(1 + i * i));
  vm::ChangedRuns runs(looped(first), {{"x", x}}, {});
  RepairSearch search;
  search.judge = [&](const vm::RealOutputs& outputs) {
    RepairVerdict verdict{0, true, true};
    for (int64_t i = 0; i < 8; ++i)
      verdict.whole &= outputs.at("o")[static_cast<size_t>(i)] == steps * x.value(i);
    verdict.left = verdict.whole ? 0 : 1;
    return verdict;
  };
  if (watch) {
    search.wrong = {{"o", 2}};
    search.left = [](const vm::RealOutputs&, const std::vector<vm::OutputElement>&) { return 1.0; };
  }
  search.may_compute_wrong = [](const SourceLocation&) { return true; };
  search.suspicion = [](const ptx::Module*, int32_t, int32_t) { return 1.0; };
  search.seconds = 0, search.decision_seconds = 5;
  return find_repairs(runs, SourceText("looped"), search);
}

TEST(LineRepair, ALoopThatBeginsOneTooLateOrEndsOneTooEarly) {
  const std::vector<Repair> repairs = decisions_of_loop(1, 4);
  const auto with = [&](const std::string& change) {
    return std::any_of(repairs.begin(), repairs.end(),
                       [&](const Repair& r) { return r.change.starts_with(change) && r.at.where.line == 7; });
  };
  EXPECT_TRUE(with("a literal one less in mov.u32"));
  EXPECT_TRUE(with("a literal one more in setp.ge.s32"));
}

TEST(LineRepair, ALoopThatShouldNotRunIsEndedAndNeverWithoutEnd) {
  const std::vector<Repair> repairs = decisions_of_loop(0, 0);
  ASSERT_FALSE(repairs.empty());
  for (const Repair& r : repairs) EXPECT_EQ(r.change, "the guard %p of bra (PTX line 23) always true");
}

/// There is one block, and none to leave out: all run.
TEST(LineRepair, OfOneBlockNothingIsLeftOut) {
  EXPECT_FALSE(decisions_of_loop(1, 4, true).empty());
}

}  // namespace
}  // namespace assay
