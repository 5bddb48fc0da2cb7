#include "src/base/backend/tile_map_encoding.h"

#include <cstring>

#include "src/base/numerics/bad_input.h"

namespace assay {

void encode_tile_map(const Driver& driver, const std::string& function, const TileMap& map, uint64_t address,
                     std::byte* to) {
  if (!(map.is_im2col() ? driver.cuTensorMapEncodeIm2col != nullptr
                        : driver.cuTensorMapEncodeTiled != nullptr))
    throw BadInput(function +
                   ": the NVIDIA driver encodes no tensor maps; one for CUDA 12 or newer is needed");
  alignas(TileMap::alignment) std::byte encoded[TileMap::bytes];
  const auto element = static_cast<int>(map.element), interleave = static_cast<int>(map.interleave),
             swizzle = static_cast<int>(map.swizzle), promotion = static_cast<int>(map.promotion),
             outside = static_cast<int>(map.outside);
  const auto rank = static_cast<unsigned>(map.sizes.size());
  void* const base = reinterpret_cast<void*>(address);
  // A null pointer is refused, also where there is no stride.
  constexpr uint64_t none = 0;
  const uint64_t* const strides = map.strides.empty() ? &none : map.strides.data();
  const CUresult result =
      map.is_im2col()
          ? driver.cuTensorMapEncodeIm2col(encoded, element, rank, base, map.sizes.data(), strides,
                                           map.lower.data(), map.upper.data(), map.channels, map.pixels,
                                           map.steps.data(), interleave, swizzle, promotion, outside)
          : driver.cuTensorMapEncodeTiled(encoded, element, rank, base, map.sizes.data(), strides,
                                          map.box.data(), map.steps.data(), interleave, swizzle, promotion,
                                          outside);
  driver.check(result, function + ": the driver refuses a tensor map");
  std::memcpy(to, encoded, sizeof encoded);
}

}  // namespace assay
