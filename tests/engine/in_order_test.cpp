#include "src/campaign/engine/in_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace assay {
namespace {

TEST(InOrder, GivesRecordsByNumberInWhateverOrderTheyCome) {
  std::vector<int> numbers(100);
  for (int i = 0; i < 100; ++i) numbers[static_cast<size_t>(i)] = i;
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937(3));
  InOrder<int> records;
  std::vector<int> given;
  for (const int number : numbers) {
    records.add(number, 10 * number);
    while (const auto next = records.next()) given.push_back(*next);
    EXPECT_EQ(records.taken(), std::ssize(given));
  }
  ASSERT_EQ(given.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(given[static_cast<size_t>(i)], 10 * i);
}

TEST(InOrder, LeavesThoseThatWaitForANumberThatNeverCame) {
  InOrder<int> records;
  for (const int number : {3, 0, 2}) records.add(number, 10 * number);
  EXPECT_EQ(records.next(), 0);
  EXPECT_FALSE(records.next());
  EXPECT_EQ(records.rest(), (std::vector<int>{20, 30}));
  EXPECT_TRUE(records.rest().empty());
}

}  // namespace
}  // namespace assay
