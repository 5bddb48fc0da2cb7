#include "src/result/baseline.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "src/base/numerics/bad_input.h"
#include "src/result/one_per_defect.h"

namespace assay {
namespace baseline_test {

Verification finding(const std::string& kernel, const std::string& cause, uint64_t seed) {
  Verification v;
  v.kernel = v.case_.kernel = kernel;
  v.case_.seed = seed;
  v.token = token_of(v.case_);
  v.verdict = Verdict::finding;
  v.cause = cause;
  return v;
}

FuzzRun run_of(std::vector<Verification> findings) {
  FuzzRun run;
  run.kernels = {"gla.chunk"};
  run.findings = std::move(findings);
  return run;
}

TEST(Baseline, TheSameCauseIsKnownWhateverItsSeed) {
  const Baseline baseline = baseline_of(
      "b.json", to_json(run_of({finding("gla.chunk", "violation/o", 1), finding("gla.chunk", "x", 2)})));
  FuzzRun run = run_of({finding("gla.chunk", "violation/o", 77), finding("gla.chunk", "violation/dq", 1)});
  compare_with_baseline(baseline, run);
  EXPECT_EQ(run.findings[0].known, true);
  EXPECT_EQ(run.findings[1].known, false);
  EXPECT_EQ(run.baseline->source, "b.json");
}

TEST(Baseline, AFindingOfSeveralSymptomsIsKnownByAnyOfThem) {
  Verification both = finding("gla.chunk", "check/race/k.cu:7", 1);
  both.also = {{"violation/o", "", "", "gla.chunk/violation/o"}};
  FuzzRun run = run_of({both});
  compare_with_baseline({"b.json", {finding("gla.chunk", "violation/o", 3)}}, run);
  EXPECT_EQ(run.findings[0].known, true);
  EXPECT_TRUE(run.baseline->gone.empty());
}

/// A mask that is wrong, known in o, and a state that is wrong too since: some cases show both, so that each
/// shares a line with the next.
TEST(Baseline, AKnownDefectHidesNoNewOne) {
  const auto at = [](const char* cause, std::vector<int> lines) {
    Verification v = finding("gla.chunk", cause, 1);
    v.diagnosis = {{"diagonal-missing", "", 0.9, {}}};
    for (const int line : lines) v.lines.emplace_back().at.where = {"k.cu", line, 0, "k", {}};
    return v;
  };
  const Baseline baseline{"b.json", {at("violation/o", {33})}};
  FuzzRun run =
      run_of({at("violation/o", {33}), at("violation/o", {33, 40}), at("violation/final_state", {40})});
  const std::vector<Verification> found = run.findings;
  EXPECT_EQ(one_per_defect(found).size(), 1u) << "without a baseline one defect is as likely as two";
  mark_familiar(baseline, run.findings);
  run.findings = one_per_defect(std::move(run.findings));
  compare_with_baseline(baseline, run);
  ASSERT_EQ(run.findings.size(), 2u);
  EXPECT_EQ(run.findings[0].known, true);
  EXPECT_EQ(run.findings[1].cause, "violation/final_state");
  EXPECT_EQ(run.findings[1].known, false);
}

/// One fault, by other cases: its values in exact arithmetic, or an overflow at a line of its own.
TEST(Baseline, ANamedCauseOfOneOutputIsKnownByAnotherSymptom) {
  const auto named = [](const char* cause, const char* name) {
    Verification v = finding("gla.chunk", cause, 1);
    v.diagnosis = {{name, "", 0.9, {}}};
    return v;
  };
  const Verification values = named("violation/o", "gate-sign");
  const auto known = [](const Verification& earlier, const Verification& now) {
    FuzzRun run = run_of({now});
    const Baseline baseline{"b.json", {earlier}};
    mark_familiar(baseline, run.findings);
    const bool familiar = run.findings[0].known.value();
    compare_with_baseline(baseline, run);
    EXPECT_EQ(run.findings[0].known, familiar);
    EXPECT_EQ(run.baseline->gone.empty(), familiar);
    return familiar;
  };
  EXPECT_TRUE(known(values, named("formula/o", "gate-sign")));
  EXPECT_TRUE(known(values, named("nonfinite/o/exp-overflow/k.cu", "gate-sign")));
  EXPECT_TRUE(known(named("nonfinite/o/exp-overflow/k.cu", "gate-sign"), values));
  EXPECT_FALSE(known(values, named("formula/final_state", "gate-sign")));
  EXPECT_FALSE(known(values, named("formula/o", "decay-base")));
  EXPECT_FALSE(known(values, named("property/no-races", "gate-sign")));
  EXPECT_FALSE(known(named("nonfinite/o/exp-overflow/k.cu", "gate-sign"),
                     named("nonfinite/o/sum-overflow/k.cu", "gate-sign")));
}

TEST(Baseline, ARunOutOfTimeForADiagnosisKnowsTheFindingAllTheSame) {
  Verification explained = finding("gla.chunk", "violation/o", 1),
               plain = finding("gla.chunk", "violation/o", 2);
  explained.diagnosis = {{"gate-sign", "", 0.9, {}}};
  FuzzRun late = run_of({plain}), early = run_of({explained});
  compare_with_baseline({"b.json", {explained}}, late);
  EXPECT_EQ(late.findings[0].known, true);
  compare_with_baseline({"b.json", {plain}}, early);
  EXPECT_EQ(early.findings[0].known, true);
  Verification vague = explained;
  vague.diagnosis[0].cause = "formula-differs";
  FuzzRun half = run_of({vague});
  compare_with_baseline({"b.json", {explained}}, half);
  EXPECT_EQ(half.findings[0].known, true) << "that the formula differs is no other cause";
  Verification other = explained;
  other.diagnosis[0].cause = "mask-off-by-one";
  FuzzRun another = run_of({other});
  compare_with_baseline({"b.json", {explained}}, another);
  EXPECT_EQ(another.findings[0].known, false);
}

TEST(Baseline, WhatVanishedIsListedOnceWithWhatItsCaseGivesNow) {
  const Verification fixed = finding("gla.chunk", "violation/o", 1),
                     other = finding("gsa.chunk", "violation/o", 1);
  const Verification twice = finding("gla.chunk", "violation/o", 2), unseen = finding("gla.chunk", "hang", 3);
  FuzzRun run = run_of({});
  run.reruns = {{"gla.chunk", fixed.token, "pass"}};
  compare_with_baseline({"b.json", {fixed, twice, other, unseen}}, run);
  ASSERT_EQ(run.baseline->gone.size(), 2u);  // of other kernels nothing is known
  EXPECT_EQ(run.baseline->gone[0].outcome, "pass");
  EXPECT_EQ(run.baseline->gone[1].cause, "hang");
  EXPECT_EQ(run.baseline->gone[1].outcome, "not rerun");
}

TEST(Baseline, AVerificationIsABaselineOfOneFindingOrNone) {
  EXPECT_EQ(baseline_of("v.json", to_json(finding("gla.chunk", "violation/o", 1))).findings.size(), 1u);
  Verification passed;
  passed.verdict = Verdict::pass;
  EXPECT_TRUE(baseline_of("v.json", to_json(passed)).findings.empty());
}

TEST(Baseline, WhatIsNoResultIsBadInput) {
  EXPECT_THROW(baseline_of("x.json", nlohmann::json::object()), BadInput);
  EXPECT_THROW(baseline_of("x.json", {{"kind", "fuzz"}, {"schema", 99}}), BadInput);
}

}  // namespace baseline_test
}  // namespace assay
