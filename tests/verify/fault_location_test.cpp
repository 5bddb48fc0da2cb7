// What a finding's values depend on otherwise than they should, on kernels with known defects.
#include "src/verification/verify/fault_location.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "kernels/compile_ptx.h"
#include "kernels/foreign.h"
#include "kernels/kernel.h"
#include "src/base/backend/backend.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/companion.h"

namespace assay {
namespace {

Verification located(const std::string& token, const Kernel& kernel, vm::Checks checks = vm::Checks::none()) {
  VerifyOptions options;
  options.threads = 2, options.twice = false, options.checks = checks;
  const auto backend = make_vm_backend({});
  return verify(parse_token(token), kernel, *backend, options);
}
Verification located(const std::string& token, vm::Checks checks = vm::Checks::none()) {
  return located(token, find_kernel(parse_token(token).kernel), checks);
}

/// Null where it is not among those named.
const SuspectLine* line_of(const Verification& v, std::string_view file, int line) {
  for (const SuspectLine& suspect : v.lines)
    if (suspect.at.where.file.ends_with(file) && suspect.at.where.line == line) return &suspect;
  return nullptr;
}

/// No meaning tells which slots the gradient went to.
TEST(FaultLocationCampaign, WhatNoMeaningExplainsIsSaidByItsDependences) {
  const Verification v =
      located("gsa.fused_recurrent@H8/B1/T1/H1/K1/V1/M2/bf16/g-fp32/none/v-powers/s1/backward/dht");
  ASSERT_FALSE(v.diagnosis.empty());
  EXPECT_EQ(v.diagnosis.front().cause, "formula-differs");
  EXPECT_EQ(v.diagnosis.front().explanation,
            "dk and ds and dg and dhk0: their dependence on dhkt[m] has the weight of dhkt[m+1]");
}

TEST(FaultLocationCampaign, OfACauseThatIsNamedTheDependencesAreEvidence) {
  const Verification v = located("hgrn.chunk@H1/B1/T0/H1/K1/V1/bf16/g-fp32/none/v-ones/s1/backward/h0/dht");
  ASSERT_FALSE(v.diagnosis.empty());
  EXPECT_EQ(v.diagnosis.front().cause, "gradient-without-final-state-term");
  const std::vector<std::string>& evidence = v.diagnosis.front().evidence;
  EXPECT_TRUE(std::count(evidence.begin(), evidence.end(),
                         "dx and dg and dinitial_state do not depend on dfinal_state"));
}

/// j <= i + 1 for j <= i: the mutant that compares with the other edge is right.
TEST(FaultLocationCampaign, ALineThatAChangedInstructionRepairsIsNamedFirst) {
  const Verification v = located("gla.chunk@D8/B1/T2/H1/K1/V1/bf16/g-fp32/none/v-ones/s1");
  ASSERT_FALSE(v.lines.empty());
  EXPECT_TRUE(v.lines.front().at.where.file.ends_with("kernels/channel/chunk_scores.cuh"));
  EXPECT_EQ(v.lines.front().at.where.line, 142);
  EXPECT_TRUE(v.lines.front().reason.ends_with("all elements are right")) << v.lines.front().reason;
}

/// `before = h` comes too late, and is no instruction of the optimised program.
TEST(FaultLocationCampaign, AStatementWithoutAnInstructionIsSeenWithoutOptimisation) {
  const Verification v =
      located("hgrn.fused_recurrent@H11/B1/T17/H1/K1/V1/fp32/g-fp32/none/v-ones/s1/backward");
  const SuspectLine* const late = line_of(v, "kernels/hgrn/fused_recurrent.cu", 88);
  ASSERT_NE(late, nullptr);
  EXPECT_TRUE(late->reason.starts_with("compiled without optimisation, ")) << late->reason;
  EXPECT_EQ(late->at.where.ptx_line, 0);
}

/// update = residual for beta * residual: a mere copy, which no changed value of its own would tell.
TEST(FaultLocationCampaign, AnAssignmentThatLacksAFactorIsNamedBesideWhatItAssigns) {
  const Verification v =
      located("gated_delta_rule.fused_recurrent@B1/B1/T2/H1/HV1/K1/V1/bf16/g-fp32/none/v-powers/s589753");
  const SuspectLine* const copy = line_of(v, "kernels/delta/rule_columns.cuh", 160);
  ASSERT_NE(copy, nullptr);
  EXPECT_TRUE(copy->reason.ends_with("it only passes on what line 159 makes")) << copy->reason;
}

/// Gates have value heads, and are read at their key head: derivatives show it, too little is left for
/// meanings to tell it from others.
TEST(FaultLocationCampaign, AnInputOfAnotherHeadIsToldByDerivativesAndWhatSaysTheHeadIsNamed) {
  const Verification v =
      located("kda.fused_recurrent@Z23/B1/T2/H1/HV2/K1/V1/fp32/g-fp32/none/v-powers/s1/g@0,1,0,0=-1");
  ASSERT_FALSE(v.diagnosis.empty());
  EXPECT_EQ(v.diagnosis.front().cause, "gate-of-another-head");
  EXPECT_NE(line_of(v, "kernels/delta/rule_columns.cuh", 28), nullptr);
}

/// One lane's share for the sum over sixteen: nothing is made of the other lanes', and the assignment has no
/// instruction of its own.
TEST(FaultLocationCampaign, AnAssignmentThatLacksASumOverLanesIsNamed) {
  const Verification v =
      located("lightning_attn.fused_recurrent@U41/B1/T1/H1/K5/V1/fp32/g-fp32/none/v-ones/s1");
  EXPECT_NE(line_of(v, "kernels/device/recurrent.cuh", 225), nullptr);
}

/// Four elements, of which many changes would mend the one that is wrong: a bound is the plainest, and alone.
TEST(FaultLocationCampaign, InASmallOutputTheOneDecisionThatMendsItIsNamed) {
  Verification v;  // a property failed
  v.case_ = parse_token("rwkv7_log_decay.fused@U66/B1/T5/H1/K1/V1/cu0,1,5/fp32/g-fp32/none/v-powers/s1");
  v.kernel = v.case_.kernel;
  const Kernel& kernel = find_kernel(v.kernel);
  DerivedRun part;
  part.case_ = parse_token("rwkv7_log_decay.fused@U66/B1/T4/H1/K1/V1/fp32/g-fp32/none/v-powers/s1");
  for (const auto& [name, whole] : draw_inputs(accepted(v.case_, kernel))) {  // its last four tokens
    Tensor& own = part.inputs[name] = Tensor(name, whole.dtype, whole.axes);
    for (Axis& axis : own.axes)
      if (axis.name == "T") axis.size = 4;
    own.data.resize(static_cast<size_t>(own.size() * format(own.dtype).bytes));
    for (int64_t i = 0; i < own.size(); ++i) own.set(i, whole.value(i + whole.size() - own.size()));
  }
  VerifyOptions options;
  options.threads = 1;
  locate_failed_property(kernel, options, {part}, v);
  ASSERT_FALSE(v.lines.empty());
  EXPECT_EQ(line_of(v, "kernels/elementwise/each.cuh", 10), &v.lines.front());
}

/// initial_state is read at key - 48: the read stands on line 93, what says where on 92.
TEST(FaultLocationCampaign, OfAReadOfAnotherPlaceTheStatementThatMakesTheAddressIsNamedToo) {
  const Verification v =
      located("lightning_attn.fused_chunk@U39/B1/T1/H1/K65/V1/fp32/g-fp32/none/v-powers/s1/h0");
  const auto goes_through = [](const SuspectLine& line) {
    const std::vector<std::string>& frames = line.at.where.frames;
    return std::count(frames.begin(), frames.end(), "kernels/scalar/fused_chunk.cuh:92") > 0;
  };
  ASSERT_GE(v.lines.size(), 2U);
  EXPECT_EQ(v.lines[0].at.where.line, 93);
  EXPECT_TRUE(goes_through(v.lines[1])) << v.lines[1].reason;
}

/// 2^g for e^g. The line of the recurrence explains what is wrong with fewer values, and only passes it on.
TEST(FaultLocation, OfACauseThatIsAboutOneInputTheLineThatTakesItAloneIsNamedFirst) {
  std::ifstream right(ASSAY_SOURCE_DIR "/tests/data/gla_naive.ptx");
  std::string text(std::istreambuf_iterator<char>(right), {});
  for (size_t at; (at = text.find("0f3FB8AA3B")) != std::string::npos;) text.replace(at, 10, "0f3F800000");
  const std::string file = testing::TempDir() + "power_of_two.ptx";
  std::ofstream(file) << text;
  const Kernel kernel = load_foreign_kernel(file, ASSAY_SOURCE_DIR "/examples/strangers_gla/plan.json");
  const Verification v = located("gla_naive/B1/T2/H1/K1/V1/fp16/g-fp32/none/v-ones/s1/g@0,1,0,0=-1", kernel);
  ASSERT_FALSE(v.diagnosis.empty());
  EXPECT_EQ(v.diagnosis.front().cause, "decay-base");
  ASSERT_FALSE(v.lines.empty());
  EXPECT_EQ(v.lines.front().at.where.line, 36);  // ws[i] = g ? __expf(g[token * K + i]) : 1.0f
}

/// As in a package, where nothing can be compiled.
TEST(FaultLocationCampaign, WithoutACompilerTheOptimisedProgramIsAskedAndThatIsSaid) {
  Kernel kernel = find_kernel("hgrn.fused_recurrent@H11");
  kernel.plainly = [](Program) -> Program { throw CannotCompile("compiling needs nvcc"); };
  const Verification v =
      located("hgrn.fused_recurrent@H11/B1/T17/H1/K1/V1/fp32/g-fp32/none/v-ones/s1/backward", kernel);
  ASSERT_FALSE(v.lines.empty());
  EXPECT_TRUE(v.lines.front().reason.ends_with("; not looked at without optimisation: compiling needs nvcc"))
      << v.lines.front().reason;
}

/// No formula differs: nothing is moved.
TEST(FaultLocation, OfARoundingItSaysNothing) {
  const Verification v =
      located("hgrn.fused_recurrent@P5/B1/T6/H1/K1/V1/bf16/g-fp32/spike:16,90,1/v-ones/s1");
  ASSERT_FALSE(v.diagnosis.empty());
  for (const Diagnosis& d : v.diagnosis)
    for (const std::string& line : d.evidence)
      EXPECT_EQ(line.find("moved in turn"), std::string::npos) << line;
}

std::vector<int> named_in(const std::string& file, const Verification& v) {
  std::vector<int> lines;
  for (const SuspectLine& line : v.lines)
    if (line.at.where.file.ends_with(file)) lines.push_back(line.at.where.line);
  return lines;
}

/// Warps run in order, so that every value is right. The accesses are in another file than the barrier.
TEST(FaultLocation, WhereOnlyTheChecksHaveAFindingTheBarrierAndTheAccessesAreNamed) {
  const Verification v =
      located("gla.chunk@R1/B1/T17/H1/K1/V1/bf16/g-fp32/none/v-exact/s1/backward", vm::Checks{});
  EXPECT_TRUE(v.cause.starts_with("check/race")) << v.cause;
  ASSERT_FALSE(v.lines.empty());
  EXPECT_EQ(named_in("kernels/channel/chunk_scores.cuh", v), std::vector<int>{306});
  EXPECT_EQ(named_in("kernels/device/operand.cuh", v), (std::vector<int>{41, 46}));
}

/// The mask of the initial state is made for other axes than the read has, in the statement before it.
TEST(FaultLocation, OfARunThatLeavesItsTensorsWhatShouldHaveKeptItInIsNamed) {
  const Verification v = located("rwkv6.fused_recurrent@H3/B1/T0/H1/K1/V2/bf16/g-fp32/none/v-ones/s1/h0");
  ASSERT_TRUE(v.trap);
  EXPECT_EQ(v.trap->where.line, 200);
  EXPECT_LE(v.lines.size(), 2);
  EXPECT_TRUE(line_of(v, "kernels/device/recurrent.cuh", 199));
}

/// Of a run of some blocks nothing but what the checks say is known, which stands first; behind that of a
/// race between blocks what decides whether they come there.
TEST(FaultLocation, OfSomeBlocksTheLinesOfTheChecksAreNamed) {
  const Verification v = located(
      "simple_gla.parallel@R8/B1/T1/H1/K65/V1/bf16/g-fp32/none/v-ones/s1/backward/blocks-last-1..last",
      vm::Checks{});
  EXPECT_TRUE(v.cause.starts_with("check/race")) << v.cause;
  const std::vector<int> named = named_in("kernels/scalar/parallel_rows.cuh", v);
  ASSERT_FALSE(named.empty());
  EXPECT_EQ(named.front(), 259);
}

/// Without gates dk is never written: its line compiled to nothing.
TEST(FaultLocation, OfAnOutputThatADerivedRunLeavesUnwrittenTheLineThatMentionsItLastIsNamed) {
  Verification v;
  v.case_ = parse_token("simple_gla.chunk@G3/B1/T1/H1/K1/V1/fp32/g-fp32/none/v-ones/s1/backward");
  v.kernel = v.case_.kernel;
  v.diagnosis.push_back({.cause = "unwritten-value", .score = 1});
  const Kernel& kernel = find_kernel(v.kernel);
  const Case derived =
      parse_token("simple_gla.chunk@G3/B1/T1/H1/K1/V1/fp32/g-fp32/none/v-ones/s1/backward/no-g,g_gamma");
  VerifyOptions options;
  options.meaning_seconds = 2;
  locate_failed_property(kernel, options, {{derived, draw_inputs(derived, find_operator("simple_gla"))}}, v);
  EXPECT_EQ(named_in("kernels/scalar/chunk_gradients.cuh", v), std::vector<int>{275});
}

/// A launch of another file sums what the one at fault leaves, and changed instructions of either repair it.
TEST(FaultLocation, RepairedLinesComeBeforeWhatARepairedGuardDecides) {
  const Verification v =
      located("gate_softplus.fused@T15/B2/T65/H1/K1/V1/fp32/g-fp32/none/v-ones/s1/backward", vm::Checks{});
  const std::vector<int> lines = named_in("kernels/gate_softplus/softplus.cuh", v);
  EXPECT_TRUE(std::count(lines.begin(), lines.end(), 110)) << lines.size();
}

/// gates[begin] for gates[begin + step]: what is made of a gate is right.
TEST(FaultLocationCampaign, OfACauseThatSaysWhereAnInputIsReadTheReadIsNamedFirst) {
  const Verification v = located(
      "gated_delta_rule.fused_recurrent@W10/B1/T2/H1/HV1/K1/V1/bf16/g-fp32/none/v-powers/s589753/g@0,0,0=-1");
  ASSERT_FALSE(v.diagnosis.empty());
  EXPECT_EQ(v.diagnosis.front().cause, "gate-of-another-token");
  ASSERT_FALSE(v.lines.empty());
  EXPECT_TRUE(v.lines.front().at.where.file.ends_with("kernels/delta/rule_columns.cuh"));
  EXPECT_EQ(v.lines.front().at.where.line, 69);
}

/// 1 + g for e^g: what overflows after 47 tokens of strong gates is wrong of weak ones too.
TEST(FaultLocationCampaign, AnOverflowThatAWrongFormulaLeadsToIsNamedByTheFormula) {
  const Verification v = located(
      "gated_delta_rule.fused_recurrent@F3/B1/T47/H1/HV1/K6/V7/bf16/g-fp32/masked:90/v-powers/s589753/"
      "no-beta");
  ASSERT_TRUE(v.origin);
  ASSERT_FALSE(v.diagnosis.empty());
  EXPECT_EQ(v.diagnosis.front().cause, "formula-differs");
  EXPECT_TRUE(std::any_of(v.diagnosis.begin(), v.diagnosis.end(),
                          [](const Diagnosis& d) { return d.cause == "sum-overflow"; }));
  EXPECT_TRUE(line_of(v, "kernels/delta/rule_columns.cuh", 93));
}

}  // namespace
}  // namespace assay
