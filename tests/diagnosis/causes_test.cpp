#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "src/verification/diagnosis/causes/gate_span.h"
#include "src/verification/diagnosis/diagnose.h"

namespace assay {
namespace {

/// An overflow of the gate rows [first, last] of channel 1 behind output row `output_row`, in a sequence of
/// `length`.
struct Scene {
  Case case_;
  TensorMap inputs;
  OriginTrace trace;

  Scene(int64_t length, int64_t first, int64_t last, int64_t output_row, double gate = -30) {
    case_.kernel = "a_strangers_kernel";
    case_.T = length;
    Tensor g("g", Dtype::fp32, {{"B", 1}, {"T", length}, {"H", 1}, {"K", 2}});
    for (int64_t t = 0; t < length; t++) g.set(2 * t + 1, gate);
    inputs["g"] = g;
    trace.origin.kind = OriginKind::exp_overflow;
    trace.origin.element = "o[b=0,t=" + std::to_string(output_row) + ",h=0,v=0]";
    trace.origin.operands.push_back(
        {"%f1", "f32", -gate * static_cast<double>(last - first + 1) * 0x1.71547652b82fep+0, 0});
    for (int64_t t = 0; t <= last; t++)
      trace.input_elements.emplace_back("g", 2 * t + 1);  // a sum from the chunk's start
  }
  Evidence evidence() const { return {&case_, &inputs, &trace, nullptr, nullptr, &find_operator("gla")}; }
  std::string best() const {
    const std::vector<Diagnosis> found = diagnose(evidence());
    return found.empty() ? "" : found.front().cause;
  }
};

TEST(Causes, TheSpanOfAnOverflowIsReadOffItsExponent) {
  const Scene scene(100, 17, 20, 16);
  const auto span = gate_span(scene.evidence());
  ASSERT_TRUE(span);
  EXPECT_EQ(span->first, 17);
  EXPECT_EQ(span->last, 20);
  EXPECT_TRUE(span->later_than_output());
}

TEST(Causes, RowsAreCountedFromTheStartOfTheOutputsSequence) {
  Scene scene(100, 57, 60, 56);
  scene.case_.cu_seqlens = {0, 40, 100};
  EXPECT_EQ(gate_span(scene.evidence())->first, 17);
  EXPECT_EQ(gate_span(scene.evidence())->output_row, 16);
}

TEST(Causes, AnExponentThatNoRunOfRowsExplainsHasNoSpan) {
  Scene scene(100, 17, 20, 16);
  scene.trace.origin.operands[0].value *= 1.1;
  EXPECT_FALSE(gate_span(scene.evidence()));
}

TEST(Causes, ARunOfRowsWithAGapHasNoSpan) {
  Scene scene(100, 17, 20, 16);
  std::erase(scene.trace.input_elements, std::pair<std::string, int64_t>("g", 2 * 19 + 1));
  scene.inputs["g"].set(2 * 16 + 1, -30);  // rows 16, 17, 18 and 20 would sum to the exponent
  EXPECT_FALSE(gate_span(scene.evidence()));
}

TEST(Causes, AMaskedLaneIsToldFromALateAnchorAndFromZeroFilledRows) {
  Scene masked(128, 17, 20, 16);
  masked.trace.masked_by_product = true;
  EXPECT_EQ(masked.best(), "masked-lane-overflow");
  Scene masked_row(128, 17, 17, 16, -90);
  masked_row.trace.masked_by_product = true;
  EXPECT_EQ(masked_row.best(), "masked-lane-overflow");
  Scene masked_own_row(128, 16, 16, 16, -90);
  masked_own_row.trace.masked_by_product = true;
  EXPECT_EQ(masked_own_row.best(), "masked-lane-overflow");
  EXPECT_EQ(Scene(128, 17, 17, 16, -90).best(), "anchor-row-late");
  EXPECT_EQ(Scene(128, 16, 16, 16, -90).best(), "anchor-row-late");
  EXPECT_EQ(Scene(100, 64, 99, 70).best(), "zero-filled-gate-rows");
  EXPECT_EQ(Scene(80, 64, 79, 70).best(), "zero-filled-gate-rows") << "whole blocks of 16, no whole chunk";
  Scene masked_last_row(65, 64, 64, 63, -90);
  masked_last_row.trace.masked_by_product = true;
  EXPECT_EQ(masked_last_row.best(), "masked-lane-overflow");
}

/// The other rows, of which the sums on both sides hold too, decay by less than the tolerance of a sum.
TEST(Causes, ARowThatIsTheExponentToItsLastDigitsIsNotAllRows) {
  Scene spike(17, 16, 16, 16, -90);
  for (int64_t t = 0; t < 16; ++t) spike.inputs["g"].set(2 * t + 1, -0.02);
  EXPECT_FALSE(gate_span(spike.evidence())->whole);
  EXPECT_EQ(spike.best(), "anchor-row-late");
  spike.trace.origin.operands[0].value = (90 + 16 * 0.02) * 0x1.71547652b82fep+0;
  EXPECT_TRUE(gate_span(spike.evidence())->whole);
}

TEST(Causes, AnInverseOfTheDecaySinceTheChunksStartIsNamed) {
  EXPECT_EQ(Scene(40, 0, 8, 8, -10).best(), "unanchored-decay-factor");
  EXPECT_EQ(Scene(9, 0, 8, 8, -10).best(), "unanchored-decay-factor");
  EXPECT_EQ(Scene(1, 0, 0, 0, -100).best(), "unanchored-decay-factor");
  Scene masked(40, 0, 8, 8, -10);
  masked.trace.masked_by_product = true;
  EXPECT_EQ(masked.best(), "masked-lane-overflow");
  Scene state(40, 0, 39, 0);
  state.trace.origin.element = "final_state[n=0,h=0,k=1,v=0]";
  EXPECT_EQ(state.best(), "zero-filled-gate-rows");
}

/// One row alone decays in a shrunk case; where all do, the argument of an anchor one row late stays that of
/// one row.
TEST(Causes, ExponentsOfSeveralRowsAreNoLateAnchor) {
  Scene row(64, 0, 0, 8, -90);
  row.trace.origin.element = "final_state[n=0,h=0,k=1,v=0]";
  for (const bool several : {false, true}) {
    Evidence evidence = row.evidence();
    evidence.spans_rows = several;
    const std::vector<Diagnosis> found = diagnose(evidence);
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front().cause, several ? "unanchored-decay-factor" : "anchor-row-late");
  }
}

TEST(Causes, AnExponentOfOneRowWhereAllDecayAlikeIsNoSumSinceTheChunksStart) {
  Scene row(9, 0, 0, 0, -128);
  row.trace.output = "dv";
  Evidence evidence = row.evidence();
  evidence.finite_when_padded = false;
  EXPECT_EQ(diagnose(evidence).front().cause, "unanchored-decay-factor") << "for all that is known";
  evidence.spans_rows = false;
  EXPECT_EQ(diagnose(evidence).front().cause, "anchor-row-late");
}

TEST(Causes, AFullLastChunkRulesOutZeroFilledRows) {
  for (const Diagnosis& d : diagnose(Scene(128, 64, 127, 70).evidence()))
    EXPECT_NE(d.cause, "zero-filled-gate-rows");
}

TEST(Causes, EveryCauseIsSilentWithoutATraceAndNamedOnce) {
  EXPECT_TRUE(diagnose({}).empty());
  std::vector<std::string_view> names;
  for (const auto& [name, summary] : cause_names()) names.push_back(name);
  EXPECT_GE(names.size(), 60u);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(Causes, EachKindOfOriginHasItsCause) {
  const std::pair<OriginKind, const char*> rows[] = {{OriginKind::conversion_overflow, "format-overflow"},
                                                     {OriginKind::division_by_zero, "division-by-zero"},
                                                     {OriginKind::unwritten_memory, "unwritten-value"},
                                                     {OriginKind::accumulation_overflow, "sum-overflow"},
                                                     {OriginKind::logarithm_of_zero, "logarithm-of-zero"},
                                                     {OriginKind::input, "nonfinite-input"},
                                                     {OriginKind::exp_overflow, "positive-decay-exponent"}};
  for (const auto& [kind, cause] : rows) {
    OriginTrace trace;
    trace.origin.kind = kind;
    const Case c;
    const TensorMap inputs;
    EXPECT_EQ(diagnose({&c, &inputs, &trace}).at(0).cause, cause) << name_of(kind);
  }
}

/// An epsilon mends a sum of weights; not a decay that underflowed, and hides a softmax that did.
TEST(Causes, AQuotientOfZerosIsANormalisersOnlyWhereTheDivisorIsASumOfWeights) {
  const auto first = [](const ZeroDivisor& divisor) {
    Scene scene(4, 0, 0, 0);
    scene.trace.origin.kind = OriginKind::division_by_zero;
    scene.trace.origin.result = std::numeric_limits<double>::quiet_NaN();
    scene.trace.divisor = divisor;
    return scene.best();
  };
  EXPECT_EQ(first({{"g"}, true}), "division-by-zero");
  EXPECT_EQ(first({{"g", "k"}, false}), "normaliser-without-epsilon");
  EXPECT_EQ(first({{"q", "k"}, true}), "division-by-zero");
}

TEST(Causes, ChecksTrapsAndPropertiesHaveTheirs) {
  const std::pair<TrapKind, const char*> traps[] = {{TrapKind::out_of_bounds, "out-of-bounds"},
                                                    {TrapKind::misaligned, "misaligned-access"},
                                                    {TrapKind::hang, "hang"},
                                                    {TrapKind::barrier, "barrier-misuse"},
                                                    {TrapKind::launch, "launch-refused"},
                                                    {TrapKind::unwritten_read, "unwritten-value"},
                                                    {TrapKind::wgmma_race, "data-race"}};
  for (const auto& [kind, cause] : traps) {
    const Trap trap{.kind = kind, .message = "what happened"};
    Evidence e;
    e.trap = &trap;
    EXPECT_EQ(diagnose(e).at(0).cause, cause);
    EXPECT_EQ(diagnose(e).at(0).evidence.at(0), "what happened");
  }
  const std::pair<CheckKind, const char*> findings[] = {{CheckKind::race, "data-race"},
                                                        {CheckKind::never_written, "unwritten-value"},
                                                        {CheckKind::index_wrap, "index-wrap"},
                                                        {CheckKind::out_of_bounds, "out-of-bounds"}};
  for (const auto& [kind, cause] : findings) {
    CheckReport report;
    report.findings.push_back({check_of(kind), kind, "what was seen", {}, {}, ""});
    Evidence e;
    e.checks = &report;
    EXPECT_EQ(diagnose(e).at(0).cause, cause);
    EXPECT_EQ(diagnose(e).at(0).evidence.at(0), "what was seen");
  }
  const std::vector<std::string> failed{"causality: o differs"};
  Evidence e;
  e.properties = &failed;
  EXPECT_EQ(diagnose(e).at(0).cause, "future-token-included");
}

TEST(Causes, AnAbsentInputThatIsReadLacksNoBound) {
  const auto advice = [](const char* message) {
    const Trap trap{.kind = TrapKind::out_of_bounds, .message = message};
    Evidence e;
    e.trap = &trap;
    return diagnose(e).at(0).explanation;
  };
  EXPECT_NE(advice("ld.global.f32 of 4 bytes reaches the null pointer of an absent argument + 8 bytes")
                .find("has_g"),
            std::string::npos);
  EXPECT_EQ(advice("ld.global.f32 of 4 bytes reaches 4 bytes behind q").find("has_g"), std::string::npos);
}

TEST(Causes, FilledUpRowsTellDeadRowsFromLiveOnes) {
  Scene scene(1, 0, 0, 0, -100);
  Evidence e = scene.evidence();
  EXPECT_EQ(diagnose(e).at(0).cause, "unanchored-decay-factor");
  e.finite_when_padded = true;
  EXPECT_EQ(diagnose(e).at(0).cause, "zero-filled-gate-rows");
  e.finite_when_padded = false;
  EXPECT_EQ(diagnose(e).at(0).cause, "unanchored-decay-factor");
}

TEST(Causes, AnExponentOfOneRowWithinABlockIsAnAnchorsNotAChunkStarts) {
  EXPECT_EQ(Scene(9, 8, 8, 8, -100).best(), "anchor-row-late");
}

TEST(Causes, AZeroThatASelectPutThereIsAMaskedLaneUnlessRowsPastTheEndAreAtFault) {
  Scene masked(100, 17, 17, 18, -90);
  masked.trace.zero_selected = true;
  Evidence evidence = masked.evidence();
  evidence.finite_when_padded = false;
  EXPECT_EQ(diagnose(evidence).front().cause, "masked-lane-overflow");
  evidence.finite_when_padded = true;
  EXPECT_EQ(diagnose(evidence).front().cause, "zero-filled-gate-rows");
  Scene live(100, 17, 17, 18, -90);
  Evidence without_select = live.evidence();
  without_select.finite_when_padded = false;
  EXPECT_EQ(diagnose(without_select).front().cause, "anchor-row-late");
}

/// In a run from the last row on the blocks are counted from there, and padding moves them.
TEST(Causes, OfAGradientTheAnchorsRowIsCountedFromTheEndToo) {
  Scene reversed(12, 3, 3, 3, -90);
  Evidence evidence = reversed.evidence();
  evidence.finite_when_padded = true;
  EXPECT_EQ(diagnose(evidence).front().cause, "zero-filled-gate-rows") << "of o";
  reversed.trace.output = "dv";
  EXPECT_EQ(diagnose(evidence).front().cause, "anchor-row-late");
  Scene last(12, 11, 11, 3, -90);
  last.trace.output = "dv";
  evidence = last.evidence();
  evidence.finite_when_padded = true;
  EXPECT_EQ(diagnose(evidence).front().cause, "zero-filled-gate-rows")
      << "next to the rows that are not there";
}

TEST(Causes, AnArgumentOfMoreThanGatesIsNoDecay) {
  Scene logit(128, 17, 20, 16);
  logit.inputs["q"] = Tensor("q", Dtype::fp32, {{"B", 1}, {"T", 128}, {"H", 1}, {"K", 2}});
  EXPECT_NE(logit.best(), "exp-overflow");
  logit.trace.input_elements.emplace_back("q", 5);
  EXPECT_EQ(logit.best(), "exp-overflow");
}

TEST(Causes, AFiniteValueThatGrewWithAnExponentialsArgumentHadAPositiveExponent) {
  OutputComparison dk;
  dk.name = "dk", dk.violation = 1;
  dk.worst.element = "dk[b=0,t=1,h=0,k=0]";
  dk.worst.got = 0x1p90, dk.worst.expected = 0.5, dk.worst.bound = 1e-6;
  std::vector<OutputComparison> outputs{dk};
  std::vector<ExponentRange> exponents{{{"k.cu", 7, 9, "k", {}}, "ex2.approx.f32", -5, 92, 10, 0}};
  Evidence e;
  e.outputs = &outputs, e.exponents = &exponents, e.op = &find_operator("gla");
  ASSERT_FALSE(diagnose(e).empty());
  EXPECT_EQ(diagnose(e).front().cause, "positive-decay-exponent");
  exponents[0].max = 3;
  EXPECT_TRUE(diagnose(e).empty()) << "no exponential grew so far";
  exponents[0].max = 92, outputs[0].worst.got = 2;
  EXPECT_TRUE(diagnose(e).empty()) << "nor did the value";
}

/// The sum shows what the factor did.
TEST(Causes, ASumThatOverflowsByAnExponentialIsTheExponentials) {
  Scene scene(100, 17, 20, 16);
  scene.trace.origin.kind = OriginKind::accumulation_overflow;
  std::vector<ExponentRange> exponents(1);
  exponents[0].instruction = "ex2.approx.f32", exponents[0].max = 100;
  Evidence e = scene.evidence();
  e.exponents = &exponents;
  EXPECT_EQ(diagnose(e).at(0).cause, "positive-decay-exponent");
  exponents[0].max = 60;
  EXPECT_EQ(diagnose(e).at(0).cause, "sum-overflow") << "less than half of the range is the exponential's";
}

/// A constant of few digits is no other formula, however tight the declared arithmetic.
TEST(Causes, ARightFormulaBeyondTheBoundIsRoundedBeyondIt) {
  std::vector<OutputComparison> outputs(1);
  outputs[0].name = "o", outputs[0].violation = 1;
  outputs[0].worst.element = "o[0]", outputs[0].worst.got = 1.5, outputs[0].worst.expected = 1;
  outputs[0].worst.absolute = 0.5, outputs[0].worst.bound = 0.01;
  ShadowReport shadow;
  shadow.element.emplace();
  shadow.element->element = "o[0]", shadow.element->value = 1.5, shadow.element->exact = 1.1;
  FormulaReport formula;
  formula.outputs.emplace_back();
  formula.outputs[0].name = "o", formula.outputs[0].elements = formula.outputs[0].judged = 1;
  Evidence e;
  e.outputs = &outputs, e.shadow = &shadow, e.formula = &formula, e.op = &find_operator("gla");
  EXPECT_EQ(diagnose(e).at(0).cause, "rounding-beyond-declared");
  shadow.element->exact = 1.45;
  for (const Diagnosis& d : diagnose(e))
    EXPECT_NE(d.cause, "rounding-beyond-declared") << "a tenth of the error: the rest is no rounding";
  shadow.element->exact = 1.1;
  shadow.lines.push_back({{"kernels/a.cu", 12, 99, "x"}, "cvt.rn.bf16.f32", 80});
  EXPECT_EQ(
      diagnose(e).at(0).explanation,
      "round later or in a wider format at kernels/a.cu:12, which makes 80 % of the rounding errors; or, if "
      "it is meant so, declare that rounding as it is: all declared numbers about 50 times as large would "
      "hold it");
  formula.outputs[0].judged = 0;
  EXPECT_EQ(diagnose(e).at(0).cause, "formula-differs") << "nobody has judged it";
}

/// An overflow has nothing to do with a race elsewhere; one at a line of its chain may have made it.
TEST(Causes, AFaultThatTheChecksSawElsewhereStandsBehindTheOriginOfANaN) {
  for (const bool elsewhere : {true, false}) {
    Scene scene(100, 17, 20, 16);
    scene.trace.origin.where = {"kernels/a.cu", 12, 99, "x"};
    scene.trace.origin.chain.push_back({{"kernels/a.cu", 12, 99, "x"}, "", ""});
    CheckReport checks;
    CheckFinding race;
    race.kind = CheckKind::race;
    race.at.where = {"kernels/a.cu", elsewhere ? 40 : 12, 99, "x"};
    checks.findings.push_back(race);
    Evidence evidence = scene.evidence();
    evidence.checks = &checks;
    const std::vector<Diagnosis> found = diagnose(evidence);
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front().cause == "data-race", !elsewhere) << found.front().cause;
    EXPECT_TRUE(
        std::any_of(found.begin(), found.end(), [](const Diagnosis& d) { return d.cause == "data-race"; }));
  }
}

}  // namespace
}  // namespace assay
