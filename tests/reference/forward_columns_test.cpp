#include "reference/forward_columns.h"

#include <gtest/gtest.h>

#include "reference/forward_ladder.h"
#include "reference/literal.h"
#include "reference/operators/gla.h"
#include "tests/reference/random_forward.h"

namespace assay {
namespace {

TEST(ForwardColumns, fill_their_own_columns_of_their_own_slice_and_no_others) {
  RandomForward f({1, 20, 2, 3, 40});
  const Slice slice = slices_of(f.problem().problem)[1];
  EXPECT_TRUE(evaluate_columns(f.problem(), slice, kColumnsPerTask).empty());
  const auto exact = f.literal(slice);
  for (int64_t t = 0; t < 20; ++t)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t v = 0; v < 40; ++v) {
        const auto i = static_cast<size_t>((t * 2 + h) * 40 + v);
        const bool own = h == slice.h && v >= kColumnsPerTask;
        EXPECT_EQ(f.o.bound[i] > 0, own) << t << " " << h << " " << v;
        if (own) {
          EXPECT_NEAR(f.o.mid[i], exact.o(t, v), f.o.rad[i] + 1e-13);
          EXPECT_LT(f.o.rad[i], 0x1p-10 * f.o.bound[i]);
          EXPECT_GE(f.o.companion[i], std::fabs(f.o.mid[i]) * (1 - 1e-12));
        } else {
          EXPECT_EQ(f.o.mid[i], 0);
        }
      }
  for (int64_t c = 0; c < 3; ++c)
    EXPECT_NEAR(f.state.mid[static_cast<size_t>((3 + c) * 40 + 39)], exact.S(c, 39), 1e-12);
}

TEST(ForwardColumns, name_the_columns_whose_radius_is_too_wide_for_the_bound) {
  RandomForward f({1, 20, 1, 3, 4}, 0x1p-40);
  const Slice slice = slices_of(f.problem().problem)[0];
  EXPECT_EQ(evaluate_columns(f.problem(), slice, 0).size(), 4u);
}

}  // namespace
}  // namespace assay
