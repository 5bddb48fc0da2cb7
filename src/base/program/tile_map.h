// What a tensor map says (CUtensorMap of the CUDA driver API): how cp.async.bulk.tensor finds tiles of a
// tensor in global memory. Described rather than held as its 128 bytes, which hold the address too: on a GPU
// its driver writes them, on the machine tile_map_bytes.h.
#pragma once
#include <cstdint>
#include <vector>

#include "src/base/fields/fields.h"

namespace assay {

/// The arguments of cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col but the address; axes innermost first,
/// one to five. Enumerators have the driver's numbers (CUDA Driver API, "Tensor Map Object Managment").
struct TileMap {
  static constexpr uint32_t bytes = 128, alignment = 64;

  enum class Element : uint8_t { u8, u16, u32, i32, u64, i64, f16, f32, f64, bf16, f32_ftz, tf32, tf32_ftz };
  enum class Interleave : uint8_t { none, of_16_bytes, of_32_bytes };
  enum class Swizzle : uint8_t { none, of_32_bytes, of_64_bytes, of_128_bytes };
  enum class Promotion : uint8_t { none, to_64_bytes, to_128_bytes, to_256_bytes };
  enum class Outside : uint8_t { zeros, nans };

  Element element = Element::u8;
  std::vector<uint64_t> sizes;    ///< elements
  std::vector<uint64_t> strides;  ///< bytes, of all axes but the innermost
  std::vector<uint32_t> box;      ///< elements of a tile; empty: of im2col
  std::vector<uint32_t> steps;    ///< of elements, 1: each
  Interleave interleave = Interleave::none;
  Swizzle swizzle = Swizzle::none;
  Promotion promotion = Promotion::none;  ///< of accesses to the L2 cache: changes no value
  Outside outside = Outside::zeros;       ///< what a tile holds of what lies outside the tensor

  // Of im2col (cuTensorMapEncodeIm2col): of all axes but the innermost and the outermost.
  std::vector<int32_t> lower, upper;  ///< corners of the box of pixels, from the tensor's corners
  uint32_t channels = 0, pixels = 0;  ///< loaded together

  bool is_im2col() const { return box.empty(); }
  bool operator==(const TileMap&) const = default;
};
template <typename Io>
void fields(Io& io, TileMap& x) {
  ASSAY_FIELD(element);
  ASSAY_FIELD(sizes);
  ASSAY_FIELD(strides);
  ASSAY_FIELD(box);
  ASSAY_FIELD(steps);
  ASSAY_FIELD(interleave);
  ASSAY_FIELD(swizzle);
  ASSAY_FIELD(promotion);
  ASSAY_FIELD(outside);
  ASSAY_FIELD(lower);
  ASSAY_FIELD(upper);
  ASSAY_FIELD(channels);
  ASSAY_FIELD(pixels);
}

}  // namespace assay
