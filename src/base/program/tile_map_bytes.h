// Tensor maps as the 128 bytes that a kernel is given.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "src/base/program/tile_map.h"

namespace assay {

/// What is wrong with a map at an address, as the driver would refuse it; empty: nothing.
std::string fault_of(const TileMap&, uint64_t address);
/// Writes TileMap::bytes bytes. The map has no fault.
void encode_tile_map(const TileMap&, uint64_t address, std::byte* to);

struct PlacedTileMap {
  TileMap map;
  uint64_t address = 0;
};
/// Nothing where the bytes are no tensor map.
std::optional<PlacedTileMap> decode_tile_map(const std::byte* from);

}  // namespace assay
