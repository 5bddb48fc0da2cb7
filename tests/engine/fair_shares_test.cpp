#include "src/campaign/engine/fair_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

namespace assay {
namespace {

TEST(FairShares, GivePartiesEqualTimesWhateverTheirJobsCost) {
  const std::vector<double> cost{1, 7, 0.25};
  for (const size_t in_flight : {1u, 5u}) {
    FairShares shares(3);
    std::vector<double> spent(3);
    std::deque<size_t> flying;
    for (int job = 0; job < 5000; ++job) {
      const size_t party = shares.least_served();
      shares.begin(party);
      flying.push_back(party);
      if (flying.size() < in_flight) continue;
      shares.end(flying.front(), cost[flying.front()]);
      spent[flying.front()] += cost[flying.front()];
      flying.pop_front();
    }
    // A party is ahead by its own last jobs at most.
    const auto [least, most] = std::minmax_element(spent.begin(), spent.end());
    EXPECT_LE(*most - *least, 7 * static_cast<double>(in_flight)) << in_flight;
  }
}

TEST(FairShares, WhatIsSpentBesideJobsCounts) {
  FairShares shares(2);
  for (const size_t party : {0u, 1u}) shares.begin(party), shares.end(party, 1);
  EXPECT_EQ(shares.least_served(), 0u);
  shares.spend(0, 3);
  for (int job = 0; job < 3; ++job) {
    ASSERT_EQ(shares.least_served(), 1u) << job;
    shares.begin(1), shares.end(1, 1);
  }
}

TEST(FairShares, AJobInFlightOfAPartyWithoutAnyCountsAsATypicalOne) {
  FairShares shares(2);
  shares.begin(0), shares.end(0, 5);
  EXPECT_EQ(shares.least_served(), 1u);
  shares.begin(1);
  EXPECT_EQ(shares.least_served(), 0u) << "5 s each: the first of equals";
  shares.begin(1);
  EXPECT_EQ(shares.least_served(), 0u);
}

}  // namespace
}  // namespace assay
