#include "fuzz/write_queue.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace write_queue_test {

using std::chrono::milliseconds;

class WriteQueueTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }
  WriteQueue::Write write(int number) {
    return [this, number](Database&) {
      ++tries_;
      if (away_) throw ConnectionLost("the server is away");
      done_.push_back(number);
    };
  }
  const std::string file_ =
      (std::filesystem::temp_directory_path() / ("assay_queue_" + std::to_string(getpid()) + ".db")).string();
  bool away_ = false;
  int tries_ = 0;
  std::vector<int> done_;
};

TEST_F(WriteQueueTest, CarriesOutAtOnceWhileTheServerIsThere) {
  WriteQueue queue(file_);
  for (int i = 0; i < 3; ++i) queue.add(write(i));
  EXPECT_EQ(done_, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(queue.waiting(), 0);
}

TEST_F(WriteQueueTest, KeepsTheOrderOfWhatHadToWait) {
  WriteQueue queue(file_, milliseconds(0));
  queue.add(write(0));
  away_ = true;
  queue.add(write(1));
  queue.add(write(2));
  EXPECT_EQ(queue.why_away(), "the server is away");
  EXPECT_EQ(queue.waiting(), 2);
  away_ = false;
  queue.add(write(3));
  EXPECT_TRUE(queue.finish(std::chrono::seconds(10)));
  EXPECT_EQ(done_, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(queue.why_away(), "");
}

TEST_F(WriteQueueTest, DoesNotAskAnAbsentServerAtEveryWrite) {
  WriteQueue queue(file_, std::chrono::hours(1));
  away_ = true;
  for (int i = 0; i < 100; ++i) queue.add(write(i));
  EXPECT_EQ(tries_, 1);
  EXPECT_EQ(queue.waiting(), 100);
  away_ = false;
  EXPECT_TRUE(queue.finish(milliseconds(0))) << "the end asks in any case";
  EXPECT_EQ(done_.size(), 100u);
}

TEST_F(WriteQueueTest, FinishingGivesUpAtItsTime) {
  WriteQueue queue(file_, milliseconds(1));
  away_ = true;
  queue.add(write(0));
  EXPECT_FALSE(queue.finish(milliseconds(5)));
  EXPECT_GT(tries_, 2);
  EXPECT_EQ(queue.waiting(), 1);
}

TEST_F(WriteQueueTest, OtherFailuresAreNotWaitedFor) {
  WriteQueue queue(file_);
  EXPECT_THROW(queue.add([](Database&) { throw BadInput("the disk is full"); }), BadInput);
}

}  // namespace write_queue_test
}  // namespace assay
