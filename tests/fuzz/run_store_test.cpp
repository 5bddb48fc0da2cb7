#include "fuzz/run_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace run_store_test {

struct Told : Listener {
  std::vector<std::string> events;
  void database_away(const std::string& why) override {
    events.push_back(why.empty() ? "back" : "away: " + why);
  }
  void database_lost(const std::string& why) override { events.push_back("lost: " + why); }
};

class RunStoreTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(file_ + end);
  }
  const std::string file_ =
      (std::filesystem::temp_directory_path() / ("assay_store_" + std::to_string(getpid()) + ".db")).string();
  Told told_;
  int written_ = 0;
};

TEST_F(RunStoreTest, NowhereIsNoDatabaseAndNoTrouble) {
  RunStore store("", told_);
  EXPECT_EQ(store.database(), nullptr);
  store.write([&](Database&) { ++written_; });
  store.finish();
  EXPECT_EQ(written_, 0);
  EXPECT_TRUE(told_.events.empty());
}

TEST_F(RunStoreTest, AFailureIsToldOnceAndEndsTheStoring) {
  RunStore store(file_, told_);
  store.write([](Database&) { throw BadInput("the disk is full"); });
  store.write([&](Database&) { ++written_; });
  EXPECT_EQ(store.database(), nullptr);
  EXPECT_EQ(written_, 0);
  EXPECT_EQ(store.lost(), "the disk is full");
  EXPECT_EQ(told_.events, (std::vector<std::string>{"lost: the disk is full"}));
}

TEST_F(RunStoreTest, AServersAbsenceAndReturnAreToldOnceEach) {
  RunStore store(file_, told_);
  bool away = true;
  const WriteQueue::Write write = [&](Database&) {
    if (away) throw ConnectionLost("gone");
    ++written_;
  };
  for (int i = 0; i < 3; ++i) store.write(write);
  EXPECT_EQ(told_.events, (std::vector<std::string>{"away: gone"}));
  away = false;
  store.finish();
  EXPECT_EQ(written_, 3);
  EXPECT_EQ(told_.events, (std::vector<std::string>{"away: gone", "back"}));
  EXPECT_EQ(store.lost(), "");
}

}  // namespace run_store_test
}  // namespace assay
