#include "src/campaign/defects/defect_trial.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "src/campaign/defects/recorded_findings.h"
#include "src/case/case.h"
#include "src/verification/diagnosis/diagnose.h"
#include "tests/tensor/scoped_environment.h"
#include "tests/tensor/scratch_folder.h"

namespace assay {
namespace {

class DefectTrials : public testing::Test {
 protected:
  const std::unique_ptr<Backend> machine_ = make_vm_backend({});
};

/// With a folder of compiled kernels of its own: a fresh one, as after a clone.
class FirstDefectTrials : public DefectTrials {
 private:
  const ScratchFolder folder_;
  const ScopedEnvironment cache_{"ASSAY_CACHE", folder_ / "cache"};
};

/// Five of the recorded findings, evenly spaced, a test each: most of the time goes into explaining them.
/// `assay defects --check tests/data/defect_tokens.txt` replays all.
class RecordedFindingReplays : public DefectTrials, public testing::WithParamInterface<size_t> {};

TEST_P(RecordedFindingReplays, FailsAgainWithTheSameBitsAndPassesOnTheCleanKernel) {
  const std::vector<RecordedFinding> all = read_findings(ASSAY_SOURCE_DIR "/tests/data/defect_tokens.txt");
  ASSERT_GE(all.size(), 50u);
  const RecordedFinding& stored = all[GetParam() * all.size() / 5];
  const TokenReplay replay = replay_token(stored.token, *machine_, {});
  EXPECT_TRUE(stored.repeated_by(replay))
      << stored.token << ": " << name_of(replay.verdict) << ' ' << replay.cause << ' ' << replay.digest
      << ", clean " << name_of(replay.clean_verdict) << ' ' << replay.clean_cause << "; stored "
      << stored.cause << ' ' << stored.digest;
}
INSTANTIATE_TEST_SUITE_P(FiveOf, RecordedFindingReplays, testing::Range<size_t>(0, 5));

/// Of which only a command replays all (`assay defects all --explain`).
TEST(ExplainedTokens, AreOfDefectsThatAreThereOneEach) {
  std::set<std::string> seen;
  for (const RecordedFinding& stored : read_findings(ASSAY_SOURCE_DIR "/tests/data/explained_tokens.txt")) {
    const Case c = parse_token(stored.token);
    const bool known = std::any_of(defects().begin(), defects().end(),
                                   [&](const Defect& defect) { return defect.id() == c.kernel; });
    EXPECT_TRUE(known) << stored.token;
    EXPECT_TRUE(seen.insert(c.kernel).second) << stored.token;
  }
  EXPECT_GE(seen.size(), 270u);
}

TEST_F(FirstDefectTrials, ATokenThatTheDefectDoesNotReachIsNoFinding) {
  const TokenReplay replay =
      replay_token("retention.chunk@T4/B1/T64/H1/K1/V1/bf16/g-fp32/none/v-ones/s1", *machine_, {});
  EXPECT_EQ(replay.verdict, Verdict::pass) << "64 tokens are a whole chunk";
  EXPECT_EQ(replay.clean_verdict, Verdict::pass);
  EXPECT_FALSE(replay.holds());
}

TEST_F(DefectTrials, FindADefectAndAgreeWithItsPatch) {
  DefectTrialOptions options;
  options.cases = 60;
  options.jobs = 2;
  options.backend = machine_.get();
  for (const Defect& defect : defects()) {
    if (defect.id() != "linear_attn_norm.chunk@X9") continue;
    const DefectTrial trial = try_defect(defect, options);
    EXPECT_TRUE(trial.found()) << trial.cases << " cases, seed 1";
    EXPECT_TRUE(trial.nonfinite) << trial.token;
    EXPECT_TRUE(trial.cause_right) << trial.cause;
    EXPECT_TRUE(trial.line_right) << trial.line;
    EXPECT_EQ(to_json(defect_trial_from_json(to_json(trial))), to_json(trial));
  }
}

TEST_F(DefectTrials, ExplainARecordedTokenWithoutASearch) {
  DefectTrialOptions options;
  options.backend = machine_.get();
  for (const Defect& defect : defects()) {
    if (defect.id() != "linear_attn_norm.chunk@X9") continue;
    const std::string token = "linear_attn_norm.chunk@X9/B1/T1/H1/K2/V1/bf16/g-fp32/none/v-sparse/s1";
    const DefectTrial trial = explain_token(defect, token, options);
    EXPECT_TRUE(trial.found());
    EXPECT_EQ(trial.token, token);
    EXPECT_EQ(trial.cases, 1);
    EXPECT_TRUE(trial.cause_right) << trial.cause;
    EXPECT_TRUE(trial.line_right) << trial.line;
    const std::string reached_not = "linear_attn_norm.chunk@X9/B1/T1/H1/K2/V1/bf16/g-fp32/none/v-ones/s1";
    EXPECT_FALSE(explain_token(defect, reached_not, options).found());
  }
}

/// What read it is right; the store lies behind a return that should not be there.
TEST_F(DefectTrials, OfMemoryThatNothingWroteTheLinesOfTheStoreCountToo) {
  DefectTrialOptions options;
  options.backend = machine_.get();
  for (const Defect& defect : defects()) {
    if (defect.id() != "simple_gla.parallel@F51") continue;
    const DefectTrial trial = explain_token(
        defect, "simple_gla.parallel@F51/B1/T65/H1/K1/V1/bf16/g-fp32/none/v-ones/s1/backward/no-g/h0",
        options);
    EXPECT_TRUE(trial.nonfinite && trial.cause_right) << trial.cause;
    EXPECT_TRUE(trial.line_right) << fmt::format("{}", fmt::join(trial.lines, " "));
    EXPECT_EQ(trial.line, "kernels/scalar/parallel_gates.cuh:42");
    EXPECT_LE(trial.lines.size(), 3u);
  }
}

TEST(ExpectedCauses, AreAmongThoseThatCanBeNamed) {
  std::set<std::string> known;
  for (const auto& [name, summary] : cause_names()) known.emplace(name);
  for (const Defect& defect : defects())
    for (const std::string& cause : expected_causes(defect))
      EXPECT_TRUE(known.count(cause)) << defect.id() << ": " << cause;
}

}  // namespace
}  // namespace assay
