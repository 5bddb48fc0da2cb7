// Tensor maps against what the encoders of an H200's driver made of them, and what they refused.
#include "src/base/program/tile_map_bytes.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <random>
#include <sstream>

namespace assay {
namespace {

struct Recorded {
  bool taken = false;
  PlacedTileMap placed;
  std::string hex;  ///< "-" where refused
};

template <class T>
std::vector<T> list_of(const std::string& text) {
  std::vector<T> values;
  std::istringstream parts(text);
  for (std::string part; text != "-" && std::getline(parts, part, ',');)
    values.push_back(
        static_cast<T>(part[0] == '-' ? static_cast<uint64_t>(std::stoll(part)) : std::stoull(part)));
  return values;
}

Recorded recorded_of(const std::string& line) {
  std::istringstream in(line);
  Recorded made;
  TileMap& map = made.placed.map;
  std::string kind, sizes, strides, first, second, steps;
  int refused, element, rank, interleave, swizzle, promotion, outside;
  in >> kind >> refused >> element >> rank >> std::hex >> made.placed.address >> std::dec >> sizes >>
      strides >> first;
  if (kind == "I") in >> second >> map.channels >> map.pixels;
  in >> steps >> interleave >> swizzle >> promotion >> outside >> made.hex;
  EXPECT_TRUE(in) << line;
  made.taken = refused == 0;
  map.element = static_cast<TileMap::Element>(element);
  map.sizes = list_of<uint64_t>(sizes), map.strides = list_of<uint64_t>(strides);
  if (kind == "I")
    map.lower = list_of<int32_t>(first), map.upper = list_of<int32_t>(second);
  else
    map.box = list_of<uint32_t>(first);
  map.steps = list_of<uint32_t>(steps);
  map.interleave = static_cast<TileMap::Interleave>(interleave);
  map.swizzle = static_cast<TileMap::Swizzle>(swizzle);
  map.promotion = static_cast<TileMap::Promotion>(promotion);
  map.outside = static_cast<TileMap::Outside>(outside);
  return made;
}

std::vector<Recorded> recorded() {
  const std::string path = std::string(ASSAY_SOURCE_DIR) + "/tests/data/tile_maps_h200.txt.gz";
  std::vector<Recorded> all;
  gzFile file = gzopen(path.c_str(), "rb");
  EXPECT_NE(file, nullptr) << path;
  if (!file) return all;
  for (char line[1024]; gzgets(file, line, sizeof line);)
    if (line[0] != '#') all.push_back(recorded_of(line));
  gzclose(file);
  return all;
}

std::string hex_of(const std::byte* bytes) {
  std::string text;
  for (size_t i = 0; i < TileMap::bytes; ++i) {
    constexpr const char* digits = "0123456789abcdef";
    text += digits[std::to_integer<int>(bytes[i]) >> 4];
    text += digits[std::to_integer<int>(bytes[i]) & 15];
  }
  return text;
}

TEST(TileMapBytes, AreThoseOfTheDriverAndSayWhatTheyWereMadeOf) {
  size_t taken = 0;
  for (const Recorded& r : recorded()) {
    if (!r.taken) continue;
    ++taken;
    std::byte bytes[TileMap::bytes];
    encode_tile_map(r.placed.map, r.placed.address, bytes);
    ASSERT_EQ(hex_of(bytes), r.hex) << taken;
    const std::optional<PlacedTileMap> again = decode_tile_map(bytes);
    ASSERT_TRUE(again) << r.hex;
    EXPECT_EQ(again->map, r.placed.map) << r.hex;
    EXPECT_EQ(again->address, r.placed.address);
  }
  EXPECT_GT(taken, 1400u);
}

TEST(TileMapBytes, WhatTheDriverRefusesIsAFaultAndNothingElse) {
  size_t refused = 0;
  for (const Recorded& r : recorded()) {
    refused += !r.taken;
    EXPECT_EQ(fault_of(r.placed.map, r.placed.address).empty(), r.taken)
        << r.hex << ' ' << fault_of(r.placed.map, r.placed.address) << ' ' << r.placed.address << ' '
        << r.placed.map.sizes[0] << ' ' << r.placed.map.sizes.size();
  }
  EXPECT_GT(refused, 400u);
}

TEST(TileMapBytes, OtherBytesAreNoMap) {
  std::mt19937_64 draw(7);
  std::byte bytes[TileMap::bytes] = {};
  EXPECT_FALSE(decode_tile_map(bytes));
  for (int i = 0; i < 1000; ++i) {
    for (size_t at = 0; at < sizeof bytes; at += 8) {
      const uint64_t word = draw();
      std::memcpy(bytes + at, &word, 8);
    }
    EXPECT_FALSE(decode_tile_map(bytes)) << i;
  }
}

}  // namespace
}  // namespace assay
