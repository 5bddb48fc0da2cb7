#include "src/campaign/engine/journal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <random>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

using nlohmann::json;

class JournalTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }
  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("assay_journal_test_" + std::to_string(::getpid()));
};

TEST_F(JournalTest, GivesBackWhatWasAddedAlsoBehindALineCutOffByAKill) {
  {
    Journal journal(path_, "sweep", "one");
    journal.add("a", 0x1.8p-7);
    journal.add("b", {{"cells", {1, 2}}});
  }
  std::ofstream(path_, std::ios::app) << R"({"job":"c","rec)";
  for (int opened = 0; opened < 2; ++opened) {
    Journal again(path_, "sweep", "one");
    ASSERT_TRUE(again.find("a") && again.find("b"));
    EXPECT_EQ(*again.find("a"), 0x1.8p-7);
    EXPECT_EQ(again.find("b")->at("cells").at(1), 2);
    EXPECT_FALSE(again.find("c"));
  }
  Journal(path_, "sweep", "one").remove();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(JournalTest, OfAnotherCampaignOrNoneIsRefused) {
  { Journal journal(path_, "sweep", "one"); }
  EXPECT_THROW(Journal(path_, "sweep", "two"), BadInput);
  EXPECT_THROW(Journal(path_, "mutate", "one"), BadInput);
  std::ofstream(path_) << "text\n";
  EXPECT_THROW(Journal(path_, "sweep", "one"), BadInput);
  EXPECT_THROW(Journal("/gone/file", "sweep", "one"), BadInput);
}

TEST_F(JournalTest, WithoutAFileKeepsNothing) {
  Journal journal("", "sweep", "one");
  journal.add("a", 1);
  EXPECT_FALSE(journal.find("a"));
  journal.remove();
}

/// A campaign of `kJobs` jobs; job i gives i * i. Returns the sum; `fresh` counts the jobs worked on.
constexpr int kJobs = 40;
int64_t campaign(const std::filesystem::path& path, int workers, std::atomic<int>& fresh, int pause_us = 0) {
  Journal journal(path, "squares", "of " + std::to_string(kJobs));
  Engine engine;
  int begun = 0;
  int64_t sum = 0;
  engine.run(workers, [&]() -> Task {
    if (begun == kJobs) return nullptr;
    const int i = begun++;
    return journaled(
        journal, std::to_string(i),
        [&fresh, i, pause_us] {
          ++fresh;
          usleep(static_cast<useconds_t>(pause_us));
          return json(i * i);
        },
        [&sum](const json& record) { sum += record.get<int64_t>(); });
  });
  return sum;
}

TEST_F(JournalTest, ACampaignKilledAtAnyTimeGoesOnAndGivesTheSame) {
  std::atomic<int> all = 0;
  const int64_t whole = campaign("", 1, all);
  EXPECT_EQ(all, kJobs);
  std::mt19937 random(20);
  for (int round = 0; round < 6; ++round) {
    std::filesystem::remove(path_);
    const pid_t child = fork();
    if (child == 0) {
      std::atomic<int> ignored = 0;
      campaign(path_, 2, ignored, 2000);
      _exit(0);
    }
    usleep(static_cast<useconds_t>(random() % 40'000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    size_t kept = 0;
    if (std::filesystem::exists(path_)) {
      Journal journal(path_, "squares", "of " + std::to_string(kJobs));
      for (int i = 0; i < kJobs; ++i) kept += journal.find(std::to_string(i)) != nullptr;
    }
    std::atomic<int> fresh = 0;
    EXPECT_EQ(campaign(path_, 3, fresh), whole) << "round " << round;
    EXPECT_EQ(static_cast<size_t>(fresh), kJobs - kept) << "round " << round;
    fresh = 0;
    EXPECT_EQ(campaign(path_, 1, fresh), whole);
    EXPECT_EQ(fresh, 0);
  }
}

TEST_F(JournalTest, AJobThatGaveNoRecordIsNeitherKeptNorMerged) {
  Journal journal(path_, "squares", "");
  int merged = 0;
  journaled(
      journal, "a", [] { return json(); }, [&](const json&) { ++merged; })()();
  EXPECT_EQ(merged, 0);
  EXPECT_FALSE(journal.find("a"));
  journaled(
      journal, "a", [] { return json(1); }, [&](const json&) { ++merged; })()();
  EXPECT_EQ(merged, 1);
  EXPECT_TRUE(journal.find("a"));
}

}  // namespace
}  // namespace assay
