#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

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

}  // namespace
}  // namespace assay
