#include "src/base/program/byte_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace assay {
namespace {

TEST(ByteSet, AreTheBytesThatASetHolds) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    ByteSet ranges;
    std::set<uint64_t> bytes;
    for (int step = 0; step < 30; ++step) {
      const uint64_t begin = random() % 60, end = begin + random() % 12;
      const bool adds = random() % 2;
      adds ? ranges.add(begin, end) : ranges.remove(begin, end);
      for (uint64_t at = begin; at < end; ++at) adds ? void(bytes.insert(at)) : void(bytes.erase(at));
      ASSERT_EQ(ranges.count(), bytes.size()) << "seed " << seed;
      uint64_t last = 0;
      for (const ByteSpan& range : ranges.spans()) {
        ASSERT_TRUE(range.begin < range.end && (range.begin > last || last == 0)) << "seed " << seed;
        for (uint64_t at = range.begin; at < range.end; ++at)
          ASSERT_TRUE(bytes.contains(at)) << "seed " << seed;
        last = range.end;
      }
      const auto inside = static_cast<uint64_t>(
          std::distance(bytes.lower_bound(begin), bytes.lower_bound(std::max(begin, end))));
      ASSERT_EQ(ranges.within(begin, end).count(), inside) << "seed " << seed;
      ASSERT_EQ(ranges.empty(), bytes.empty());
    }
  }
}

}  // namespace
}  // namespace assay
