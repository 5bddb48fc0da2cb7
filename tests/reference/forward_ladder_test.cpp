#include "reference/forward_ladder.h"

#include <gtest/gtest.h>

#include "reference/forward_columns.h"
#include "tests/reference/random_forward.h"

namespace assay {
namespace {

TEST(ForwardLadder, narrows_the_columns_it_is_given_and_leaves_the_others) {
  RandomForward f({1, 20, 1, 3, 4}, 0x1p-40);
  const Slice slice = slices_of(f.problem().problem)[0];
  ASSERT_EQ(evaluate_columns(f.problem(), slice, 0).size(), 4u);
  const ReferenceOutput before = f.o;
  climb_ladder(f.problem(), slice, 0, {1, 3});
  EXPECT_EQ(f.o.rung, 1);
  for (int64_t t = 0; t < 20; ++t)
    for (int64_t v = 0; v < 4; ++v) {
      const auto i = static_cast<size_t>(t * 4 + v);
      if (v % 2 == 0) {
        EXPECT_EQ(f.o.rad[i], before.rad[i]);
      } else {
        EXPECT_LE(f.o.rad[i], 0x1p-10 * f.o.bound[i]);
        EXPECT_LT(f.o.rad[i], before.rad[i]);
      }
      EXPECT_LE(std::fabs(f.o.mid[i] - before.mid[i]), before.rad[i] + f.o.rad[i]);
    }
}

TEST(ForwardLadder, has_nothing_to_do_for_no_columns) {
  RandomForward f({1, 5, 1, 2, 3});
  const Slice slice = slices_of(f.problem().problem)[0];
  evaluate_columns(f.problem(), slice, 0);
  const std::vector<double> before = f.o.rad;
  climb_ladder(f.problem(), slice, 0, {});
  EXPECT_EQ(f.o.rad, before);
  EXPECT_EQ(f.o.rung, 0);
}

}  // namespace
}  // namespace assay
