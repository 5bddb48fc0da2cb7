#include "src/campaign/engine/shard.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay {
namespace {

TEST(Shard, EveryJobIsOfOneShardAndThePartsAreEvenToOne) {
  for (const int64_t of : {1, 2, 3, 7, 64})
    for (const int64_t all : {0, 1, 5, 63, 64, 1000}) {
      std::vector<int> takers(static_cast<size_t>(all)), holders(static_cast<size_t>(all));
      for (int64_t number = 1; number <= of; ++number) {
        const Shard shard{number, of};
        EXPECT_LE(shard.end(all) - shard.begin(all), all / of + 1);
        EXPECT_GE(shard.end(all) - shard.begin(all), all / of);
        for (int64_t job = 0; job < all; ++job) {
          takers[static_cast<size_t>(job)] += shard.takes(job);
          holders[static_cast<size_t>(job)] += job >= shard.begin(all) && job < shard.end(all);
        }
      }
      EXPECT_EQ(takers, std::vector<int>(static_cast<size_t>(all), 1)) << of << " shards of " << all;
      EXPECT_EQ(holders, std::vector<int>(static_cast<size_t>(all), 1)) << of << " shards of " << all;
    }
}

TEST(Shard, PartsOfVeryManyJobsDoNotOverflow) {
  const int64_t all = int64_t{1} << 62;
  EXPECT_EQ((Shard{1000, 1000}.end(all)), all);
  EXPECT_LT((Shard{999, 1000}.end(all)), all);
  EXPECT_GT((Shard{999, 1000}.end(all)), all / 1000 * 998);
}

}  // namespace
}  // namespace assay
