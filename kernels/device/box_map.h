// Tensor maps of tensors [token, H, channel] for the tiles of warpgroup.cuh.
#pragma once
#include <cstdint>

#include "src/base/program/tile_map.h"

namespace assay::device {

/// Boxes of 64 tokens of one head and `width` of its bf16 channels, 32 or 64: axes {channel, head, token},
/// rows swizzled as SwizzledTile<width> reads them. `channels` is a multiple of 8 and no size is 0.
inline TileMap box_map(int64_t channels, int64_t heads, int64_t tokens, int width) {
  const auto size = [](int64_t n) { return static_cast<uint64_t>(n); };
  TileMap map;
  map.element = TileMap::Element::bf16;
  map.sizes = {size(channels), size(heads), size(tokens)};
  map.strides = {size(2 * channels), size(2 * channels * heads)};
  map.box = {static_cast<uint32_t>(width), 1, 64};
  map.steps = {1, 1, 1};
  map.swizzle = width == 64 ? TileMap::Swizzle::of_128_bytes : TileMap::Swizzle::of_64_bytes;
  map.promotion = TileMap::Promotion::to_128_bytes;
  return map;
}

}  // namespace assay::device
