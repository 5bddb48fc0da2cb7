// Faults of one pass, one path, one term or one factor: named, and told from those that they resemble.
#include <cmath>

#include "src/verification/diagnosis/meanings/normaliser.h"
#include "tests/diagnosis/named_first.h"

namespace assay {
namespace {

using test::first_cause, test::predicted;

const char* const kChannels = "hgrn.chunk/B1/T75/H1/K1/V3/fp32/g-fp32/logsigmoid/s3/h0/backward/dht";
const char* const kGated = "gla.fused_recurrent/B1/T75/H2/K3/V4/fp32/g-fp32/logsigmoid/s3/h0";
const char* const kGradients =
    "gla.fused_recurrent/B1/T36/H2/K3/V4/fp32/g-fp32/logsigmoid/s3/h0/backward/dht";

/// A meaning's variant, given as what the kernel computed.
struct PartialRow {
  const char *token, *cause, *variant;
};
const PartialRow kPartialRows[] = {
    {kChannels, "decay-shifted-one-step", "g of the token before in each chunk of 16, the outermost kept"},
    {kChannels, "decay-exclusive-for-inclusive",
     "what is read lacks the reader's own decay in the chunk of 32 that it enters"},
    {kGated, "decay-exclusive-for-inclusive",
     "what is read lacks the reader's own decay in the chunk of 64 that it enters"},
    {kGated, "decay-inclusive-for-exclusive",
     "a write has decayed by its own gate in the chunk of 64 that it leaves"},
    {kGated, "decay-exclusive-for-inclusive",
     "the chunk's first token does not decay from the state before a chunk of 64 to its tokens"},
    {kGated, "decay-inclusive-for-exclusive",
     "the chunk's last token decays twice in the states before chunks of 64 and the final one"},
    {kChannels, "state-of-another-chunk",
     "dg in a chunk of 32 is made of states that go on from the start of the chunk before"},
    {kChannels, "state-lost-at-chunk-edges",
     "dg in a chunk of 32 is made of states that begin with zero there"},
    {kGradients, "state-lost-at-chunk-edges",
     "dg in a chunk of 16 is made of gradients that end with zero there"},
    {"short_conv.fused/B1/T9/H1/K4/V5/fp32/g-fp32/none/s2/h0", "operand-layout",
     "initial_state read backwards along K"},
    {"rwkv7.fused_recurrent/B1/T9/H2/K3/V4/fp32/g-fp32/logsigmoid/s3/h0", "operands-exchanged",
     "k read in place of r"},
    {"linear_attn_norm.chunk/B1/T40/H2/K3/V2/fp32/g-fp32/none/v-positive/s5/backward",
     "state-lost-at-chunk-edges", "the gradient of k through the divisor ends with each chunk of 16"},
    {"gate_softplus.fused/B1/T9/H2/K3/V1/fp32/g-fp32/none/s5", "operand-of-another-channel",
     "bias of another channel, 0 for all"},
    {kGated, "gate-of-another-token", "g of the first token of every 16 for all of it"},
    {kGated, "operand-of-another-token", "v of the last token of every 4 for all of it"},
    {kGated, "operands-exchanged", "k read in place of q"},
    {kGated, "state-of-another-chunk", "a chunk of 16 continues from the state with half its number"},
    {kGated, "state-of-another-chunk", "a chunk of 16 continues from the state with twice its number"},
    {kGated, "state-of-another-chunk", "a chunk of 32 continues from the state with the next number"},
    {kGated, "decay-inclusive-for-exclusive",
     "the decays of both ends lie between a write and what reads it"},
    {"rwkv6.fused_recurrent/B1/T36/H2/K3/V4/fp32/g-fp32/logsigmoid/s3/h0/backward",
     "decay-inclusive-for-exclusive", "the decays of both ends lie between a write and what reads it"},
    {kGated, "operand-rounded", "v cut off to bf16"},
    {kGated, "operand-rounded", "all operands cut off to tf32"},
    {"merge_heads.fused/B1/T5/H2/K3/V20/fp32/g-fp32/none/s3", "accumulator-not-cleared",
     "tiles of 32 heads and channels of x enter once more with every later one"},
    {kGradients, "scale-missing", "q enters without the scale"},
    {kGradients, "scale-of-a-state", "dfinal_state is multiplied by the scale"},
    {"gsa.fused_recurrent/B1/T7/H2/K3/V4/M3/fp32/g-fp32/mild/s3/h0", "softmax-base",
     "the softmax has 2^x for e^x"},
    {"gsa.fused_recurrent/B1/T7/H2/K3/V4/M3/fp32/g-fp32/mild/s3/h0/backward", "softmax-base",
     "the softmax has 2^x for e^x, its gradient is that of e^x"},
    {"gate_softplus.fused/B1/T150/H2/K3/V1/fp32/g-fp32/none/s5/backward", "token-counted-twice",
     "of 150 tokens all but the first of every 32 enter a sum twice"},
    {"linear_attn_norm.chunk/B1/T9/H2/K3/V2/fp32/g-fp32/none/v-positive/s5/backward", "diagonal-missing",
     "the token's own part of dk through the divisor is missing"},
};

TEST(PartialMeanings, EachIsNamedFirst) {
  for (const PartialRow& row : kPartialRows) {
    test::MutatedRun scene(parse_token(row.token));
    const auto p = predicted(scene.run(), row.cause, row.variant);
    ASSERT_TRUE(p) << row.variant;
    EXPECT_EQ(first_cause(scene, *p), row.cause) << row.token << ": " << row.variant;
  }
}

/// Gradients that are products of both passes are left open; those of one pass are not.
TEST(PartialMeanings, AFaultOfOnePassLeavesTheGatesGradientOpen) {
  test::MutatedRun scene(parse_token(kChannels));
  const FailingRun run = scene.run();
  Prediction p = *predicted(run, "decay-shifted-one-step", "g of the token before, the outermost kept");
  for (size_t i = 0; i < p.at("dg").mid.size(); ++i) p.at("dg").mid[i] += 0.5 + static_cast<double>(i % 5);
  EXPECT_EQ(first_cause(scene, p), "decay-shifted-one-step");
  for (size_t i = 0; i < p.at("dx").mid.size(); i += 2) p.at("dx").mid[i] += 0.5 + static_cast<double>(i % 5);
  EXPECT_NE(first_cause(scene, p), "decay-shifted-one-step");
}

/// dg of stale states, written out for one channel.
TEST(PartialMeanings, AGateGradientOfStaleStatesIsTheNaiveOne) {
  test::MutatedRun scene(parse_token("hgrn.chunk/B1/T40/H1/K1/V1/fp32/g-fp32/mild/s3/h0/backward/dht"));
  const FailingRun run = scene.run();
  const Prediction p =
      *predicted(run, "state-of-another-chunk",
                 "dg in a chunk of 16 is made of states that go on from the start of the chunk before");
  const auto at = [&](const char* name, int64_t t) { return run.inputs().at(name).value(t); };
  std::vector<double> S{at("initial_state", 0)};
  for (int64_t t = 0; t < 40; ++t) S.push_back(std::exp(at("g", t)) * S.back() + at("x", t));
  double G = at("dfinal_state", 0);
  for (int64_t t = 39; t >= 0; --t) {
    const int64_t start = t / 16 * 16;
    double stale = S[static_cast<size_t>(std::max<int64_t>(start - 16, 0))];
    for (int64_t j = start; j < t; ++j) stale = std::exp(at("g", j)) * stale + at("x", j);
    G += at("do", t);
    const double dg = std::exp(at("g", t)) * stale * G;
    EXPECT_NEAR(p.at("dg").mid[static_cast<size_t>(t)], dg, 1e-9 * (1 + std::fabs(dg))) << t;
    G *= std::exp(at("g", t));
  }
}

/// What the recurrence gives where pairs of tokens in two parts of 16 of one chunk of 32 are left out.
TEST(PartialMeanings, PairsBetweenPartsOfAChunkThatAreLeftOutAreATerm) {
  test::MutatedRun scene(parse_token("gla.fused_recurrent/B1/T40/H1/K1/V1/fp32/g-fp32/mild/s3"));
  const auto at = [&](const char* name, int64_t t) { return scene.inputs().at(name).value(t); };
  Prediction p = reference_prediction(scene.run());
  p.erase("final_state");
  for (int64_t i = 0; i < 40; ++i) {
    double o = 0;
    for (int64_t j = 0; j <= i; ++j) {
      if (i / 32 == j / 32 && i / 16 != j / 16) continue;
      double decay = 0;
      for (int64_t t = j + 1; t <= i; ++t) decay += at("g", t);
      o += std::exp(decay) * at("q", i) * at("k", j) * at("v", j) * scene.run().problem.scale;
    }
    p.at("o").mid[static_cast<size_t>(i)] = o;
  }
  scene.store(p);
  const Weighed w = weigh_meanings(test::wrong_directions(scene), 60);
  ASSERT_FALSE(w.fitting.empty());
  EXPECT_EQ(w.fitting.front().cause, "term-reweighed");
  EXPECT_NE(w.fitting.front().explanation.find("between parts of 16 of one chunk of 32 enters o not at all"),
            std::string::npos)
      << w.fitting.front().explanation;
}

TEST(PartialMeanings, ADivisorsPartThatIsMissingIsATerm) {
  test::MutatedRun scene(
      parse_token("linear_attn_norm.chunk/B1/T9/H2/K3/V2/fp32/g-fp32/none/v-positive/s5/backward"));
  const std::vector<DivisorPart> parts = divisor_gradients(scene.run(), false);
  const Prediction p = combine(1, reference_prediction(scene.run()), -1, parts[0].part);
  EXPECT_EQ(first_cause(scene, {{"dq", p.at("dq")}}), "term-reweighed");
}

TEST(PartialMeanings, AFaultInABlockOfChannelsIsNamedWithThem) {
  test::MutatedRun scene(parse_token("gla.fused_recurrent/B1/T20/H1/K24/V24/fp32/g-fp32/logsigmoid/s3/h0"));
  const FailingRun run = scene.run();
  Prediction written = reference_prediction(run);
  const Prediction all = *predicted(run, "gate-missing", "g: no decay at all");
  for (auto& [name, output] : written)
    for (size_t i = 0; i < output.mid.size(); ++i)
      if (i % 24 >= 16) output.mid[i] = all.at(name).mid[i];
  scene.store(written);
  const Weighed w = weigh_meanings(test::wrong_directions(scene), 60);
  ASSERT_FALSE(w.fitting.empty());
  EXPECT_EQ(w.fitting.front().cause, "gate-missing");
  EXPECT_NE(w.fitting.front().explanation.find("in V 16-23 of o"), std::string::npos)
      << w.fitting.front().explanation;
  const Tensor& g = run.inputs().at("g");
  scene.store(
      *evaluate_with(run, "g", mapped(g, [](double x, int64_t flat) { return flat % 24 < 16 ? x : 2 * x; })));
  const Weighed read = weigh_meanings(test::wrong_directions(scene), 60);
  ASSERT_FALSE(read.fitting.empty());
  EXPECT_EQ(read.fitting.front().cause, "gate-applied-twice");
  EXPECT_NE(read.fitting.front().explanation.find("in channels from 16 on"), std::string::npos)
      << read.fitting.front().explanation;
}

TEST(PartialMeanings, ValuesCutOffInTheirOwnFormatAreRoundedNotScaled) {
  test::MutatedRun scene(parse_token("gla.fused_recurrent/B1/T6/H2/K3/V4/bf16/g-fp32/none/s3"));
  Prediction p = reference_prediction(scene.run());
  p.erase("final_state");
  for (double& x : p.at("o").mid) {
    const double near = round_to(Dtype::bf16, x);
    x = std::fabs(near) > std::fabs(x) ? near - std::copysign(ulp(Dtype::bf16, x), x) : near;
  }
  EXPECT_EQ(first_cause(scene, p), "output-rounded");
}

TEST(PartialMeanings, ASumOverHeadsIsNamed) {
  test::MutatedRun scene(parse_token("gla.fused_recurrent/B1/T12/H3/K3/V4/fp32/g-fp32/logsigmoid/s3/h0"));
  Prediction p = reference_prediction(scene.run());
  std::vector<double>& o = p.at("o").mid;
  for (size_t token = 0; token < o.size(); token += 12)
    for (size_t v = 0; v < 4; ++v)
      for (size_t h = 3; h-- > 1;)
        for (size_t before = 0; before < h; ++before) o[token + 4 * h + v] += o[token + 4 * before + v];
  p.erase("final_state");
  EXPECT_EQ(first_cause(scene, p), "heads-summed");
}

TEST(PartialMeanings, ATermHalvedIsToldFromOneLeftOutAndFromAScaledOutput) {
  test::MutatedRun scene(parse_token(kGradients));
  const FailingRun run = scene.run();
  const Prediction right = reference_prediction(run);
  const Tensor& d = run.inputs().at("dfinal_state");
  const Prediction without = *evaluate_with(run, "dfinal_state", Tensor("dfinal_state", Dtype::fp64, d.axes));
  const Prediction half = combine(0.5, right, 0.5, without);
  EXPECT_EQ(first_cause(scene, {{"dk", half.at("dk")}}), "term-reweighed");
  EXPECT_EQ(first_cause(scene, {{"dk", combine(-1, right, 2, without).at("dk")}}), "term-reweighed")
      << "the other sign";
  EXPECT_EQ(first_cause(scene, {{"dk", without.at("dk")}}), "gradient-without-final-state-term");
  EXPECT_EQ(first_cause(scene, {{"dk", combine(0.7, right, 0, right).at("dk")}}), "output-scaled");
}

TEST(PartialMeanings, AnOperandTimesAConstantIsToldFromAnOutputTimesOne) {
  test::MutatedRun scene(parse_token(kGated));
  const FailingRun run = scene.run();
  const Prediction p = *predicted(run, "operand-scaled", "v enters as itself times ln 2");
  EXPECT_EQ(first_cause(scene, p), "operand-scaled");
  EXPECT_EQ(
      first_cause(scene, {{"final_state", combine(0.69, reference_prediction(run), 0, p).at("final_state")}}),
      "output-scaled");
}

/// One token and channel: o = n / d, n = scale q k v, d = scale q k + eps; dk = scale q (do v - do o) / d.
TEST(PartialMeanings, GradientsThroughADivisorAreTheNaiveOnes) {
  test::MutatedRun scene(
      parse_token("linear_attn_norm.chunk/B1/T1/H1/K1/V1/fp32/g-fp32/none/v-positive/s5/backward"));
  const FailingRun run = scene.run();
  const auto at = [&](const char* name) { return run.inputs().at(name).value(0); };
  const double d = run.problem.scale * at("q") * at("k") + 1e-10,
               o = run.problem.scale * at("q") * at("k") * at("v") / d;
  for (const bool own : {true, false}) {
    const std::vector<DivisorPart> parts = divisor_gradients(run, own);
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_NEAR(parts[1].part.at("dk").mid[0], -run.problem.scale * at("q") * at("do") * o / d, 1e-12);
    EXPECT_NEAR(parts[0].part.at("dq").mid[0], -run.problem.scale * at("k") * at("do") * o / d, 1e-12);
  }
}

/// dn = do / d without the scale: dv and the parts of dq and dk that go through the numerator are divided by
/// it.
TEST(PartialMeanings, ANumeratorsGradientWithoutTheScaleIsATermReweighed) {
  test::MutatedRun scene(
      parse_token("linear_attn_norm.chunk/B1/T9/H2/K3/V2/fp32/g-fp32/none/v-positive/s5/backward"));
  const FailingRun run = scene.run();
  Prediction p = combine(1 / run.problem.scale, reference_prediction(run), 0, reference_prediction(run));
  for (const DivisorPart& part : divisor_gradients(run, false))
    for (const auto& [name, whole] : part.part)
      for (size_t i = 0; i < whole.mid.size(); ++i)
        p.at(name).mid[i] += (1 - 1 / run.problem.scale) * whole.mid[i];
  EXPECT_EQ(first_cause(scene, p), "term-reweighed");
}

}  // namespace
}  // namespace assay
