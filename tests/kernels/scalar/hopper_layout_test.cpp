#include "kernels/scalar/hopper_layout.h"

#include <gtest/gtest.h>

namespace assay::scalar {
namespace {

TEST(HopperLayout, FitsABlockAndStartsEveryTileAtASwizzlePattern) {
  for (const int key_tiles : {1, 2})
    for (const int columns : {32, 64}) {
      const HopperLayout layout(key_tiles, columns);
      EXPECT_LE(layout.bytes, hopper_most_shared_bytes);
      for (const int offset : {layout.keys_offset, layout.values_offset, layout.sums_offset,
                               layout.stage_bytes, layout.states_offset, layout.state_bytes / key_tiles})
        EXPECT_EQ(offset % HopperLayout::pattern, 0) << key_tiles << " tiles, " << columns << " columns";
      // What lies one after the other does not overlap.
      EXPECT_EQ(layout.keys_offset, key_tiles * 64 * 64 * 2);
      EXPECT_EQ(layout.values_offset, 2 * layout.keys_offset);
      EXPECT_EQ(layout.sums_offset, layout.values_offset + 64 * columns * 2);
      EXPECT_EQ(layout.states_offset, HopperLayout::stages * layout.stage_bytes);
      EXPECT_GE(layout.bytes, layout.states_offset + 2 * layout.state_bytes + HopperLayout::pattern - 16);
    }
}

TEST(HopperLayout, AResultGroupFindsItsChunksInPlacesOfItsOwn) {
  for (int step = 0; step < 64; ++step)
    EXPECT_EQ(step % HopperLayout::stages % hopper_result_groups, step % hopper_result_groups);
}

}  // namespace
}  // namespace assay::scalar
