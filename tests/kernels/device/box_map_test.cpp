#include "kernels/device/box_map.h"

#include <gtest/gtest.h>

#include "src/base/program/tile_map_bytes.h"

namespace assay::device {
namespace {

TEST(BoxMap, IsOneThatTheDriverTakesWhereRowsAreMultiplesOf16Bytes) {
  for (const int width : {32, 64})
    for (const int64_t channels : {8, 24, 64, 72, 256})
      for (const int64_t tokens : {1, 64, 1000})
        EXPECT_EQ(fault_of(box_map(channels, 3, tokens, width), 256), "");
  EXPECT_NE(fault_of(box_map(20, 3, 64, 64), 256), "");
  EXPECT_NE(fault_of(box_map(24, 3, 64, 64), 8), "") << "its address";
  EXPECT_NE(fault_of(box_map(24, 3, 0, 64), 256), "");
}

TEST(BoxMap, GoesThroughChannelsThenHeadsThenTokens) {
  const TileMap map = box_map(72, 3, 1000, 32);
  EXPECT_EQ(map.sizes, (std::vector<uint64_t>{72, 3, 1000}));
  EXPECT_EQ(map.strides, (std::vector<uint64_t>{144, 432}));
  EXPECT_EQ(map.box, (std::vector<uint32_t>{32, 1, 64}));
  EXPECT_EQ(map.swizzle, TileMap::Swizzle::of_64_bytes);
  EXPECT_EQ(box_map(72, 3, 1000, 64).swizzle, TileMap::Swizzle::of_128_bytes);
}

}  // namespace
}  // namespace assay::device
