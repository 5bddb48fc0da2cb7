// A kernel parameter of a launch: its bytes, and where addresses go into them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/program/tile_map.h"

namespace assay {

/// A byte of a buffer by the buffer's name; of an input that is a view, counted from its first element. No
/// name: the null pointer.
struct PointerArgument {
  std::string buffer;
  int64_t offset = 0;  ///< bytes
};
template <typename Io>
void fields(Io& io, PointerArgument& x) {
  ASSAY_FIELD(buffer);
  ASSAY_FIELD(offset);
}

/// What is filled in before a launch, from byte `at` of an argument on: the eight bytes of an address, or the
/// 128 of a tensor map over the memory there.
struct Relocation {
  uint32_t at = 0;
  PointerArgument to;  ///< never null
  std::optional<TileMap> tile_map;

  uint32_t bytes() const { return tile_map ? TileMap::bytes : sizeof(uint64_t); }
  bool operator==(const Relocation& other) const;
};
template <typename Io>
void fields(Io& io, Relocation& x) {
  ASSAY_FIELD(at);
  ASSAY_FIELD(to);
  ASSAY_FIELD(tile_map);
}

/// Bytes [from, to) of an argument.
struct ByteRange {
  uint32_t from = 0, to = 0;
  bool operator==(const ByteRange&) const = default;
};
template <typename Io>
void fields(Io& io, ByteRange& x) {
  ASSAY_FIELD(from);
  ASSAY_FIELD(to);
}

template <class T>
concept Scalar = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

/// A parameter's bytes, as many as the entry declares for it. Makers: a scalar or a PointerArgument as they
/// stand, Argument::of(value) for a struct without addresses, Argument::of_bytes(24).put(0,
/// PointerArgument{"x"}).put(16, n) for one with them.
struct Argument {
  /// What the maker said: an entry that takes a float is not given an integer. `bytes`: nothing is known.
  enum class Content : uint8_t { bytes, integer, real, address };

  Content content = Content::bytes;
  std::vector<std::byte> bytes;
  std::vector<Relocation> relocations;  ///< their bytes are zero in `bytes`
  std::optional<double> rounded_from;   ///< of a float: the number that it stands for, where that is known
  /// Of a struct written member by member: what no member holds, zero in `bytes`. A GPU gets there whatever
  /// the host's stack held.
  std::vector<ByteRange> uncovered;

  Argument() = default;
  Argument(const PointerArgument&);
  template <Scalar T>
  Argument(T value)
      : content(std::is_floating_point_v<T> ? Content::real : Content::integer), bytes(sizeof value) {
    std::memcpy(bytes.data(), &value, sizeof value);
  }

  /// The float next to a number that a program means: 1 / sqrt(K).
  static Argument rounded(double number) {
    Argument argument(static_cast<float>(number));
    argument.rounded_from = number;
    return argument;
  }
  /// `size` zero bytes.
  static Argument of_bytes(size_t size);
  template <class T>
  requires std::is_trivially_copyable_v<T>
  static Argument of(const T& value) { return of_bytes(sizeof value).put_bytes(0, &value, sizeof value); }
  /// A tensor map over the memory from there on; CUtensorMap by value, or a member of a struct by put().
  static Argument of(const PointerArgument&, const TileMap&);

  /// Members at their offsets. Throws std::out_of_range past the end.
  template <Scalar T>
  Argument& put(size_t at, T value) {
    return put_bytes(at, &value, sizeof value);
  }
  Argument& put(size_t at, const PointerArgument&);
  Argument& put(size_t at, const PointerArgument&, const TileMap&);
  Argument& put_bytes(size_t at, const void* from, size_t size);

  bool is_null_pointer() const { return content == Content::address && relocations.empty(); }
  bool refers_to(const std::string& buffer) const;
  bool operator==(const Argument&) const = default;
};
template <typename Io>
void fields(Io& io, Argument& x) {
  ASSAY_FIELD(content);
  ASSAY_FIELD(bytes);
  ASSAY_FIELD(relocations);
  ASSAY_FIELD(rounded_from);
  ASSAY_LATER(uncovered);
}

/// Lists of arguments one after the other: those that every launch has, and those that some have between
/// them.
std::vector<Argument> joined(std::initializer_list<std::vector<Argument>> lists);

/// The number that a scalar holds; nothing where the argument was made otherwise.
std::optional<int64_t> integer_of(const Argument&);
std::optional<double> real_of(const Argument&);
/// What a pointer points to, null pointers included; nothing where the argument was made otherwise.
std::optional<PointerArgument> pointer_of(const Argument&);

/// Relocations to a buffer that is a key of `names` become ones to its value, at the same offset; where that
/// is empty, null pointers.
void redirect(Argument&, const std::map<std::string, std::string>& names);

/// The bytes that an entry gets: `address` tells where a byte of a buffer is, `encode` fills the 128 bytes of
/// a tensor map over the memory from an address on.
std::vector<std::byte> filled(
    const Argument&, const std::function<uint64_t(const PointerArgument&)>& address,
    const std::function<void(const TileMap&, uint64_t address, std::byte* to)>& encode);

}  // namespace assay
