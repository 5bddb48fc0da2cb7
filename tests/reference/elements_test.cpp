#include "reference/elements.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace assay {
namespace {

TEST(Elements, HaveTheirRowAndColumnInTheOrderInWhichTheyLie) {
  for (const size_t columns : {1, 3, 7})
    for (const size_t count : {0, 3, 20, 21}) {  // of 7 columns 20 leave the last row short
      std::vector<std::array<size_t, 3>> expected, got;
      for (size_t i = 0; i < count; ++i) expected.push_back({i, i / columns, i % columns});
      for_each_element(count, columns, [&](size_t i, size_t row, size_t column) {
        got.push_back({i, row, column});
      });
      EXPECT_EQ(got, expected) << columns << " columns, " << count;
    }
}

}  // namespace
}  // namespace assay
