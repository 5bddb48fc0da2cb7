#include "src/campaign/defects/defects.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "tests/tensor/scoped_environment.h"
#include "tests/tensor/scratch_folder.h"

namespace assay {
namespace {

class CountingBackend : public Backend {
 public:
  std::string name() const override { return machine_->name(); }
  Outcome run(const Program& plan, const TensorMap& inputs) override {
    ++runs;
    return machine_->run(plan, inputs);
  }
  std::atomic<int64_t> runs = 0;

 private:
  const std::unique_ptr<Backend> machine_ = make_vm_backend({});
};

class Defects : public testing::Test {
 protected:
  Defects() {
    options_.each.cases = 30;
    options_.each.jobs = 2;
    options_.each.backend = &backend_;
    for (const Defect& defect : defects())
      if (defect.id() == "hgrn.fused_recurrent@U1") chosen_.push_back(&defect);
  }

  ScratchFolder folder_;
  const ScopedEnvironment cache_{"ASSAY_CACHE", folder_ / "cache"};
  CountingBackend backend_;
  DefectsOptions options_;
  std::vector<const Defect*> chosen_;
};

TEST_F(Defects, ATrialIsInTheJournalBeforeAnybodyHearsOfItAndIsNotMadeTwice) {
  ASSERT_EQ(chosen_.size(), 1u);
  options_.journal = folder_ / "defects.part";
  std::vector<DefectTrial> lost, trials;
  EXPECT_THROW(
      try_defects(chosen_, options_, lost, [](const DefectTrial&) { throw std::runtime_error("full disk"); }),
      std::runtime_error);
  EXPECT_GT(backend_.runs, 0);
  backend_.runs = 0;
  int told = 0;
  try_defects(chosen_, options_, trials, [&](const DefectTrial&) { ++told; });
  EXPECT_EQ(told, 1);
  EXPECT_EQ(backend_.runs, 0);
  ASSERT_TRUE(trial_of(*chosen_[0], trials));
  EXPECT_TRUE(trials[0].found()) << trials[0].cases << " cases";
  try_defects(chosen_, options_, trials, [&](const DefectTrial&) { ++told; });
  EXPECT_EQ(told, 1) << "tried already";

  DefectTrial other = trials[0];
  other.patch = "of another text";
  trials = {other};
  try_defects(chosen_, options_, trials, [&](const DefectTrial&) { ++told; });
  EXPECT_EQ(told, 2);
  EXPECT_EQ(trials.size(), 1u) << "the trial of another text is gone";
  EXPECT_TRUE(trial_of(*chosen_[0], trials));
}

TEST_F(Defects, AnInterruptedCampaignTriesNothingMore) {
  const std::atomic<int> signal = 2;
  options_.each.interrupted = &signal;
  std::vector<DefectTrial> trials;
  try_defects(chosen_, options_, trials, [](const DefectTrial&) { ADD_FAILURE(); });
  EXPECT_TRUE(trials.empty());
  EXPECT_EQ(replay_findings({{"token", "cause", "digest"}}, options_, {}).size(), 1u);
  EXPECT_EQ(backend_.runs, 0);
}

TEST_F(Defects, ReplaysStandInTheOrderOfTheFindings) {
  const std::string clean = "hgrn.fused_recurrent/B1/T3/H1/K1/V4/fp32/g-fp32/none/s";
  std::vector<RecordedFinding> findings;
  for (int seed = 1; seed < 7; ++seed) findings.push_back({clean + std::to_string(seed), "", ""});
  options_.together = 3;
  size_t told = 0;
  const auto replays =
      replay_findings(findings, options_, [&](const RecordedFinding&, const TokenReplay&) { ++told; });
  EXPECT_EQ(told, 6u);
  for (size_t i = 0; i < 6; ++i)
    EXPECT_EQ(replays[i].digest, replay_token(findings[i].token, backend_, {}).digest) << i;
  EXPECT_NE(replays[0].digest, replays[1].digest);
}

}  // namespace
}  // namespace assay
