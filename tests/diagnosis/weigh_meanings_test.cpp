#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "src/diagnosis/meanings/normaliser.h"
#include "src/diagnosis/unexplained.h"
#include "tests/diagnosis/mutated_run.h"

namespace assay {
namespace {

/// Small cases in which most meanings can show: heads, sequences, K other than V or the same, both directions.
const char* const kScenes[] = {
    "gla.fused_recurrent/B1/T36/H3/K5/V4/fp32/g-fp32/logsigmoid/s1/cu0,19,36/h0",
    "gla.fused_recurrent/B2/T19/H2/K4/V4/fp32/g-fp32/mild/s2/h0/backward/dht",
    "rwkv6.fused_recurrent/B2/T18/H3/K4/V6/fp32/g-fp32/logsigmoid/s3/h0",
};

/// Directions with a wrong output only, as the pipeline asks.
FailingRun wrong_directions(const test::MutatedRun& scene) {
  FailingRun run = scene.run();
  const bool forward = run.forward, backward = run.backward;
  run.forward = run.backward = false;
  for (const OutputComparison* o : run.wrong()) (o->name[0] == 'd' ? run.backward : run.forward) = true;
  run.forward &= forward, run.backward &= backward;
  return run;
}

double score_of_cause(const Weighed& w, std::string_view cause) {
  for (const Diagnosis& d : w.fitting)
    if (d.cause == cause) return d.score;
  return 0;
}

TEST(WeighMeanings, ADefectOfItsKindIsNamedByEveryMeaningNoOtherBeforeIt) {
  std::set<std::string_view> shown;
  for (const char* token : kScenes) {
    test::MutatedRun scene(parse_token(token));
    const FailingRun clean = with_explicit_gates(scene.run());
    for (const Meaning& meaning : meanings()) {
      for (const Variant& variant : meaning.variants(clean)) {
        scene.store({});
        const std::optional<Prediction> prediction = variant.predict();
        if (!prediction || variant.approximate) continue;
        scene.store(*prediction);
        if (!scene.wrong()) continue;
        shown.insert(meaning.name);
        const Weighed weighed = weigh_meanings(wrong_directions(scene), 60);
        ASSERT_FALSE(weighed.fitting.empty()) << token << ": " << meaning.name << ", " << variant.text;
        const Diagnosis& first = weighed.fitting.front();
        // Another meaning may give the same values here; none may fit better.
        EXPECT_GE(score_of_cause(weighed, meaning.name), first.score - 0.03)
            << token << ": " << meaning.name << ", " << variant.text << "; first " << first.cause << ", " << first.explanation;
        break;
      }
    }
  }
  EXPECT_GE(shown.size(), 40u);
}

TEST(WeighMeanings, ARightRunHasNone) {
  for (const char* token : kScenes) {
    const Weighed weighed = weigh_meanings(test::MutatedRun(parse_token(token)).run(), 60);
    EXPECT_TRUE(weighed.fitting.empty());
    EXPECT_EQ(weighed.tried, 0);
  }
}

TEST(WeighMeanings, WhatFitsNothingIsSaidToAndShownByItsPlaces) {
  test::MutatedRun scene(parse_token(kScenes[0]));
  Prediction noise;
  const ReferenceOutput& o = scene.reference().outputs.at(0);
  noise[o.name].mid = o.mid;
  for (size_t i = 0; i < o.mid.size(); i += 3) noise[o.name].mid[i] += 1 + static_cast<double>(i % 7) * 0.37;
  scene.store(noise);
  const FailingRun run = wrong_directions(scene);
  const Weighed weighed = weigh_meanings(run, 60);
  EXPECT_GT(weighed.tried, 100);
  for (const Diagnosis& d : weighed.fitting) EXPECT_LT(d.score, 0.5) << d.cause;
  std::vector<Diagnosis> found;
  add_unexplained(*run.judged, weighed, found);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].cause, "unexplained");
  EXPECT_NE(found[0].evidence.at(0).find("o: "), std::string::npos);
  EXPECT_NE(found[0].evidence.back().find("mutated meanings of the operator were tried"), std::string::npos);
}

TEST(WeighMeanings, APlantedGateOfTheFirstHeadIsNamedWithItsNumbers) {
  const Case c = parse_token(kScenes[0]);
  test::MutatedRun scene(c);
  const FailingRun clean = scene.run();
  const Tensor& g = clean.inputs().at("g");
  scene.store(*evaluate_with(clean, "g", moved(g, axis_of(g, "H"), [](int64_t) { return int64_t{0}; })));
  const Weighed weighed = weigh_meanings(wrong_directions(scene), 60);
  ASSERT_FALSE(weighed.fitting.empty());
  EXPECT_EQ(weighed.fitting[0].cause, "gate-of-another-head");
  EXPECT_NE(weighed.fitting[0].explanation.find("g of another head, 0 for all"), std::string::npos);
  EXPECT_NE(weighed.fitting[0].evidence.at(0).find("wrong elements are within their bound"), std::string::npos);
}

