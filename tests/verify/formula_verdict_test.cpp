// The verdict on the formula: faults that the bounds of bf16 hide.
#include <gtest/gtest.h>

#include "src/base/backend/backend.h"
#include "src/verification/verify/verify.h"
#include "tests/verify/scaled_kernel.h"

namespace assay {
namespace {

Verification judged(const std::string& token, const Kernel& kernel, uint64_t formula_instructions) {
  const auto machine = make_vm_backend({});
  VerifyOptions options;
  options.diagnose = false;
  options.twice = false;
  options.formula_instructions = formula_instructions;
  return verify(parse_token(token), kernel, *machine, options);
}

constexpr uint64_t kAlways = UINT64_MAX;
const char* const kTokens[] = {"gla.chunk/T70/H1/K16/V16/bf16/g-fp32/mild/s1/both",
                               "gsa.chunk/T40/H1/K16/V16/M16/bf16/g-fp32/none/s1/both",
                               "simple_gla.parallel/T70/H1/K16/V16/fp16/g-fp32/near-one/s1/both",
                               "gla.fused_recurrent/T30/H1/K16/V16/fp32/g-fp32/reset/s1/both",
                               "rwkv7.fused_recurrent/T20/H1/K16/V16/bf16/g-fp32/mild/s1/both"};

TEST(FormulaVerdict, AScaleOffByAThousandthHidesUnderTheBoundOfBf16AndNotHere) {
  const std::string token = kTokens[0];
  EXPECT_EQ(judged(token, scaled_kernel("gla.chunk", 1.001f), 0).verdict, Verdict::pass);
  const Verification v = judged(token, scaled_kernel("gla.chunk", 1.001f), kAlways);
  EXPECT_EQ(v.verdict, Verdict::finding);
  EXPECT_EQ(v.cause, "formula/o");
  EXPECT_EQ(v.outputs.front().violation, 0);
}

TEST(FormulaVerdict, EveryOutputIsJudgedToAHundredThousandth) {
  for (const std::string token : kTokens) {
    const Kernel& kernel = find_kernel(token.substr(0, token.find('/')));
    const Verification v = judged(token, kernel, kAlways);
    EXPECT_EQ(v.verdict, Verdict::pass) << token << " " << v.cause;
    ASSERT_TRUE(v.formula && v.formula->skipped.empty()) << token;
    EXPECT_EQ(v.formula->outputs.size(), v.outputs.size());
    for (const FormulaOutput& output : v.formula->outputs) {
      EXPECT_EQ(output.judged, output.elements) << token << " " << output.name;
      EXPECT_LE(output.max_allowed, 1e-5) << token << " " << output.name;
    }
  }
}

/// Equal tokens make equal errors of the shadow's own doubles, which chance does not lessen: 451 elements of
/// dv would be 4 times as far off as probes say.
TEST(FormulaVerdict, OfTokensThatRepeatEachOtherTheShadowsOwnErrorsAddUp) {
  const std::string token =
      "delta_rule.chunk/B1/T153/H1/K60/V56/cu0,153,153/bf16/g-fp16/mild:0.5/v-repeated/s435838/both";
  const Verification v = judged(token, find_kernel("delta_rule.chunk"), kAlways);
  EXPECT_EQ(v.verdict, Verdict::pass) << v.cause;
  EXPECT_TRUE(v.formula && v.formula->skipped.empty());
}

/// V = 8: half of each tile of what a scan left is filled with zeros by copies of no bytes.
TEST(FormulaVerdict, ACopyOfNoBytesBringsZerosWithoutErrors) {
  const std::string token = "gated_delta_rule.chunk/B1/T7/H1/HV1/K16/V8/bf16/g-fp32/mild/s1/backward";
  const Verification v = judged(token, find_kernel("gated_delta_rule.chunk"), kAlways);
  EXPECT_EQ(v.verdict, Verdict::pass) << v.cause;
}

/// One key, a rate of 2: roundings may all conspire, and an arithmetic within the declared one overflows
/// (tests/kernels/delta/repeated_key_test.cpp), so that in the end no bound is finite. A formula that is
/// wrong by a thousandth is found all the same, and what nobody judged stays open.
TEST(FormulaVerdict, WhereNoBoundIsFiniteItDecides) {
  const std::string token = "delta_rule.chunk/B1/T900/H1/K1/V1/bf16/g-fp32/none/v-reflected/s1";
  const Verification v = judged(token, find_kernel("delta_rule.chunk"), kAlways);
  EXPECT_EQ(v.verdict, Verdict::pass) << v.cause;
  EXPECT_GT(v.outputs.front().by_formula, 100);
  EXPECT_EQ(v.outputs.front().undecided, 0);
  EXPECT_EQ(judged(token, find_kernel("delta_rule.chunk"), 0).verdict, Verdict::undecided);
  const Verification wrong = judged(token, scaled_kernel("delta_rule.chunk", 1.001f), kAlways);
  EXPECT_EQ(wrong.cause, "formula/o");
  // Nor is the shadows' own: what they may be off by outgrows doubles after some 1,600 tokens.
  const Verification longer = judged("delta_rule.chunk/B1/T2048/H1/K1/V1/bf16/g-fp32/none/v-reflected/s1",
                                     find_kernel("delta_rule.chunk"), kAlways);
  EXPECT_EQ(longer.verdict, Verdict::pass) << longer.cause;
  EXPECT_TRUE(longer.formula && longer.formula->unjudged() == 0);
}

/// A right formula says nothing of roundings: where they left values off by more than a quarter of their
/// size, no verdict calls the output right. Roundings that are declared may do that to these inputs, which
/// are told apart from what a kernel gets wrong.
TEST(FormulaVerdict, WhereRoundingsGrewWithoutABoundItDoesNotDecide) {
  const std::string token = "delta_rule.chunk/B1/T2048/H1/K1/V1/bf16/g-fp32/none/v-reflected/s5";
  const Verification v = judged(token, find_kernel("delta_rule.chunk"), kAlways);
  EXPECT_TRUE(v.formula && v.formula->output("o") && v.formula->output("o")->violation == 0);
  EXPECT_GT(v.outputs.front().undecided, 100);
  EXPECT_EQ(v.outputs.front().by_formula, 0);
  EXPECT_EQ(v.verdict, Verdict::domain) << v.cause;
  ASSERT_EQ(v.domain.size(), 1u);
  EXPECT_NE(v.domain.front().find("the safe range"), std::string::npos) << v.domain.front();
  EXPECT_EQ(judged(token, scaled_kernel("delta_rule.chunk", 1.001f), kAlways).cause, "formula/o");
}

/// Found among 5,000 cases: of a gradient, whose errors grow from the last token on and from the first.
TEST(FormulaVerdict, GradientsOfOneKeyBeyondTheSafeRangeAreOutOfTheDomain) {
  const std::string token =
      "gated_delta_rule.chunk/B1/T724/H1/HV1/K15/V16/bf16/g-fp32/late-reset/v-repeated/s694987/backward";
  const Verification v = judged(token, find_kernel("gated_delta_rule.chunk"), kAlways);
  EXPECT_EQ(v.verdict, Verdict::domain) << v.cause;
}

TEST(FormulaVerdict, AScaleOffByAHundredThousandthIsSeenEverywhere) {
  for (const std::string token : kTokens) {
    const std::string name = token.substr(0, token.find('/'));
    const Verification v = judged(token, scaled_kernel(name, 1 + 0x1p-16f), kAlways);
    EXPECT_EQ(v.verdict, Verdict::finding) << token;
    EXPECT_TRUE(v.formula && v.formula->violated()) << token << " " << v.cause;
  }
}

TEST(FormulaVerdict, ALargeRunSaysThatItIsNotJudged) {
  const Verification v = judged(kTokens[3], find_kernel("gla.fused_recurrent"), 1000);
  ASSERT_TRUE(v.formula);
  EXPECT_TRUE(v.formula->outputs.empty());
  EXPECT_NE(v.formula->skipped.find("--formula always"), std::string::npos) << v.formula->skipped;
}

}  // namespace
}  // namespace assay
