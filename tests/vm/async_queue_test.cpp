#include "src/base/vm/async_queue.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/base/vm/code.h"

namespace assay::vm {
namespace {

struct Number {
  int value = 0;
};

/// What a wait completes: (number, lanes) of each.
std::vector<std::pair<int, uint32_t>> wait(AsyncQueue<Number>& queue, uint32_t mask, uint64_t outstanding) {
  std::vector<std::pair<int, uint32_t>> done;
  queue.wait(mask, outstanding,
             [&](const auto& entry, uint32_t lanes) { done.emplace_back(entry.work.value, lanes); });
  return done;
}
using Done = std::vector<std::pair<int, uint32_t>>;

TEST(AsyncQueue, CompletesAllButTheNewestClosedGroups) {
  AsyncQueue<Number> queue;
  const Op op;
  for (int i = 0; i < 4; ++i) {
    queue.issue(op, ~0u).value = i;
    if (i < 3) queue.commit(~0u);
  }
  EXPECT_EQ(wait(queue, ~0u, 2), (Done{{0, ~0u}}));
  EXPECT_EQ(wait(queue, ~0u, 0), (Done{{1, ~0u}, {2, ~0u}}));
  ASSERT_EQ(queue.in_flight().size(), 1u);
  EXPECT_EQ(queue.in_flight()[0].work.value, 3) << "its group is open";
  EXPECT_EQ(wait(queue, ~0u, AsyncQueue<Number>::none), (Done{{3, ~0u}}));
}

TEST(AsyncQueue, CountsGroupsOfEachLaneAlone) {
  AsyncQueue<Number> queue;
  const Op op;
  queue.issue(op, 3).value = 7;
  queue.commit(1);
  EXPECT_EQ(wait(queue, 3, 0), (Done{{7, 1}})) << "lane 1 has closed no group";
  queue.commit(2);
  EXPECT_EQ(wait(queue, 1, 0), Done{}) << "lane 1 does not wait";
  EXPECT_EQ(wait(queue, 3, 0), (Done{{7, 2}}));
  EXPECT_TRUE(queue.in_flight().empty());
}

TEST(AsyncQueue, KnowsWhichOfItsInstructionsFly) {
  AsyncQueue<Number> queue;
  const Op op;
  for (int i = 0; i < 3; ++i) queue.issue(op, ~0u), queue.commit(~0u);
  wait(queue, ~0u, 1);
  EXPECT_EQ(queue.issued(), 3u);
  EXPECT_FALSE(queue.flies(1));
  EXPECT_TRUE(queue.flies(2));
  queue.clear();
  EXPECT_EQ(queue.issued(), 0u);
  EXPECT_TRUE(queue.in_flight().empty());
}

}  // namespace
}  // namespace assay::vm
