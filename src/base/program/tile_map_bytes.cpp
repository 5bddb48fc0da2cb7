// The layout was measured: what cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col of an H200's driver made
// of maps that differ in one number each, and of random ones (tests/data/tile_maps_h200.txt.gz).
#include "src/base/program/tile_map_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace assay {
namespace {

/// A number among the 1024 bits, its lowest bit first.
struct Field {
  uint16_t bit, bits;
};
constexpr Field kAddress{0, 57}, kIm2col{64, 1}, kRank{68, 3}, kElement{71, 4}, kInterleave{75, 2},
    kSwizzle{77, 2}, kOutside{79, 1}, kTf32{80, 1}, kPromotion{81, 2}, kChannels{440, 8}, kPixels{480, 10},
    kTileBytes{512, 32}, kAtom{576, 11};
Field stride_low(size_t axis) {
  return {static_cast<uint16_t>(96 + 32 * axis), 32};
}
Field stride_high(size_t axis) {
  return {static_cast<uint16_t>(224 + 4 * axis), 4};
}
Field size_of(size_t axis) {
  return {static_cast<uint16_t>(256 + 32 * axis), 32};
}
Field step_of(size_t axis) {
  return {static_cast<uint16_t>(416 + 3 * axis), 3};
}
Field box_of(size_t axis) {
  return {static_cast<uint16_t>(440 + 8 * axis), 8};
}
/// The corners of im2col share 16 bits.
Field corner(bool upper, size_t axis, size_t rank) {
  const size_t bits = 16 / (rank - 2);
  return {static_cast<uint16_t>((upper ? 464 : 448) + bits * axis), static_cast<uint16_t>(bits)};
}

/// By TileMap::Element; those from tf32 on have kTf32 too.
constexpr uint8_t kElementCodes[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 7, 8};
constexpr uint8_t kElementBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
constexpr size_t kFirstTf32 = 11;
/// Bytes after which a swizzle repeats.
constexpr uint16_t kAtoms[] = {16, 256, 512, 1024};

void put(std::byte* bytes, Field field, uint64_t value) {
  for (uint16_t i = 0; i < field.bits; ++i) {
    const auto at = static_cast<uint16_t>(field.bit + i);
    if (value >> i & 1) bytes[at / 8] |= static_cast<std::byte>(1u << (at % 8));
  }
}
uint64_t get(const std::byte* bytes, Field field) {
  uint64_t value = 0;
  for (uint16_t i = 0; i < field.bits; ++i) {
    const auto at = static_cast<uint16_t>(field.bit + i);
    value |= uint64_t{std::to_integer<unsigned>(bytes[at / 8]) >> (at % 8) & 1} << i;
  }
  return value;
}
int32_t get_signed(const std::byte* bytes, Field field) {
  const auto value = static_cast<int32_t>(get(bytes, field));
  return value >> (field.bits - 1) ? value - (1 << field.bits) : value;
}

uint64_t element_bytes(const TileMap& map) {
  return kElementBytes[static_cast<size_t>(map.element)];
}

/// As the driver counts it: steps round down.
uint64_t counted_bytes(const TileMap& map) {
  uint64_t bytes = element_bytes(map);
  if (map.is_im2col()) return bytes * map.channels * map.pixels;
  for (size_t i = 0; i < map.box.size(); ++i) bytes *= map.box[i] / map.steps[i];
  return bytes;
}

template <class T, class Good>
bool all(const std::vector<T>& values, const Good& good) {
  return std::all_of(values.begin(), values.end(), good);
}

/// Of im2col: the box of pixels between the corners has some. The driver reckons with 32 bits and a sign.
bool has_pixels(const TileMap& map) {
  const size_t first = map.interleave == TileMap::Interleave::none ? 1 : 0;
  for (size_t i = 0; i < map.lower.size(); ++i)
    if (int64_t{static_cast<int32_t>(static_cast<uint32_t>(map.sizes[first + i]))} + map.upper[i] -
            map.lower[i] <
        1)
      return false;
  return true;
}

std::string fault_of_tile(const TileMap& map) {
  const uint64_t inner = element_bytes(map) * (map.is_im2col() ? map.channels : map.box[0]);
  const auto span = uint64_t{16} << static_cast<int>(map.swizzle);
  if (map.interleave == TileMap::Interleave::none) {
    if (inner % 16 != 0)
      return fmt::format("tiles of {} bytes along the innermost axis, no multiple of 16", inner);
    if (map.swizzle != TileMap::Swizzle::none && inner > span)
      return fmt::format("tiles of {} bytes along the innermost axis, more than the swizzle's {}", inner,
                         span);
  }
  if (counted_bytes(map) >= uint64_t{1} << 18) return fmt::format("tiles of {} bytes", counted_bytes(map));
  if (!map.is_im2col()) return "";
  const int32_t limit = 1 << (16 / (map.sizes.size() - 2) - 1);
  const auto reaches = [limit](int32_t x) { return x >= -limit && x < limit; };
  if (!all(map.lower, reaches) || !all(map.upper, reaches))
    return fmt::format("a corner beyond {} pixels", limit);
  return has_pixels(map) ? "" : "corners with no pixel between them";
}

}  // namespace

