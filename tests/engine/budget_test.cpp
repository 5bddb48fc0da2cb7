#include "src/campaign/engine/budget.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Budget, IsOverWhenTheTimeIsOrSomeoneInterrupts) {
  std::atomic<int> signal = 0;
  const Budget unlimited(0, &signal), spent(1e-9, nullptr), long_one(1e6, &signal);
  EXPECT_FALSE(unlimited.over());
  EXPECT_FALSE(long_one.over());
  while (spent.seconds() < 1e-9) {
  }
  EXPECT_TRUE(spent.over());
  EXPECT_FALSE(spent.interrupted());
  signal = 15;
  EXPECT_TRUE(unlimited.over());
  EXPECT_TRUE(long_one.over());
}

TEST(Budget, FreeSecondsDoNotCount) {
  double compiling = 7;
  const Budget budget(5, nullptr, [&] { return compiling; });
  EXPECT_LT(budget.late_by(), -4);
  compiling = 7 + 1000;
  EXPECT_LT(budget.late_by(), -1000);
  EXPECT_EQ(budget.fraction(0, 1), 0);
  compiling = 7 - 1000;
  EXPECT_GT(budget.late_by(), 900);
  EXPECT_TRUE(budget.over());
}

TEST(Budget, FractionIsOfTheTimeOrOfTheJobs) {
  EXPECT_EQ(Budget(0, nullptr).fraction(3, 4), 0.75);
  EXPECT_EQ(Budget(0, nullptr).fraction(0, 0), 0);
  EXPECT_LT(Budget(1e6, nullptr).fraction(3, 4), 0.1);
  const Budget spent(1e-9, nullptr);
  while (spent.seconds() < 1e-9) {
  }
  EXPECT_EQ(spent.fraction(0, 4), 1);
}

}  // namespace
}  // namespace assay
