#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <thread>
#include <vector>

#include "src/verification/diagnosis/meanings/normaliser.h"
#include "src/verification/diagnosis/meanings/paths.h"
#include "src/verification/diagnosis/thresholds.h"
#include "src/verification/diagnosis/unexplained.h"
#include "tests/diagnosis/named_first.h"

namespace assay {
namespace {

using test::first_cause, test::predicted, test::wrong_directions;

/// Small cases in which most meanings can show: heads, sequences, K other than V or the same, both
/// directions.
const char* const kScenes[] = {
    "gla.fused_recurrent/B1/T36/H3/K5/V4/fp32/g-fp32/logsigmoid/s1/cu0,19,36/h0",
    "gla.fused_recurrent/B2/T19/H2/K4/V4/fp32/g-fp32/mild/s2/h0/backward/dht",
    "rwkv6.fused_recurrent/B2/T18/H3/K4/V6/fp32/g-fp32/logsigmoid/s3/h0",
};

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
            << token << ": " << meaning.name << ", " << variant.text << "; first " << first.cause << ", "
            << first.explanation;
        break;
      }
    }
  }
  EXPECT_GE(shown.size(), 40u);
}

/// What else the host does is in no count: a thread that computes beside changes the time, not what is tried.
TEST(WeighMeanings, TheSameIsTriedHoweverLongItTakes) {
  test::MutatedRun scene(parse_token(kScenes[0]));
  Prediction wrong = reference_prediction(scene.run());
  for (auto& [name, output] : wrong)
    for (double& x : output.mid) x = 1.5 * x + 1;
  scene.store(wrong);
  constexpr double kShort = 0.02;  // counted seconds
  const Weighed first = weigh_meanings(wrong_directions(scene), kShort);
  ASSERT_GT(first.tried, 0);
  ASSERT_GT(first.left, 0);
  std::atomic<bool> over = false;
  std::vector<std::jthread> others;
  for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i)
    others.emplace_back([&] {
      while (!over) {
      }
    });
  const Weighed again = weigh_meanings(wrong_directions(scene), kShort);
  over = true;
  EXPECT_EQ(again.tried, first.tried);
  EXPECT_EQ(again.left, first.left);
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
  EXPECT_NE(weighed.fitting[0].evidence.at(0).find("wrong elements are within their bound"),
            std::string::npos);
}

TEST(WeighMeanings, TheFinalStatesGradientLeftOutOfDgAloneIsToldFromLeftOutOfAll) {
  test::MutatedRun scene(parse_token(kScenes[1]));
  const FailingRun clean = scene.run();
  const auto without = evaluate_with(
      clean, "dfinal_state", Tensor("dfinal_state", Dtype::fp64, clean.inputs().at("dfinal_state").axes));
  EXPECT_EQ(first_cause(scene, *without), "gradient-without-final-state-term");
  EXPECT_EQ(first_cause(scene, {{"dg", without->at("dg")}}), "gate-gradient-without-final-state-term");
}

/// Any wrong element is a number times the right one.
TEST(WeighMeanings, ANumberThatTheRunGaveSaysNothingOfOneElementAndIsKeptOfMany) {
  test::MutatedRun scene(parse_token(kScenes[0]));
  const ReferenceOutput& o = scene.reference().outputs.at(0);
  for (const bool all : {false, true}) {
    Prediction scaled;
    scaled[o.name].mid = o.mid;
    for (size_t i = 0; i < (all ? o.mid.size() : 1); ++i) scaled[o.name].mid[i] *= 1.3084;
    scene.store(scaled);
    const Weighed weighed = weigh_meanings(wrong_directions(scene), 60);
    EXPECT_EQ(score_of_cause(weighed, "output-scaled") >= thresholds::kExplained, all);
    if (!all) continue;
    EXPECT_NEAR(weighed.by_numbers.at("output-scaled").at(o.name), 1.3084, 1e-3);
  }
}

TEST(WeighMeanings, ErrorsThatFallTogetherSayMoreTheMoreThereAre) {
  Variant variant;
  variant.approximate = true;
  Fit fit;
  fit.wrong = 2, fit.explained = 1, fit.gain = 5;
  const double few = score_of(fit, variant, 16);
  fit.wrong = 200, fit.explained = 100;
  EXPECT_LT(few, 0.5);
  EXPECT_GT(score_of(fit, variant, 16), 0.8);
}

