// What a run comes to.
#include "src/campaign/mutate/reach.h"

#include <gtest/gtest.h>

#include <bit>

#include "tests/mutate/subject.h"

namespace assay {
namespace {

Reach reach(int64_t T) {
  MutationCase m = small_case();
  m.case_.T = T;
  return reach_of_case(m.case_, subject(), one_thread());
}

TEST(Reach, CountsInstructionsAndWhatComparisonsSee) {
  const Reach none = reach(0), some = reach(9);
  ASSERT_EQ(some.executed.size(), 1u);
  const auto& flags = some.executed.begin()->second;
  EXPECT_TRUE(flags.front() & came_to);
  int compared = 0;
  for (const uint8_t seen : flags) {
    if (seen & (saw_less | saw_equal | saw_greater)) ++compared;
    EXPECT_TRUE(seen == 0 || (seen & came_to)) << int{seen};
  }
  EXPECT_GT(compared, 0);
  EXPECT_GT(some.longest_warp, none.longest_warp);
  const auto& [module, function] = some.executed.begin()->first;
  EXPECT_TRUE(some.has(module, function, 0));
  EXPECT_FALSE(some.has(module + "?", function, 0));
  EXPECT_FALSE(some.has(module, function + 1, 0));
}

TEST(Reach, AddsOnlyWhatIsNew) {
  Reach all = reach(0);
  const Reach more = reach(9);
  EXPECT_GT(all.add(more), 0);
  EXPECT_EQ(all.add(more), 0);
  EXPECT_EQ(all.add(reach(0)), 0);
}

TEST(Reach, OfOneFunctionIsAddedOnce) {
  const std::vector<uint8_t> own{came_to, came_to | saw_true, 0};
  std::vector<uint8_t> seen{came_to};
  EXPECT_EQ(new_reach(own, seen), 2);
  EXPECT_EQ(add_reach(own, seen), 2);
  EXPECT_EQ(seen, own);
  EXPECT_EQ(new_reach(own, seen), 0);
  EXPECT_EQ(new_reach({came_to}, seen), 0) << "a shorter one";
}

}  // namespace
}  // namespace assay
