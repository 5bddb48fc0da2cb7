#include "tools/hopper/drawn_maps.h"

#include <algorithm>

#include "src/base/program/tile_map_bytes.h"
#include "src/base/vm/tile_walk.h"

namespace assay::hopper {
namespace {

uint32_t below(std::mt19937_64& random, uint64_t n) {
  return static_cast<uint32_t>(random() % n);
}

void draw_modes(std::mt19937_64& random, TileMap& map) {
  map.element = static_cast<TileMap::Element>(below(random, 13));
  map.swizzle = static_cast<TileMap::Swizzle>(below(random, 4));
  map.promotion = static_cast<TileMap::Promotion>(below(random, 4));
  if (map.element >= TileMap::Element::f16) map.outside = static_cast<TileMap::Outside>(below(random, 2));
}

/// Sizes and strides of a small tensor; its bytes.
uint64_t draw_tensor(std::mt19937_64& random, size_t axes, TileMap& map) {
  constexpr uint64_t grain = 32;
  uint64_t bytes = vm::width_of(map.element);
  for (size_t i = 0; i < axes; ++i) {
    map.sizes.push_back(i == 0 ? 5 + below(random, 60) : 2 + below(random, axes > 3 ? 5 : 12));
    bytes *= map.sizes.back();
    map.steps.push_back(i > 0 && below(random, 5) == 0 ? 1 + below(random, 4) : 1);
    if (i + 1 == axes) break;
    bytes = (bytes + grain - 1) / grain * grain + grain * below(random, 2);
    map.strides.push_back(bytes);
  }
  return bytes;
}

void draw_box(std::mt19937_64& random, size_t axes, TileMap& map) {
  const auto width = static_cast<uint32_t>(vm::width_of(map.element));
  const uint32_t span = 16u << static_cast<int>(map.swizzle);
  const bool swizzles = map.swizzle != TileMap::Swizzle::none;
  for (size_t i = 0; i < axes; ++i) {
    const uint32_t inner = swizzles ? span / (below(random, 3) == 0 ? 2 : 1) : 16 * (1 + below(random, 6));
    map.box.push_back(i == 0 ? std::max(1u, inner / width) : 1 + below(random, axes > 3 ? 4 : 8));
  }
}

}  // namespace

DrawnTile draw_interleaved_tile(std::mt19937_64& random) {
  DrawnTile made;
  TileMap& map = made.map;
  map.element = below(random, 2) ? TileMap::Element::u16 : TileMap::Element::u8;
  map.interleave = static_cast<TileMap::Interleave>(1 + below(random, 2));
  map.swizzle = static_cast<TileMap::Swizzle>(below(random, 3) == 0 ? 1 : 0);
  const size_t axes = 3 + below(random, 3);
  uint64_t bytes = 32;
  for (size_t i = 0; i < axes; ++i) {
    map.sizes.push_back(3 + below(random, 4));
    map.box.push_back(1 + below(random, axes > 3 ? 3 : 5));
    map.steps.push_back(below(random, 5) == 0 ? 2 : 1);
    bytes *= map.sizes.back();
    if (i + 1 < axes) map.strides.push_back(bytes += 32 * below(random, 2));
    made.coordinates.push_back(static_cast<int32_t>(below(random, map.sizes[i])) - 1);
  }
  return made;
}

DrawnTile draw_tile(std::mt19937_64& random, Tiles kind) {
  const bool im2col = kind == Tiles::im2col;
  for (;;) {
    DrawnTile made;
    TileMap& map = made.map;
    const size_t axes = im2col ? 3 + below(random, 3) : 1 + below(random, 5);
    draw_modes(random, map);
    const uint64_t bytes = draw_tensor(random, axes, map);
    draw_box(random, axes, map);
    made.offset = 32 * below(random, 4);
    for (size_t i = 0; i < axes; ++i) {
      const auto size = static_cast<int32_t>(map.sizes[i]), box = static_cast<int32_t>(map.box[i]);
      const auto room = static_cast<uint64_t>(size + box + 1);
      made.coordinates.push_back(below(random, 3) == 0 ? static_cast<int32_t>(below(random, map.sizes[i]))
                                                       : static_cast<int32_t>(below(random, room)) - box);
    }
    if (im2col) {
      map.channels = map.box[0], map.pixels = 1 + below(random, 70);
      map.box.clear();
      const uint32_t most = axes == 3 ? 9 : 4;
      for (size_t i = 0; i + 2 < axes; ++i) {
        map.lower.push_back(-static_cast<int32_t>(below(random, most)));
        map.upper.push_back(-static_cast<int32_t>(below(random, most)));
        made.coordinates[i + 1] = map.lower[i] + static_cast<int32_t>(below(random, map.sizes[i + 1]));
        made.offsets.push_back(static_cast<uint16_t>(below(random, 4)));
      }
      made.coordinates[axes - 1] = static_cast<int32_t>(below(random, map.sizes[axes - 1]));
    }
    // Tiles begin at multiples of 16 bytes.
    const int32_t grain = std::max(1, 16 / static_cast<int32_t>(vm::width_of(map.element)));
    made.coordinates[0] -= made.coordinates[0] % grain;
    if (kFirstByte + made.offset + bytes > kBufferBytes / 2 || vm::reach_of_tile(map) > kLargestTile ||
        vm::bytes_of_tile(map) == 0 || !fault_of(map, kFirstByte + made.offset).empty())
      continue;
    return made;
  }
}

}  // namespace assay::hopper