TEST(WeighMeanings, AConstantMissingFromTheLastChunkOfDgIsNamed) {
  test::MutatedRun scene(
      parse_token("gla.fused_recurrent/B1/T75/H1/K3/V4/fp32/g-fp32/mild/s2/h0/backward/dht"));
  Prediction p = reference_prediction(scene.run());
  PredictedOutput& dg = p.at("dg");
  for (size_t i = 64 * 3; i < dg.mid.size(); ++i) dg.mid[i] -= 0.25 + static_cast<double>(i % 3);
  EXPECT_EQ(first_cause(scene, {{"dg", dg}}), "gate-gradient-off-by-constant");
  for (size_t i = 64 * 3; i < dg.mid.size(); ++i) dg.mid[i] += 0.1 * static_cast<double>(i % 7);
  EXPECT_NE(first_cause(scene, {{"dg", dg}}), "gate-gradient-off-by-constant") << "no constant";
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
  test::MutatedRun scene(
      parse_token("linear_attn_norm.chunk/B1/T40/H2/K3/V2/fp32/g-fp32/none/v-positive/s5/h0"));
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

/// Two chunks of 64 and a part of one, both directions.
const char* const kChunked[] = {"gla.chunk/B1/T150/H2/K3/V2/fp32/g-fp32/logsigmoid/s3/h0",
                                "rwkv6.chunk/B1/T75/H1/K3/V2/fp32/g-fp32/logsigmoid/s3/h0/backward/dht"};

TEST(WeighMeanings, GatesAsTheyAreOnAnyPathGiveTheReference) {
  for (const char* token : kChunked) {
    const test::MutatedRun scene(parse_token(token));
    const FailingRun run = scene.run();
    const auto variants = gates_changed_on_a_path(run, "as given", [](const Tensor& g) { return g; });
    EXPECT_GE(variants.size(), 8u);
    for (const Variant& variant : variants) {
      const auto p = variant.predict();
      ASSERT_TRUE(p) << variant.text;
      for (const ReferenceOutput& o : scene.reference().outputs) {
        const PredictedOutput& got = p->at(o.name);
        for (size_t i = 0; i < o.mid.size() && o.name != "dw"; ++i)
          ASSERT_NEAR(got.mid[i], o.mid[i], 1e-9 * (1 + std::fabs(o.mid[i])))
              << token << ": " << variant.text << ", " << o.name;
      }
    }
  }
}

TEST(WeighMeanings, ADecayThatIsWrongOnOnePathIsNamedByWhatItIs) {
  test::MutatedRun scene(parse_token(kChunked[0]));
  const FailingRun run = scene.run();
  const char* const read = "no decay from the state before a chunk of 64 to its tokens";
  const char* const scan = "2^g for e^g in the states before chunks of 64 and the final one";
  EXPECT_EQ(first_cause(scene, *predicted(run, "gate-missing", read)), "gate-missing");
  EXPECT_EQ(first_cause(scene, *predicted(run, "decay-base", scan)), "decay-base");
  const char* const middle = "no decay in the chunks of 64 between a write and what reads it";
  EXPECT_EQ(first_cause(scene, *predicted(run, "gate-missing", middle)), "gate-missing");
  test::MutatedRun back(parse_token(kChunked[1]));
  const FailingRun backward = back.run();
  Prediction p = *predicted(backward, "decay-base", scan);
  EXPECT_EQ(first_cause(back, p), "decay-base");
  for (size_t i = 0; i < p.at("dw").mid.size(); ++i)  // of which the meaning says nothing
    p.at("dw").mid[i] = backward.expected("dw")->mid[i] + 1 + static_cast<double>(i % 7);
  EXPECT_EQ(first_cause(back, p), "decay-base");
}

/// No constant that stands in a table.
TEST(WeighMeanings, AGateThatEntersTimesAnyConstantIsNamedWithIt) {
  test::MutatedRun scene(parse_token("gla.chunk/B1/T40/H2/K3/V2/fp32/g-fp32/logsigmoid/s3/h0"));
  const FailingRun run = scene.run();
  for (const double factor : {0.99, 3.7}) {
    const Tensor scaled = mapped(run.inputs().at("g"), [&](double x, int64_t) { return factor * x; });
    const auto p = evaluate_with(run, "g", scaled);
    ASSERT_TRUE(p);
    EXPECT_EQ(first_cause(scene, *p), "gate-scaled") << factor;
  }
}

/// The gates that a decay per head stands for have a gradient of their own, which is no output.
TEST(WeighMeanings, ADecayPerHeadThatEntersTimesAConstantIsNamedWithIt) {
  test::MutatedRun scene(
      parse_token("simple_gla.chunk/B1/T40/H2/K3/V2/fp32/g-fp32/logsigmoid/s3/backward/no-g"));
  const FailingRun run = with_explicit_gates(scene.run());
  ASSERT_TRUE(run.sums_gate_gradient);
  const auto p =
      evaluate_with(run, "g", mapped(run.inputs().at("g"), [](double x, int64_t) { return 3.7 * x; }));
  ASSERT_TRUE(p);
  EXPECT_EQ(first_cause(scene, *p), "gate-scaled");
}

TEST(WeighMeanings, WhatAStateBeforeTheChunkGivesUndecayedIsTheNaiveSum) {
  test::MutatedRun scene(parse_token("gla.chunk/B1/T70/H1/K1/V1/fp32/g-fp32/mild/s3/h0"));
  const FailingRun run = scene.run();
  const Prediction p =
      *predicted(run, "gate-missing", "no decay from the state before a chunk of 64 to its tokens");
  const auto at = [&](const char* name, int64_t t) { return run.inputs().at(name).value(t); };
  const double S0 = at("initial_state", 0);
  for (int64_t t = 0; t < 70; ++t) {
    const int64_t start = t / 64 * 64;
    double entering = S0, within = 0;
    for (int64_t j = 0; j < start; ++j) entering = std::exp(at("g", j)) * entering + at("k", j) * at("v", j);
    for (int64_t j = start; j <= t; ++j) within = std::exp(at("g", j)) * within + at("k", j) * at("v", j);
    const double o = run.problem.scale * at("q", t) * (entering + within);
    EXPECT_NEAR(p.at("o").mid[static_cast<size_t>(t)], o, 1e-9 * (1 + std::fabs(o))) << t;
  }
}

TEST(WeighMeanings, AStateReadAndStoredTransposedIsToldFromOneStoredSo) {
  test::MutatedRun scene(parse_token("gsa.fused_recurrent/B1/T7/H2/K3/V4/M3/fp32/g-fp32/mild/s3/h0"));
  const FailingRun run = scene.run();
  const std::string both = "hk0 read, and the state that it becomes stored, with rows and columns exchanged";
  const Prediction p = *predicted(run, "state-transposed", both);
  EXPECT_EQ(first_cause(scene, p), "state-transposed");
  const Prediction stored =
      *predicted(run, "state-transposed", "states stored with rows and columns exchanged");
  EXPECT_NE(p.at("hkt").mid, stored.at("hkt").mid);
  EXPECT_EQ(p.at("hvt").mid,
            (*predicted(run, "state-transposed", "hk0 read with rows and columns exchanged")).at("hvt").mid);
}

TEST(WeighMeanings, PairsAboveTheDiagonalOfASymmetricScoreAreFutureTokens) {
  for (const char* token : {kScenes[0], kScenes[1]}) {
    test::MutatedRun scene(parse_token(token));
    const FailingRun run = scene.run();
    const std::string text = "the next token of a block of 8 too, with the two tokens' q and k exchanged";
    EXPECT_EQ(first_cause(scene, *predicted(run, "future-token-included", text)), "future-token-included")
        << token;
  }
}

TEST(WeighMeanings, AGateGradientMadeOfTheStateAfterItsTokenOrWithoutItsDecayIsNamed) {
  test::MutatedRun scene(
      parse_token("hgrn.fused_recurrent/B2/T9/H1/K5/V1/fp32/g-fp32/mild/s2/h0/backward/dht"));
  const FailingRun run = scene.run();
  const Tensor &g = run.inputs().at("g"), &x = run.inputs().at("x");
  Prediction after = reference_prediction(run), bare = reference_prediction(run);
  for (size_t i = 0; i < after.at("dg").mid.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    double& dg = after.at("dg").mid[i];
    dg = std::exp(g.value(at)) * (dg + x.value(at) * after.at("dx").mid[i]);
    bare.at("dg").mid[i] *= std::exp(-g.value(at));
  }
  EXPECT_EQ(first_cause(scene, after), "gate-gradient-without-own-term");
  EXPECT_EQ(first_cause(scene, bare), "gate-gradient-without-decay");
}

TEST(WeighMeanings, AFactorOfTheInputThatIsMissingIsToldFromAConstant) {
  test::MutatedRun scene(parse_token("rwkv7_log_decay.fused/B2/T9/H1/K5/V1/fp32/g-fp32/none/s2/backward"));
  const FailingRun run = scene.run();
  Prediction p = reference_prediction(run);
  const Tensor& x = run.inputs().at("x");
  for (size_t i = 0; i < p.at("dx").mid.size(); ++i)
    p.at("dx").mid[i] *= 1 + std::exp(x.value(static_cast<int64_t>(i)));
  EXPECT_EQ(first_cause(scene, p), "factor-of-input");
  p = reference_prediction(run);
  for (double& dx : p.at("dx").mid) dx *= 1.0625;
  EXPECT_EQ(first_cause(scene, p), "output-scaled");
}

TEST(WeighMeanings, WeightsReadBackwardsAreALayout) {
  test::MutatedRun scene(parse_token("short_conv.fused/B1/T9/H1/K4/V5/fp32/g-fp32/none/s2/h0"));
  const FailingRun run = scene.run();
  const Tensor& weight = run.inputs().at("weight");
  const int last = static_cast<int>(weight.axes.size()) - 1;
  scene.store(*evaluate_with(
      run, "weight", moved(weight, last, [&](int64_t i) { return weight.axes.back().size - 1 - i; })));
  const Weighed weighed = weigh_meanings(wrong_directions(scene), 60);
  ASSERT_FALSE(weighed.fitting.empty());
  EXPECT_EQ(weighed.fitting[0].cause, "operand-layout");
}

TEST(WeighMeanings, TokensOfAPartialChunkAloneAreItsLastOne) {
  test::MutatedRun scene(parse_token("linear_attn.chunk/B1/T7/H2/K3/V2/fp32/g-fp32/none/s2/h0"));
  const FailingRun run = with_explicit_gates(scene.run());
  Prediction p = *predicted(run, "last-partial-chunk-ignored",
                            "tokens of the last, partial chunk of 64 are not written");
  p.erase("o");
  EXPECT_EQ(first_cause(scene, p), "last-partial-chunk-ignored");
}

TEST(WeighMeanings, StatesReadHeadsFirstAreAnotherSequencesAndTheirGradientsToo) {
  test::MutatedRun scene(
      parse_token("gla.fused_recurrent/B3/T5/H2/K3/V4/fp32/g-fp32/mild/s3/h0/backward/dht"));
  const FailingRun run = scene.run();
  TensorMap inputs = run.inputs();
  const auto heads_first = [](Tensor& x) {
    Tensor out(x.name, Dtype::fp64, x.axes);
    const int64_t H = 2, N = 3, size = x.size() / (H * N);
    for (int64_t i = 0; i < x.size(); ++i) {
      const int64_t n = i / (H * size), h = i / size % H;
      out.set(i, x.value((h * N + n) * size + i % size));
    }
    x = out;
  };
  heads_first(inputs.at("initial_state"));
  EXPECT_EQ(first_cause(scene, *evaluate_with(run, inputs)), "initial-state-of-another-sequence");
  heads_first(inputs.at("dfinal_state"));
  EXPECT_EQ(first_cause(scene, *evaluate_with(run, inputs)), "initial-state-of-another-sequence");
}

TEST(WeighMeanings, ASumThatLacksEverySecondChunkIsIncomplete) {
  test::MutatedRun scene(parse_token("rwkv6.chunk/B1/T167/H2/K3/V2/fp32/g-fp32/mild/s3/backward"));
  const FailingRun run = scene.run();
  const Tensor& d = run.inputs().at("do");
  const Prediction p = *evaluate_with(
      run, "do", moved(d, axis_of(d, "T"), [](int64_t t) { return t / 64 % 2 == 0 ? t : -1; }));
  EXPECT_EQ(first_cause(scene, {{"du", p.at("du")}}), "gradient-sum-incomplete");
}

TEST(WeighMeanings, ASumOverTokensWithoutTheLastOnesIsToldFromTokensThatAreNotWritten) {
  for (const char* token : {"rwkv6.chunk/B1/T75/H2/K3/V2/fp32/g-fp32/mild/s3/backward",
                            "rwkv6.chunk/B1/T5/H2/K3/V2/fp32/g-fp32/mild/s3/backward"}) {
    test::MutatedRun scene(parse_token(token));
    const FailingRun run = scene.run();
    const int64_t whole = run.problem.sizes.T / 64 * 64;
    const Tensor& d = run.inputs().at("do");
    const Prediction p =
        *evaluate_with(run, "do", moved(d, axis_of(d, "T"), [&](int64_t t) { return t < whole ? t : -1; }));
    EXPECT_EQ(first_cause(scene, {{"du", p.at("du")}}), "gradient-sum-incomplete") << token;
    const std::string not_written = "tokens of the last, partial chunk of 64 are not written";
    EXPECT_EQ(first_cause(scene, *predicted(run, "last-partial-chunk-ignored", not_written)),
              "last-partial-chunk-ignored")
        << token;
  }
}

}  // namespace
}  // namespace assay