std::string fault_of(const TileMap& map, uint64_t address) {
  const uint64_t grain = map.interleave == TileMap::Interleave::of_32_bytes ? 32 : 16;
  if (address % grain != 0 || address >> kAddress.bits)
    return fmt::format("the address {:#x}, no multiple of {} below 2^57", address, grain);
  if (!all(map.sizes, [](uint64_t x) { return x >= 1 && x <= uint64_t{1} << 32; }))
    return "an axis of no element or of more than 2^32";
  if (!all(map.strides, [grain](uint64_t x) { return x % grain == 0 && x < uint64_t{1} << 40; }))
    return fmt::format("a stride that is no multiple of {} bytes below 2^40", grain);
  if (!all(map.steps, [](uint32_t x) { return x >= 1 && x <= 8; })) return "a step that is not 1 to 8";
  if (!all(map.box, [](uint32_t x) { return x >= 1 && x <= 256; })) return "a box that is not 1 to 256 long";
  if (map.is_im2col() && (map.channels < 1 || map.channels > 256 || map.pixels < 1 || map.pixels > 1024))
    return "tiles that are not of 1 to 256 channels of 1 to 1024 pixels";
  if (map.outside == TileMap::Outside::nans && map.element < TileMap::Element::f16)
    return "NaN for what lies outside of integers";
  if (map.interleave != TileMap::Interleave::none && map.sizes.size() < 3)
    return "interleaved channels of fewer than 3 axes";
  return fault_of_tile(map);
}

void encode_tile_map(const TileMap& map, uint64_t address, std::byte* to) {
  std::memset(to, 0, TileMap::bytes);
  const auto element = static_cast<size_t>(map.element);
  const size_t rank = map.sizes.size();
  put(to, kAddress, address);
  put(to, kIm2col, map.is_im2col());
  put(to, kRank, rank - 1);
  put(to, kElement, kElementCodes[element]);
  put(to, kTf32, element >= kFirstTf32);
  put(to, kInterleave, static_cast<uint64_t>(map.interleave));
  put(to, kSwizzle, static_cast<uint64_t>(map.swizzle));
  put(to, kOutside, static_cast<uint64_t>(map.outside));
  put(to, kPromotion, static_cast<uint64_t>(map.promotion));
  for (size_t i = 0; i < rank; ++i)
    put(to, size_of(i), map.sizes[i] - 1), put(to, step_of(i), map.steps[i] - 1);
  for (size_t i = 0; i + 1 < rank; ++i)
    put(to, stride_low(i), map.strides[i] >> 4), put(to, stride_high(i), map.strides[i] >> 36);
  for (size_t i = 0; i < map.box.size(); ++i) put(to, box_of(i), map.box[i] - 1);
  put(to, kTileBytes, counted_bytes(map));
  put(to, kAtom, kAtoms[static_cast<size_t>(map.swizzle)]);
  if (!map.is_im2col()) return;
  for (size_t i = 0; i + 2 < rank; ++i) {
    put(to, corner(false, i, rank), static_cast<uint32_t>(map.lower[i]));
    put(to, corner(true, i, rank), static_cast<uint32_t>(map.upper[i]));
  }
  put(to, kChannels, map.channels - 1);
  put(to, kPixels, map.pixels - 1);
}

