#include "fuzz/bound_width.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

ReferenceOutput output(std::vector<double> mid, std::vector<double> bound, double roundoff = 0) {
  ReferenceOutput o;
  o.mid = std::move(mid), o.bound = std::move(bound), o.rad.assign(o.mid.size(), 0), o.roundoff = roundoff;
  return o;
}

TEST(BoundWidth, is_the_median_and_not_told_by_a_few_tight_bounds) {
  EXPECT_DOUBLE_EQ(bound_width(output({1, -1, 7, 1, -7}, {0.1, 0.1, 50, 100, 200})).median,
                   50 / std::sqrt(101.0 / 5));
  EXPECT_EQ(bound_width(output({1, 2}, {0, 0})).median, 0);
  EXPECT_TRUE(std::isinf(bound_width(output({0, 0}, {1, 1})).median));
}

TEST(BoundWidth, leaves_out_what_has_no_finite_bound_or_value) {
  const BoundWidth width = bound_width(output({1, 1, HUGE_VAL}, {0.5, HUGE_VAL, 1}));
  EXPECT_DOUBLE_EQ(width.median, 0.5);
  EXPECT_DOUBLE_EQ(width.caught, 0.5);
  EXPECT_EQ(bound_width(output({}, {})).caught, 0);
}

TEST(BoundWidth, catches_what_is_beyond_the_bound_of_one_element_however_it_is_rounded) {
  const double u = 0x1p-8, d = bound_width(output({1, -8}, {0.5, 2}, u)).caught;
  EXPECT_DOUBLE_EQ(d, (2 + 8 * u) / (8 * (1 - u)));
  EXPECT_GE((1 + d) * 8 * (1 - u) - 8, 2 * (1 - 1e-12));
}

}  // namespace
}  // namespace assay
