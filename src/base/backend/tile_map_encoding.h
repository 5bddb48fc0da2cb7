// A tensor map as the driver writes it for its GPU.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "src/base/backend/driver.h"
#include "src/base/program/tile_map.h"

namespace assay {

/// The 128 bytes of a map over the memory at `address`. Throws BadInput naming the function where the driver
/// has no tensor maps (before CUDA 12) or refuses this one.
void encode_tile_map(const Driver&, const std::string& function, const TileMap&, uint64_t address,
                     std::byte* to);

}  // namespace assay
