// Which bytes a copy of a tile moves (CUDA Driver API, "Tensor Map Object Management"; PTX ISA 5.5,
// "Tensors"):
// boxes with steps, tiles of im2col, swizzles, and what lies outside the tensor.
#pragma once
#include <array>
#include <cstdint>
#include <functional>

#include "src/base/program/tile_map.h"

namespace assay::vm {

/// A tile, as an instruction names it.
struct TileRequest {
  const TileMap* map = nullptr;
  uint64_t base = 0;                     ///< of the tensor
  std::array<int32_t, 5> coordinates{};  ///< of its first element, innermost first
  std::array<uint16_t, 3> offsets{};     ///< of im2col
  bool stores = false;                   ///< then 16 bytes with any element inside are inside (measured)
};

/// Bytes that lie together in global memory; in shared memory before swizzling.
struct TileRun {
  uint32_t shared = 0;  ///< from the tile's first byte
  uint32_t bytes = 0;
  uint64_t global = 0;
  bool inside = true;  ///< of the tensor
};

/// Why an H200 would find the request an illegal instruction (measured); null: it would not.
const char* illegal_request(const TileRequest&);
/// Bytes that a whole tile has, what lies outside the tensor included.
uint64_t bytes_of_tile(const TileMap&);
/// Bytes of shared memory from its first to its last. Rows of a swizzled tile begin at multiples of the
/// swizzle's span (measured on an H200).
uint64_t reach_of_tile(const TileMap&);
/// In the order of their places in shared memory.
void each_run(const TileRequest&, const std::function<void(const TileRun&)>& visit);
/// Where the byte that the tile has at `address` of a block's shared memory lies.
uint64_t swizzled(TileMap::Swizzle, uint64_t address);
uint32_t width_of(TileMap::Element);

}  // namespace assay::vm
