#include "src/base/numerics/time_limit.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

/// Works until it is given up; false: nobody gave it up in a minute.
bool is_given_up() {
  for (const auto end = Clock::now() + std::chrono::minutes(1); Clock::now() < end;) {
    if (is_abandoned()) return true;
    std::this_thread::yield();
  }
  return false;
}

TEST(TimeLimit, WorkIsGivenUpAfterItAndWhatComesLaterIsNot) {
  const auto began = Clock::now();
  {
    const TimeLimit limit(0.05);
    EXPECT_FALSE(is_abandoned());
    EXPECT_TRUE(is_given_up());
  }
  EXPECT_GE(Clock::now() - began, std::chrono::milliseconds(50));
  EXPECT_FALSE(is_abandoned());
}

TEST(TimeLimit, AnEndlessOneIsEndedByTheFlagLentBefore) {
  std::atomic<int> flag{0};
  const LentFlag lent(&flag);
  const TimeLimit limit(HUGE_VAL);
  EXPECT_FALSE(is_abandoned());
  flag = 1;
  EXPECT_TRUE(is_given_up());
}

TEST(TimeLimit, OneThatIsNotReachedCostsNoWaiting) {
  const auto began = Clock::now();
  for (int i = 0; i < 10; ++i) const TimeLimit limit(60);
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(30));
}

}  // namespace
}  // namespace assay
