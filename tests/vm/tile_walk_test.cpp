// Which bytes a tile has.
#include "src/base/vm/tile_walk.h"

#include <gtest/gtest.h>

#include <map>

namespace assay::vm {
namespace {

/// Element of the tile -> element of the tensor, -1 outside.
std::vector<int64_t> elements_of(const TileRequest& tile) {
  const uint32_t width = width_of(tile.map->element);
  std::vector<int64_t> all;
  each_run(tile, [&](const TileRun& run) {
    EXPECT_EQ(run.shared, all.size() * width) << "tiles have no gaps";
    for (uint32_t at = 0; at < run.bytes; at += width)
      all.push_back(run.inside ? static_cast<int64_t>((run.global + at - tile.base) / width) : -1);
  });
  EXPECT_EQ(all.size() * width, bytes_of_tile(*tile.map));
  return all;
}

TEST(TileWalk, BoxesTakeWhatIsInsideTheTensor) {
  const TileMap map{
      .element = TileMap::Element::f32, .sizes = {5, 3}, .strides = {32}, .box = {4, 2}, .steps = {1, 1}};
  EXPECT_EQ(elements_of({&map, 4096, {0, 0}, {}}), (std::vector<int64_t>{0, 1, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(elements_of({&map, 4096, {3, 2}, {}}), (std::vector<int64_t>{19, 20, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(elements_of({&map, 4096, {-2, -1}, {}}), (std::vector<int64_t>{-1, -1, -1, -1, -1, -1, 0, 1}));
  EXPECT_EQ(elements_of({&map, 4096, {7, 0}, {}}), std::vector<int64_t>(8, -1));
}

TEST(TileWalk, StoresWriteWholePiecesOfSixteenBytes) {
  const TileMap map{
      .element = TileMap::Element::f32, .sizes = {5, 3}, .strides = {32}, .box = {8, 1}, .steps = {1, 1}};
  EXPECT_EQ(elements_of({&map, 4096, {0, 2}, {}, false}),
            (std::vector<int64_t>{16, 17, 18, 19, 20, -1, -1, -1}));
  EXPECT_EQ(elements_of({&map, 4096, {0, 2}, {}, true}),
            (std::vector<int64_t>{16, 17, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(elements_of({&map, 4096, {8, 2}, {}, true}), std::vector<int64_t>(8, -1));
}

TEST(TileWalk, StepsPassElementsOver) {
  const TileMap map{
      .element = TileMap::Element::u8, .sizes = {16, 9}, .strides = {16}, .box = {16, 5}, .steps = {1, 2}};
  const std::vector<int64_t> all = elements_of({&map, 0, {0, 1}, {}});
  ASSERT_EQ(all.size(), 48u);
  EXPECT_EQ(all[0], 16);
  EXPECT_EQ(all[16], 48);
  EXPECT_EQ(all[32], 80);
}

TEST(TileWalk, PixelsOfIm2colGoAlongTheBoxBetweenTheCorners) {
  // Two channels, images of 4 x 3; the box leaves out the last column and the last row.
  const TileMap map{.element = TileMap::Element::f64,
                    .sizes = {2, 4, 3, 2},
                    .strides = {16, 64, 192},
                    .steps = {1, 1, 1, 1},
                    .lower = {0, 0},
                    .upper = {-1, -1},
                    .channels = 2,
                    .pixels = 7};
  const std::vector<int64_t> all = elements_of({&map, 0, {0, 1, 0, 0}, {1, 0}});
  std::vector<int64_t> pixels;
  for (size_t i = 0; i < all.size(); i += 2) pixels.push_back(all[i] / 2);
  // (w, h, n) from (1, 0, 0), each one column on: 1 2 | row 1: 0 1 2 | image 1: 0 1.
  EXPECT_EQ(pixels, (std::vector<int64_t>{2, 3, 5, 6, 7, 13, 14}));
}

TEST(TileWalk, SwizzlesExchangePiecesOfSixteenBytesWithinTheirSpan) {
  using Swizzle = TileMap::Swizzle;
  EXPECT_EQ(swizzled(Swizzle::none, 1234), 1234u);
  EXPECT_EQ(swizzled(Swizzle::of_128_bytes, 3 * 128 + 16), 3 * 128u + 2 * 16);
  EXPECT_EQ(swizzled(Swizzle::of_64_bytes, 3 * 128 + 16), 3 * 128u + 2 * 16);
  EXPECT_EQ(swizzled(Swizzle::of_32_bytes, 3 * 128 + 16), 3 * 128u);
  for (const Swizzle swizzle : {Swizzle::of_32_bytes, Swizzle::of_64_bytes, Swizzle::of_128_bytes}) {
    std::map<uint64_t, int> seen;
    for (uint64_t at = 0; at < 2048; at += 16) {
      EXPECT_EQ(swizzled(swizzle, swizzled(swizzle, at)), at);
      EXPECT_EQ(swizzled(swizzle, at + 5), swizzled(swizzle, at) + 5);
      EXPECT_EQ(seen[swizzled(swizzle, at)]++, 0);
    }
  }
}

}  // namespace
}  // namespace assay::vm
