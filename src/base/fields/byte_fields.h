// Bytes both ways from the list of a type's fields (fields.h), between processes of the same binary: the form
// has no version and is not checked.
#pragma once
#include <cassert>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/fields/shapes.h"

namespace assay {

/// Values that are their own bytes: numbers and enumerations, and lists of them.
template <typename T>
concept OwnBytes = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// What a list of fields says to bytes alike in both directions: names and what is made from the others are
/// nothing to them.
template <typename Io>
struct ByteIo {
  void type(const char*, const char* = "") {}
  template <typename T>
  void operator()(const char*, T& field, const char* = "") {
    self().value(field);
  }
  void operator()(const char*, Bits bits, const char* = "") { self().value(bits.value); }
  template <typename T>
  void later(const char*, T& field, const char* = "") {
    self().value(field);
  }
  template <typename T>
  void or_null(const char*, T& field, const char* = "") {
    self().value(field);
  }
  template <typename Make>
  void made(const char*, const Make&, const char* = "") {}
  template <typename Make>
  void made_where(bool, const char*, const Make&, const char* = "") {}

 private:
  Io& self() { return static_cast<Io&>(*this); }
};

class ByteWriter : public ByteIo<ByteWriter> {
 public:
  std::vector<std::byte> bytes;

  template <typename T>
  void put(const T& field) {
    value(field);
  }

 private:
  friend ByteIo;

  void raw(const void* data, size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), from, from + size);
  }
  template <typename List>
  void items(const List& list) {
    if constexpr (requires {
                    requires OwnBytes<typename List::value_type>;
                    list.data();
                  })
      raw(list.data(), list.size() * sizeof(typename List::value_type));
    else
      for (const auto& item : list) value(item);
  }
  void value(const std::string& text) { value(text.size()), items(text); }
  template <typename T>
  void value(const std::shared_ptr<T>& shared) {
    value(*shared);
  }
  template <typename First, typename Second>
  void value(const std::pair<First, Second>& pair) {
    value(pair.first), value(pair.second);
  }
  template <typename T>
  void value(const T& field) {
    if constexpr (OwnBytes<T>) {
      raw(&field, sizeof field);
    } else if constexpr (kIsOptional<T>) {
      value(field.has_value());
      if (field) value(*field);
    } else if constexpr (kIsMap<T> || kIsList<T>) {
      value(field.size());
      items(field);
    } else {
      fields(*this,
             const_cast<T&>(field));  // a list of fields takes what it may change; this changes nothing
    }
  }
};

/// Reads back what ByteWriter put, in the same order.
class ByteReader : public ByteIo<ByteReader> {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  T get() {
    T field{};
    value(field);
    return field;
  }

 private:
  friend ByteIo;

  void raw(void* data, size_t size) {
    assert(size <= rest_.size());
    if (size > 0) std::memcpy(data, rest_.data(), size);
    rest_ = rest_.subspan(size);
  }
  template <typename List>
  void items(List& list) {
    if constexpr (requires {
                    requires OwnBytes<typename List::value_type>;
                    list.data();
                  })
      raw(list.data(), list.size() * sizeof(typename List::value_type));
    else
      for (auto& item : list) value(item);
  }
  void value(std::string& text) {
    text.resize(get<size_t>());
    items(text);
  }
  template <typename T>
  void value(std::shared_ptr<const T>& shared) {
    shared = std::make_shared<const T>(get<T>());
  }
  template <typename T>
  void value(T& field) {
    if constexpr (OwnBytes<T>) {
      raw(&field, sizeof field);
    } else if constexpr (kIsOptional<T>) {
      field.reset();
      if (get<bool>()) value(field.emplace());
    } else if constexpr (kIsMap<T>) {
      field.clear();
      for (auto left = get<size_t>(); left > 0; --left) {
        auto key = get<typename T::key_type>();
        value(field[std::move(key)]);
      }
    } else if constexpr (kIsList<T>) {
      const auto size = get<size_t>();
      if constexpr (requires { field.resize(size); }) field.resize(size);
      assert(field.size() == size);
      items(field);
    } else {
      fields(*this, field);
    }
  }

  std::span<const std::byte> rest_;
};

}  // namespace assay