/// The first cause where `prediction` is what the kernel gave.
std::string first_cause(test::MutatedRun& scene, const Prediction& prediction) {
  scene.store(prediction);
  EXPECT_TRUE(scene.wrong());
  const Weighed weighed = weigh_meanings(wrong_directions(scene), 60);
  return weighed.fitting.empty() ? "" : weighed.fitting.front().cause;
}

TEST(WeighMeanings, TheFinalStatesGradientLeftOutOfDgAloneIsToldFromLeftOutOfAll) {
  test::MutatedRun scene(parse_token(kScenes[1]));
  const FailingRun clean = scene.run();
  const auto without = evaluate_with(clean, "dfinal_state", Tensor("dfinal_state", Dtype::fp64,
                                                                   clean.inputs().at("dfinal_state").axes));
  EXPECT_EQ(first_cause(scene, *without), "gradient-without-final-state-term");
  EXPECT_EQ(first_cause(scene, {{"dg", without->at("dg")}}), "gate-gradient-without-final-state-term");
}

TEST(WeighMeanings, AConstantMissingFromTheLastChunkOfDgIsNamed) {
  test::MutatedRun scene(parse_token("gla.fused_recurrent/B1/T75/H1/K3/V4/fp32/g-fp32/mild/s2/h0/backward/dht"));
  Prediction p = reference_prediction(scene.run());
  PredictedOutput& dg = p.at("dg");
  for (size_t i = 64 * 3; i < dg.mid.size(); ++i) dg.mid[i] -= 0.25 + static_cast<double>(i % 3);
  EXPECT_EQ(first_cause(scene, {{"dg", dg}}), "gate-gradient-without-final-state-term");
  for (size_t i = 64 * 3; i < dg.mid.size(); ++i) dg.mid[i] += 0.1 * static_cast<double>(i % 7);
  EXPECT_NE(first_cause(scene, {{"dg", dg}}), "gate-gradient-without-final-state-term") << "no constant";
}

TEST(WeighMeanings, RowsThatABlockCountsOfTheNextAreToldFromAScaledSum) {
  test::MutatedRun scene(parse_token("gate_softplus.fused/B1/T150/H2/K3/V1/fp32/g-fp32/none/s5/backward"));
  const FailingRun clean = scene.run();
  const Tensor twice = mapped(clean.inputs().at("dg"), [](double x, int64_t flat) {
    return flat / 6 >= 128 && flat / 6 < 128 + 16 ? 2 * x : x;
  });
  Prediction p = *evaluate_with(clean, "dg", twice);
  p.erase("dx");
  EXPECT_EQ(first_cause(scene, p), "token-counted-twice");
  Prediction scaled = reference_prediction(clean);
  scaled.erase("dx");
  for (auto& [name, output] : scaled)
    for (double& x : output.mid) x *= 1.0625;
  EXPECT_EQ(first_cause(scene, scaled), "output-scaled");
}

TEST(WeighMeanings, ADivisorOfItsOwnChunkIsNamedWithAndWithoutTheInitialOne) {
  test::MutatedRun scene(parse_token("linear_attn_norm.chunk/B1/T40/H2/K3/V2/fp32/g-fp32/none/v-positive/s5/h0"));
  const FailingRun clean = scene.run();
  int shown = 0;
  for (const Variant& variant : divisor_of_own_chunk(clean)) {
    scene.store({});
    const std::optional<Prediction> p = variant.predict();
    scene.store(*p);
    if (!scene.wrong()) continue;
    ++shown;
    EXPECT_EQ(first_cause(scene, *p), "state-lost-at-chunk-edges") << variant.text;
  }
  EXPECT_GE(shown, 4);
}

TEST(WeighMeanings, TwoRoundedOperandsAreToldFromOne) {
  test::MutatedRun scene(parse_token(kScenes[0]));
  const FailingRun clean = scene.run();
  TensorMap inputs = clean.inputs();
  for (const char* name : {"q", "v"})
    inputs[name] = mapped(inputs.at(name), [](double x, int64_t) { return round_to(Dtype::bf16, x); });
  scene.store(*evaluate_with(clean, inputs));
  const Weighed weighed = weigh_meanings(wrong_directions(scene), 60);
  ASSERT_FALSE(weighed.fitting.empty());
  EXPECT_EQ(weighed.fitting[0].cause, "operand-rounded");
  EXPECT_NE(weighed.fitting[0].explanation.find("q and v rounded to bf16"), std::string::npos);
}

TEST(WeighMeanings, RowsReadWiderThanTheyAreStoredAreALayout) {
  test::MutatedRun scene(parse_token("gla.fused_recurrent/B1/T21/H2/K3/V4/fp32/g-fp32/mild/s4/h0"));
  const FailingRun clean = scene.run();
  const Meaning* layout = nullptr;
  for (const Meaning& meaning : meanings())
    if (meaning.name == "operand-layout") layout = &meaning;
  ASSERT_TRUE(layout);
  for (const Variant& variant : layout->variants(clean)) {
    if (variant.text != "rows of 3 elements read 4 apart, and as long, in tiles of 8 tokens") continue;
    EXPECT_EQ(first_cause(scene, *variant.predict()), "operand-layout");
    return;
  }
  FAIL() << "no such variant";
}

}  // namespace
}  // namespace assay
