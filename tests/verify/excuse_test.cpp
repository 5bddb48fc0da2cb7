// Which undecided elements are no verdict on the kernel: those that use a state which declared roundings may
// lose, and of which all else is known.
#include "src/verification/verify/excuse.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/verification/verify/verdict.h"

namespace assay {
namespace {

constexpr double kForgets = 1.9, kKeeps = 2;  ///< rates: errors along one key are forgotten, or not

/// `o` of a delta rule that reads and writes with one key, as if some of its elements had no bound.
struct Open {
  ResolvedCase c;
  TensorMap inputs;
  ProgramRun run;
  Judgement judged;
  Verification v;

  explicit Open(const std::string& token) : c(resolve(parse_token(token), find_operator("delta_rule"))) {
    inputs = draw_inputs(c, 1);
    for (const char* name : {"q", "k"}) fill(name, 1);
    fill("beta", kKeeps);
    Arithmetic& a = judged.problem.arithmetic;
    a.chunk = 64, a.solve_tokens = 16, a.update = 0x1p-9;
    judged.problem.sizes.HV = c.case_.H;
    Tensor o("o", Dtype::bf16, inputs.at("v").axes);
    const auto n = static_cast<size_t>(o.size());
    for (size_t i = 0; i < n; ++i) o.set(static_cast<int64_t>(i), 1);
    ReferenceOutput& expected = judged.reference.outputs.emplace_back();
    expected.name = "o", expected.mid.assign(n, 1), expected.rad.assign(n, 0), expected.bound.assign(n, 1);
    OutputComparison& compared = v.outputs.emplace_back();
    compared.name = "o", compared.elements = o.size(), compared.verdicts.assign(n, ElementVerdict::ok);
    v.formula.emplace().outputs.push_back({"o", o.size(), o.size(), 0, {}, 0, 1e-5});
    run.outcome.outputs.emplace("o", std::move(o));
  }
  void fill(const char* name, double value) {
    Tensor& x = inputs.at(name);
    for (int64_t i = 0; i < x.size(); ++i) x.set(i, value);
  }
  Open& rate(int64_t first, int64_t end, int64_t head, double value) {
    Tensor& beta = inputs.at("beta");
    for (int64_t t = first; t < end; ++t) beta.set(t * c.case_.H + head, value);
    return *this;
  }
  Open& open(int64_t token, int64_t head = 0) {
    const auto i = static_cast<size_t>(token * c.case_.H + head);
    judged.reference.outputs[0].bound[i] = std::numeric_limits<double>::infinity();
    v.outputs[0].verdicts[i] = ElementVerdict::undecided, ++v.outputs[0].undecided;
    decide(v);
    return *this;
  }
  Verdict excused_by_growth() {
    excuse_growth(c, run, judged, inputs, v);
    return v.verdict;
  }
  Verdict excused() {
    excuse_lost_states(c, run, judged, inputs, v);
    return v.verdict;
  }
};

const char* const kOne = "delta_rule.chunk/B1/T600/H1/K1/V1/bf16/g-fp32/none/s1";

TEST(Excuse, IsOfElementsThatUseALostState) {
  Open one(kOne);
  EXPECT_EQ(one.open(599).excused(), Verdict::domain);
  ASSERT_EQ(one.v.domain.size(), 1u);
  EXPECT_NE(one.v.domain[0].find("safe range"), std::string::npos) << one.v.domain[0];
  // Before it can be lost.
  EXPECT_EQ(Open(kOne).open(599).open(10).excused(), Verdict::undecided);
  // Where errors are forgotten nothing is.
  EXPECT_EQ(Open(kOne).rate(0, 600, 0, kForgets).open(599).excused(), Verdict::undecided);
}

TEST(Excuse, IsOfNoOtherSequenceAndHead) {
  const char* const packed = "delta_rule.chunk/B1/T900/H1/K1/V1/cu0,500,900/bf16/g-fp32/none/s1";
  EXPECT_EQ(Open(packed).rate(500, 900, 0, kForgets).open(499).excused(), Verdict::domain);
  EXPECT_EQ(Open(packed).rate(500, 900, 0, kForgets).open(499).open(899).excused(), Verdict::undecided);
  const char* const heads = "delta_rule.chunk/B1/T600/H2/K1/V1/bf16/g-fp32/none/s1";
  EXPECT_EQ(Open(heads).rate(0, 600, 1, kForgets).open(599, 0).excused(), Verdict::domain);
  EXPECT_EQ(Open(heads).rate(0, 600, 1, kForgets).open(599, 1).excused(), Verdict::undecided);
}

TEST(Excuse, IsOfNumbersWhoseFormulaIsRight) {
  for (const double value : {std::nan(""), HUGE_VAL}) {
    Open wrong(kOne);
    wrong.run.outcome.outputs.at("o").set(599, value);
    EXPECT_EQ(wrong.open(599).excused(), Verdict::undecided) << value;
  }
  Open unjudged(kOne);
  unjudged.v.formula.reset();
  EXPECT_EQ(unjudged.open(599).excused(), Verdict::undecided);
  Open part(kOne);
  part.v.formula->outputs[0].judged -= 1;
  EXPECT_EQ(part.open(599).excused(), Verdict::undecided);
  Open coarse(kOne);
  coarse.v.formula->outputs[0].max_allowed = 0.5;
  EXPECT_EQ(coarse.open(599).excused(), Verdict::undecided);
  Open unknown(kOne);
  unknown.judged.reference.outputs[0].rad[599] = HUGE_VAL;
  EXPECT_EQ(unknown.open(599).excused(), Verdict::undecided);
}

/// Of two heads the second one's keys are twice as long: |1 - 1.9 4| a token, above 1,024 with the fourth.
Open lengthened() {
  Open two("delta_rule.chunk/B1/T600/H2/K1/V1/bf16/g-fp32/none/s1");
  two.rate(0, 600, 0, kForgets).rate(0, 600, 1, kForgets);
  for (int64_t t = 0; t < 600; ++t) two.inputs.at("k").set(2 * t + 1, 2);
  return two;
}

TEST(Excuse, OfGrowthIsOfUndecidedElementsOfItsHeadFromThereOn) {
  EXPECT_EQ(lengthened().open(3, 1).open(599, 1).excused_by_growth(), Verdict::domain);
  EXPECT_EQ(lengthened().open(2, 1).excused_by_growth(), Verdict::undecided);
  EXPECT_EQ(lengthened().open(599, 1).open(599, 0).excused_by_growth(), Verdict::undecided);
  Open wrong = lengthened();
  wrong.run.outcome.outputs.at("o").set(2 * 599 + 1, std::nan(""));
  EXPECT_EQ(wrong.open(599, 1).excused_by_growth(), Verdict::undecided);
  Open decided = lengthened();
  decided.v.verdict = Verdict::undecided;  // of something else
  EXPECT_EQ(decided.excused_by_growth(), Verdict::undecided);
}

/// It ran, and what two of its runs say of each other needs no bound.
TEST(Excuse, LeavesPropertiesToBeJudged) {
  Open one(kOne);
  ASSERT_EQ(one.open(599).excused(), Verdict::domain);
  EXPECT_TRUE(was_run(one.v));
  one.v.properties_failed.emplace_back("packed-equals-separate: sequence 1 of 2 alone");
  decide(one.v);
  EXPECT_EQ(one.v.verdict, Verdict::finding);
  Verification refused;
  refused.domain.emplace_back("g[b=0] = 0.5: above 0");
  decide(refused);
  EXPECT_FALSE(was_run(refused));
}

}  // namespace
}  // namespace assay
