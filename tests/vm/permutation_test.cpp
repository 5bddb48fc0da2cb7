#include "src/base/vm/permutation.h"

#include <gtest/gtest.h>

#include <set>

namespace assay::vm {
namespace permutation_test {

TEST(Permutation, HasEveryPlaceOnceForEveryOrderAndCount) {
  for (const uint64_t order : {0, 1, 2, 3, 77})
    for (const uint64_t count : {1, 2, 3, 4, 12, 31, 32, 360, 1009}) {
      const Permutation permutation(order, count);
      std::set<uint64_t> seen;
      for (uint64_t turn = 0; turn < count; ++turn) seen.insert(permutation(turn));
      EXPECT_EQ(seen.size(), count) << order << " " << count;
      EXPECT_EQ(*seen.rbegin(), count - 1) << order << " " << count;
    }
}

TEST(Permutation, IsTheIdentityItsReverseOrNeither) {
  EXPECT_EQ(Permutation(0, 10)(3), 3u);
  EXPECT_EQ(Permutation(1, 10)(3), 6u);
  int moved = 0;
  const Permutation shuffled(2, 1000);
  for (uint64_t turn = 0; turn < 1000; ++turn)
    moved += shuffled(turn) != turn && shuffled(turn) != 999 - turn;
  EXPECT_GT(moved, 900);
}

TEST(Permutation, DoesNotOverflow) {
  const uint64_t count = (uint64_t{1} << 63) - 25;
  EXPECT_LT(Permutation(5, count)(count - 1), count);
}

}  // namespace permutation_test
}  // namespace assay::vm
