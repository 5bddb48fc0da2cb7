#include "src/verification/diagnosis/slice.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using Links = vm::EventLinks;
using Path = std::vector<int32_t>;

vm::Recording recording_of(std::vector<Links> events) {
  vm::Recording r;
  r.event_count = static_cast<int32_t>(events.size());
  r.links = [events](int32_t i) { return events[i]; };
  return r;
}

Links born(Path parents = {}) {
  return {true, false, false, parents};
}
Links carried(Path parents) {
  return {false, false, false, parents};
}

TEST(Slice, TheOriginIsTheEarliestBirthBehindTheElement) {
  // 0: an overflow elsewhere; 1: exp overflow; 2: 0 * inf; 3: another overflow that joins; 4: their sum
  const WalkBack s = walk_back(recording_of({born(), born(), born({1}), born(), carried({2, 3})}), 4);
  EXPECT_EQ(s.origin, 1);
  EXPECT_EQ(s.path, (Path{1, 2, 4}));
  EXPECT_FALSE(s.from_outside);
}

TEST(Slice, ABirthThatIsNotBehindTheElementStaysSilent) {
  EXPECT_EQ(walk_back(recording_of({born(), born(), carried({1})}), 2).origin, 1);
}

TEST(Slice, ANanFromOutsideBeforeEveryBirthIsTheOrigin) {
  const WalkBack s = walk_back(recording_of({{false, true, false, {}}, born(), carried({0, 1})}), 2);
  EXPECT_EQ(s.origin, 0);
  EXPECT_TRUE(s.from_outside);
}

TEST(Slice, AnInfinityFromOutsideIsTheOriginOnlyWithoutABirth) {
  const Links mask{false, false, true, {}};
  EXPECT_EQ(walk_back(recording_of({mask, born({0}), carried({1})}), 2).origin, 1);
  EXPECT_EQ(walk_back(recording_of({mask, carried({0})}), 1).origin, 0);
}

}  // namespace
}  // namespace assay
