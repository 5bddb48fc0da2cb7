#include "src/base/vm/tile_walk.h"

#include <algorithm>

namespace assay::vm {
namespace {

/// Elements that a tile of boxes has along an axis. Steps along the innermost one are passed over.
uint32_t extent(const TileMap& map, size_t axis) {
  return axis == 0 ? map.box[0] : (map.box[axis] + map.steps[axis] - 1) / map.steps[axis];
}

/// From one row of elements along the innermost axis to the next, in shared memory.
uint32_t pitch_of(const TileMap& map) {
  const uint32_t row = width_of(map.element) * (map.is_im2col() ? map.channels : extent(map, 0));
  return map.swizzle == TileMap::Swizzle::none ? row : std::max(row, 16u << static_cast<int>(map.swizzle));
}

/// A row of elements along the innermost axis: what is inside the tensor, and what is not.
void visit_row(const TileRequest& tile, int64_t first, uint32_t count, bool inside, uint64_t global,
               uint32_t shared, const std::function<void(const TileRun&)>& visit) {
  const uint32_t width = width_of(tile.map->element);
  const auto size = static_cast<int64_t>(tile.map->sizes[0]);
  const int64_t piece = tile.stores ? std::max<int64_t>(1, 16 / width) : 1;
  const int64_t begin = inside ? std::clamp<int64_t>(-first, 0, count) : count,
                end = inside ? std::clamp<int64_t>((size - first + piece - 1) / piece * piece, begin, count)
                             : count;
  const auto run = [&](int64_t from, int64_t to, bool there) {
    if (from == to) return;
    const auto bytes = static_cast<uint32_t>(to - from) * width;
    visit({shared, bytes, global + static_cast<uint64_t>((first + from) * width), there});
    shared += bytes;
  };
  run(0, begin, false);
  run(begin, end, true);
  run(end, count, false);
}

void each_box_run(const TileRequest& tile, const std::function<void(const TileRun&)>& visit) {
  const TileMap& map = *tile.map;
  const size_t axes = map.sizes.size();
  std::array<uint32_t, 5> at{};
  uint32_t shared = 0;
  for (;;) {
    bool inside = true;
    uint64_t global = tile.base;
    for (size_t i = 1; i < axes; ++i) {
      const int64_t where = int64_t{tile.coordinates[i]} + int64_t{at[i]} * map.steps[i];
      inside &= where >= 0 && where < static_cast<int64_t>(map.sizes[i]);
      global += static_cast<uint64_t>(where) * map.strides[i - 1];
    }
    visit_row(tile, tile.coordinates[0], extent(map, 0), inside, global, shared, visit);
    shared += pitch_of(map);
    size_t axis = 1;
    while (axis < axes && ++at[axis] == extent(map, axis)) at[axis++] = 0;
    if (axis >= axes) return;
  }
}

/// Pixels one after the other within the box between the corners, images after images; of each its channels.
void each_pixel_run(const TileRequest& tile, const std::function<void(const TileRun&)>& visit) {
  const TileMap& map = *tile.map;
  const size_t axes = map.sizes.size(), last = axes - 1;
  std::array<int64_t, 5> at{};
  for (size_t i = 0; i < axes; ++i) at[i] = tile.coordinates[i];
  uint32_t shared = 0;
  for (uint32_t pixel = 0; pixel < map.pixels; ++pixel) {
    bool inside = at[last] >= 0 && at[last] < static_cast<int64_t>(map.sizes[last]);
    uint64_t global = tile.base + static_cast<uint64_t>(at[last]) * map.strides[last - 1];
    for (size_t i = 1; i < last; ++i) {
      const int64_t where = at[i] + tile.offsets[i - 1];
      inside &= where >= 0 && where < static_cast<int64_t>(map.sizes[i]);
      global += static_cast<uint64_t>(where) * map.strides[i - 1];
    }
    visit_row(tile, at[0], map.channels, inside, global, shared, visit);
    shared += pitch_of(map);
    size_t axis = 1;
    for (; axis < last; ++axis) {
      at[axis] += map.steps[axis];
      if (at[axis] < static_cast<int64_t>(map.sizes[axis]) + map.upper[axis - 1]) break;
      at[axis] = map.lower[axis - 1];
    }
    if (axis == last) at[last] += map.steps[last];
  }
}

}  // namespace

uint32_t width_of(TileMap::Element element) {
  static constexpr uint8_t widths[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return widths[static_cast<size_t>(element)];
}

const char* illegal_request(const TileRequest& tile) {
  const TileMap& map = *tile.map;
  if (static_cast<int64_t>(tile.coordinates[0]) * width_of(map.element) % 16 != 0)
    return "the tile begins at an element of the innermost axis that is no multiple of 16 bytes";
  const auto negative = [](int32_t x) { return x < 0; };
  if (tile.stores && (std::any_of(tile.coordinates.begin(), tile.coordinates.end(), negative) ||
                      std::any_of(map.lower.begin(), map.lower.end(), negative)))
    return "a tile that is stored begins in front of the tensor";
  for (size_t i = 0; i < map.lower.size(); ++i)
    if (tile.coordinates[i + 1] < map.lower[i] ||
        tile.coordinates[i + 1] >= static_cast<int64_t>(map.sizes[i + 1]) + map.upper[i])
      return "the first pixel is not between the corners of im2col";
  return nullptr;
}

uint64_t bytes_of_tile(const TileMap& map) {
  uint64_t bytes = width_of(map.element);
  if (map.is_im2col()) return bytes * map.channels * map.pixels;
  for (size_t i = 0; i < map.box.size(); ++i) bytes *= extent(map, i);
  return bytes;
}

uint64_t reach_of_tile(const TileMap& map) {
  uint64_t rows = map.is_im2col() ? map.pixels : 1;
  for (size_t i = 1; i < map.box.size(); ++i) rows *= extent(map, i);
  return rows * pitch_of(map);
}

void each_run(const TileRequest& tile, const std::function<void(const TileRun&)>& visit) {
  if (tile.map->is_im2col())
    each_pixel_run(tile, visit);
  else
    each_box_run(tile, visit);
}

uint64_t swizzled(TileMap::Swizzle swizzle, uint64_t address) {
  // Pieces of 16 bytes among 2, 4 or 8, by the number of the 128 bytes that they are in.
  const uint64_t pieces = (uint64_t{1} << static_cast<int>(swizzle)) - 1;
  return address ^ (address >> 7 & pieces) << 4;
}

}  // namespace assay::vm