std::optional<PlacedTileMap> decode_tile_map(const std::byte* from) {
  PlacedTileMap made;
  TileMap& map = made.map;
  const size_t rank = get(from, kRank) + 1;
  const bool tf32 = get(from, kTf32) != 0, im2col = get(from, kIm2col) != 0;
  const auto codes = std::begin(kElementCodes), last = std::end(kElementCodes), split = codes + kFirstTf32,
             code = tf32 ? std::find(split, last, get(from, kElement))
                         : std::find(codes, split, get(from, kElement));
  if (rank > 5 || (im2col && rank < 3) || code == (tf32 ? last : split) || get(from, kInterleave) > 2)
    return std::nullopt;
  made.address = get(from, kAddress);
  map.element = static_cast<TileMap::Element>(code - codes);
  map.interleave = static_cast<TileMap::Interleave>(get(from, kInterleave));
  map.swizzle = static_cast<TileMap::Swizzle>(get(from, kSwizzle));
  map.outside = static_cast<TileMap::Outside>(get(from, kOutside));
  map.promotion = static_cast<TileMap::Promotion>(get(from, kPromotion));
  for (size_t i = 0; i < rank; ++i) {
    map.sizes.push_back(get(from, size_of(i)) + 1);
    map.steps.push_back(static_cast<uint32_t>(get(from, step_of(i)) + 1));
    if (i + 1 < rank) map.strides.push_back(get(from, stride_low(i)) << 4 | get(from, stride_high(i)) << 36);
    if (!im2col) map.box.push_back(static_cast<uint32_t>(get(from, box_of(i)) + 1));
  }
  if (im2col) {
    for (size_t i = 0; i + 2 < rank; ++i) {
      map.lower.push_back(get_signed(from, corner(false, i, rank)));
      map.upper.push_back(get_signed(from, corner(true, i, rank)));
    }
    map.channels = static_cast<uint32_t>(get(from, kChannels) + 1);
    map.pixels = static_cast<uint32_t>(get(from, kPixels) + 1);
  }
  // What is no such map differs in the rest.
  std::byte again[TileMap::bytes];
  encode_tile_map(map, made.address, again);
  if (std::memcmp(again, from, sizeof again) != 0) return std::nullopt;
  return made;
}

namespace {

void set(std::byte* bytes, Field field, uint64_t value) {
  for (uint16_t i = 0; i < field.bits; ++i) {
    const auto at = static_cast<uint16_t>(field.bit + i);
    bytes[at / 8] &= ~static_cast<std::byte>(1u << (at % 8));
  }
  put(bytes, field, value);
}

bool change_element(std::byte* map, uint64_t value) {
  // .elemtype counts as the bytes do, and not as the driver's enumerators: 8 is f32 flushed, 9 f64, 10 bf16.
  if (value > 12) return false;
  const bool tf32 = value > 10;
  set(map, kElement, tf32 ? value - 4 : value), set(map, kTf32, tf32);
  return true;
}

}  // namespace

bool change_tile_map(std::byte* map, MapNumber number, size_t axis, uint64_t value) {
  const size_t rank = get(map, kRank) + 1;
  const bool im2col = get(map, kIm2col) != 0;
  const auto least_one = [&](Field field, uint64_t most) {
    if (axis >= rank || value < 1 || value > most) return false;
    set(map, field, value - 1);
    return true;
  };
  const auto one_of = [&](Field field, uint64_t last) {
    if (value > last) return false;
    set(map, field, value);
    return true;
  };
  switch (number) {
    case MapNumber::global_address:
      return one_of(kAddress, (uint64_t{1} << kAddress.bits) - 1);
    case MapNumber::global_dim:
      return least_one(size_of(axis), uint64_t{1} << 32);
    case MapNumber::global_stride:
      if (axis + 1 >= rank || value >> 40) return false;
      set(map, stride_low(axis), value >> 4), set(map, stride_high(axis), value >> 36);
      return true;
    case MapNumber::box_dim:
      return !im2col && least_one(box_of(axis), 256);
    case MapNumber::element_stride:
      return least_one(step_of(axis), 8);
    case MapNumber::rank:
      return !im2col && one_of(kRank, rank - 1);
    case MapNumber::elemtype:
      return change_element(map, value);
    case MapNumber::interleave_layout:
      return one_of(kInterleave, 2);
    case MapNumber::swizzle_mode:
      return one_of(kSwizzle, 3);
    default:
      return one_of(kOutside, 1);
  }
}

}  // namespace assay
