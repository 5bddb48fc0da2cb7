// The names of an enumeration's values, in one table: `names_of(E)` beside the enumeration, in the order of
// its values, which count from 0. Text is for the edges: documents, options, what people read.
#pragma once
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace assay {

template <typename E>
concept Named = std::is_enum_v<E> && requires(E e) {
  { names_of(e)[0] } -> std::convertible_to<std::string_view>;
};

template <Named E>
constexpr std::string_view name_of(E value) {
  return names_of(value)[static_cast<size_t>(value)];
}

/// The value of that name; none where there is no such name.
template <Named E>
constexpr std::optional<E> value_named(std::string_view name) {
  const auto names = names_of(E{});
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<E>(i);
  return std::nullopt;
}

/// Those of several, for a sentence that lists them.
template <Named E>
std::vector<std::string_view> names_of(const std::vector<E>& values) {
  std::vector<std::string_view> names;
  for (const E value : values) names.push_back(name_of(value));
  return names;
}

}  // namespace assay
