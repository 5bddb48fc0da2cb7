// Tensor maps over a small buffer, drawn, with the tile that is asked for.
#pragma once
#include <cstdint>
#include <random>
#include <vector>

#include "src/base/program/tile_map.h"

namespace assay::hopper {

struct DrawnTile {
  TileMap map;
  uint32_t offset = 0;  ///< of the tensor's first byte in its buffer
  std::vector<int32_t> coordinates;
  std::vector<uint16_t> offsets;  ///< of im2col
};

inline constexpr uint32_t kBufferBytes = 1 << 17, kFirstByte = 4096;
inline constexpr uint32_t kLargestTile = 24576;

enum class Tiles : uint8_t { boxes, im2col };

/// One that the driver takes, whose tile has at most kLargestTile bytes and whose tensor lies in the buffer.
DrawnTile draw_tile(std::mt19937_64&, Tiles);
/// Of interleaved channels, whose axis 0 counts units of 16 or 32 bytes.
DrawnTile draw_interleaved_tile(std::mt19937_64&);

}  // namespace assay::hopper
