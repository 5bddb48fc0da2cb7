#include "src/base/backend/tile_map_encoding.h"

#include <cstring>

#include "src/base/numerics/bad_input.h"

namespace assay {

void encode_tile_map(const Driver& driver, const std::string& function, const TileMap& map, uint64_t address,
                     std::byte* to) {
  if (!driver.cuTensorMapEncodeTiled)
    throw BadInput(function +
                   ": the NVIDIA driver encodes no tensor maps; one for CUDA 12 or newer is needed");
  alignas(TileMap::alignment) std::byte encoded[TileMap::bytes];
  const CUresult result = driver.cuTensorMapEncodeTiled(
      encoded, static_cast<int>(map.element), static_cast<unsigned>(map.sizes.size()),
      reinterpret_cast<void*>(address), map.sizes.data(), map.strides.data(), map.box.data(),
      map.steps.data(), static_cast<int>(map.interleave), static_cast<int>(map.swizzle),
      static_cast<int>(map.promotion), static_cast<int>(map.outside));
  driver.check(result, function + ": the driver refuses a tensor map");
  std::memcpy(to, encoded, sizeof encoded);
}

}  // namespace assay
