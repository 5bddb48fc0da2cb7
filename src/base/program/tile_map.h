// What a tensor map says (CUtensorMap of the CUDA driver API): how cp.async.bulk.tensor finds tiles of a
// tensor in global memory. Described rather than held as its 128 bytes: their layout is the driver's secret
// and changes with the architecture, so that only a driver can write them, for its own GPU and the address
// that the tensor has there, and only a description can be followed, checked and printed elsewhere.
#pragma once
#include <cstdint>
#include <vector>

#include "src/base/fields/fields.h"

namespace assay {

/// The arguments of cuTensorMapEncodeTiled but the address; axes innermost first, one to five. Enumerators
/// have the driver's numbers (CUDA Driver API, "Tensor Map Object Managment").
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
  std::vector<uint32_t> box;      ///< elements of a tile
  std::vector<uint32_t> steps;    ///< of elements, 1: each
  Interleave interleave = Interleave::none;
  Swizzle swizzle = Swizzle::none;
  Promotion promotion = Promotion::none;  ///< of accesses to the L2 cache: changes no value
  Outside outside = Outside::zeros;       ///< what a tile holds of what lies outside the tensor

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
}

}  // namespace assay
