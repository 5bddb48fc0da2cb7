#include "src/base/program/argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace assay {

bool Relocation::operator==(const Relocation& other) const {
  return at == other.at && to.buffer == other.to.buffer && to.offset == other.to.offset &&
         tile_map == other.tile_map;
}

Argument::Argument(const PointerArgument& to) {
  *this = of_bytes(sizeof(uint64_t));
  put(0, to);
  content = Content::address;
}

Argument Argument::of_bytes(size_t size) {
  Argument made;
  made.bytes.resize(size);
  return made;
}

Argument Argument::of(const PointerArgument& to, const TileMap& map) {
  return of_bytes(TileMap::bytes).put(0, to, map);
}

Argument& Argument::put_bytes(size_t at, const void* from, size_t size) {
  if (at + size > bytes.size())
    throw std::out_of_range(fmt::format("bytes {} to {} of an argument of {}", at, at + size, bytes.size()));
  std::memcpy(bytes.data() + at, from, size);
  return *this;
}

Argument& Argument::put(size_t at, const PointerArgument& to) {
  const uint64_t null = 0;
  put_bytes(at, &null, sizeof null);
  if (!to.buffer.empty()) relocations.push_back({static_cast<uint32_t>(at), to, {}});
  return *this;
}

Argument& Argument::put(size_t at, const PointerArgument& to, const TileMap& map) {
  const std::byte none[TileMap::bytes] = {};
  put_bytes(at, none, sizeof none);
  relocations.push_back({static_cast<uint32_t>(at), to, map});
  return *this;
}

bool Argument::refers_to(const std::string& buffer) const {
  return std::any_of(relocations.begin(), relocations.end(),
                     [&](const Relocation& relocation) { return relocation.to.buffer == buffer; });
}

std::vector<Argument> joined(std::initializer_list<std::vector<Argument>> lists) {
  std::vector<Argument> all;
  for (const std::vector<Argument>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::optional<int64_t> integer_of(const Argument& argument) {
  const auto as = [&]<class T>(T value) -> int64_t {
    std::memcpy(&value, argument.bytes.data(), sizeof value);
    return value;
  };
  if (argument.content != Argument::Content::integer) return std::nullopt;
  switch (argument.bytes.size()) {
    case 1:
      return as(int8_t{});
    case 2:
      return as(int16_t{});
    case 4:
      return as(int32_t{});
    default:
      return as(int64_t{});
  }
}

std::optional<double> real_of(const Argument& argument) {
  if (argument.content != Argument::Content::real) return std::nullopt;
  const auto as = [&]<class T>(T value) -> double {
    std::memcpy(&value, argument.bytes.data(), sizeof value);
    return value;
  };
  return argument.bytes.size() == sizeof(float) ? as(float{}) : as(double{});
}

std::optional<PointerArgument> pointer_of(const Argument& argument) {
  if (argument.content != Argument::Content::address) return std::nullopt;
  return argument.relocations.empty() ? PointerArgument{} : argument.relocations.front().to;
}

void redirect(Argument& argument, const std::map<std::string, std::string>& names) {
  for (Relocation& relocation : argument.relocations)
    if (const auto known = names.find(relocation.to.buffer); known != names.end())
      relocation.to.buffer = known->second;
  std::erase_if(argument.relocations,
                [](const Relocation& relocation) { return relocation.to.buffer.empty(); });
}

std::vector<std::byte> filled(const Argument& argument,
                              const std::function<uint64_t(const PointerArgument&)>& address,
                              const std::function<void(const TileMap&, uint64_t, std::byte*)>& encode) {
  std::vector<std::byte> bytes = argument.bytes;
  for (const Relocation& relocation : argument.relocations) {
    const uint64_t at = address(relocation.to);
    if (relocation.tile_map)
      encode(*relocation.tile_map, at, bytes.data() + relocation.at);
    else
      std::memcpy(bytes.data() + relocation.at, &at, sizeof at);
  }
  return bytes;
}

}  // namespace assay
