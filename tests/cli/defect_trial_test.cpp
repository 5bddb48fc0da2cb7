#include "src/cli/defect_trial.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "src/cli/print_defects.h"
#include "src/cli/stored_findings.h"
#include "src/verification/diagnosis/diagnose.h"
#include "tests/tensor/scratch_folder.h"

namespace assay::cli {
namespace {

/// A folder of compiled kernels of this test's own: a fresh one, as after a clone.
class DefectTrials : public testing::Test {
 protected:
  void SetUp() override { setenv("ASSAY_CACHE", (folder_ / "cache").c_str(), 1); }
  void TearDown() override { unsetenv("ASSAY_CACHE"); }
  const std::unique_ptr<Backend> machine_ = make_vm_backend({});

 private:
  ScratchFolder folder_;
};

// Five of them, evenly spaced; `assay defects --check tests/data/defect_tokens.txt` replays all.
TEST_F(DefectTrials, StoredFindingsFailAgainWithTheSameBitsAndPassOnTheCleanKernel) {
  const std::vector<StoredFinding> all = read_findings(ASSAY_SOURCE_DIR "/tests/data/defect_tokens.txt");
  ASSERT_GE(all.size(), 50u);
  for (size_t i = 0; i < 5; ++i) {
    const StoredFinding& stored = all[i * all.size() / 5];
    const TokenReplay replay = replay_token(stored.token, *machine_, {});
    EXPECT_TRUE(stored.repeated_by(replay))
        << stored.token << ": " << name_of(replay.verdict) << ' ' << replay.cause << ' ' << replay.digest << ", clean "
        << name_of(replay.clean_verdict) << ' ' << replay.clean_cause << "; stored " << stored.cause << ' '
        << stored.digest;
  }
}

TEST_F(DefectTrials, ATokenThatTheDefectDoesNotReachIsNoFinding) {
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

DefectTrial trial(bool found, bool cause_right, bool nonfinite, bool line_right) {
  DefectTrial t;
  t.defect = "gla.chunk@S1";
  t.token = found ? "gla.chunk@S1/B1/T4/H1/K1/V1/bf16/g-fp32/none/s1" : "";
  t.replay = {"finding", "nonfinite/o/exp-overflow/kernels/gla/chunk.cu:1", "0", "pass", ""};
  t.cause = "masked-lane-overflow", t.cause_right = cause_right;
  t.nonfinite = nonfinite, t.line = "kernels/gla/chunk.cu:1", t.line_right = line_right;
  return t;
}

TEST(StoredFindings, AreRepeatedByTheSameCauseAndBitsAlone) {
  const StoredFinding stored{"token", "violation/o", "00ff"};
  const TokenReplay same{"finding", "violation/o", "00ff", "pass", ""};
  EXPECT_TRUE(stored.repeated_by(same));
  EXPECT_EQ(without_line("nonfinite/o/exp-overflow/kernels/a.cuh:12"),
            "nonfinite/o/exp-overflow/kernels/a.cuh");
  EXPECT_EQ(without_line("violation/o"), "violation/o");
  TokenReplay other = same;
  other.digest = "00fe";
  EXPECT_FALSE(stored.repeated_by(other));
  other = same, other.cause = "violation/dq";
  EXPECT_FALSE(stored.repeated_by(other));
  other = same, other.clean_verdict = Verdict::finding;
  EXPECT_FALSE(stored.repeated_by(other));
}

TEST(DefectTotals, AllowTwoMissesATenthOfTheCausesAndATwentiethOfTheLines) {
  const DefectTrial good = trial(true, true, true, true), missed = trial(false, false, false, false),
                    unnamed = trial(true, false, true, true), elsewhere = trial(true, true, true, false);
  const auto with = [&](const DefectTrial& bad, size_t times) {
    std::vector<DefectTrial> trials(100 - times, good);
    trials.insert(trials.end(), times, bad);
    return DefectTotals(trials).within_limits();
  };
  EXPECT_TRUE(with(missed, 2));
  EXPECT_FALSE(with(missed, 3));
  EXPECT_TRUE(with(unnamed, 10));
  EXPECT_FALSE(with(unnamed, 11));
  EXPECT_TRUE(with(elsewhere, 5));
  EXPECT_FALSE(with(elsewhere, 6));
}

TEST(DefectTotals, CountNoFindingThatTheCleanKernelHasToo) {
  DefectTrial both = trial(true, true, true, true);
  both.replay.clean_verdict = Verdict::finding;
  DefectTrial gone = trial(true, true, true, true);
  gone.replay.verdict = Verdict::pass;
  EXPECT_EQ(DefectTotals({both, gone}).found, 0);
}

TEST(DefectsPage, HasARowForEachTrialAndForEachRecordedDefect) {
  const std::string page = defects_page({trial(true, true, true, true)}, "assay defects all", "2025-11-20");
  for (const char* part : {"`gla.chunk@S1` | both sides", "masked-lane-overflow (right)", "B1 T4 H1 K1 V1",
                           "1 of 1 defects found", "| Z1 |", "| S1 | pairwise decays", "2025-11-20"})
    EXPECT_NE(page.find(part), page.npos) << part << '\n' << page.substr(0, 1500);
}

TEST(ExpectedCauses, AreAmongThoseThatCanBeNamed) {
  std::set<std::string> known;
  for (const auto& [name, summary] : cause_names()) known.emplace(name);
  for (const Defect& defect : defects())
    for (const std::string& cause : expected_causes(defect))
      EXPECT_TRUE(known.count(cause)) << defect.id() << ": " << cause;
}

}  // namespace
}  // namespace assay::cli
