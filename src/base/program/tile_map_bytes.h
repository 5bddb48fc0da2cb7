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
/// Nothing where the bytes are no tensor map that an encoder makes.
std::optional<PlacedTileMap> decode_tile_map(const std::byte* from);

/// The numbers of a map that a kernel can change (PTX ISA, "tensormap.replace").
enum class MapNumber : uint8_t {
  global_address,
  global_dim,
  global_stride,
  box_dim,
  element_stride,
  rank,
  elemtype,
  interleave_layout,
  swizzle_mode,
  fill_mode
};
/// Changes this number alone, as an H100 does (tests/data/hopper_h200.txt): the bytes of a tile, and after
/// how many bytes its swizzle repeats, stay what the encoder made them, and axes that a smaller rank leaves
/// out keep their numbers. False, and nothing is changed, where there is no such number or no place for the
/// value.
bool change_tile_map(std::byte* map, MapNumber, size_t axis, uint64_t value);

}  // namespace assay
