#include "reference/state_history.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(StateHistory, returns_every_state_backwards_with_each_step_run_at_most_twice) {
  for (int64_t length : {0, 1, 2, 3, 16, 17, 99}) {
    int64_t steps = 0;
    StateHistory<uint64_t> history(7, length, [&](int64_t t, uint64_t& state) {
      state = state * 3 + static_cast<uint64_t>(t), ++steps;
    });
    std::vector<uint64_t> expected = {7};
    for (int64_t t = 1; t <= length; ++t) expected.push_back(expected.back() * 3 + static_cast<uint64_t>(t));
    for (int64_t t = length; t >= 0; --t)
      EXPECT_EQ(history.at(t), expected[static_cast<size_t>(t)]) << t << " of " << length;
    EXPECT_LE(steps, 2 * length);
  }
}

}  // namespace
}  // namespace assay
