// Which of a list's fields are optional values, lists and maps, asked by what goes through fields (fields.h).
#pragma once
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace assay {

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kIsList = false;
template <typename T>
inline constexpr bool kIsList<std::vector<T>> = true;
template <typename T, size_t N>
inline constexpr bool kIsList<std::array<T, N>> = true;
template <typename T>
inline constexpr bool kIsMap = false;
template <typename Key, typename T>
inline constexpr bool kIsMap<std::map<Key, T>> = true;

}  // namespace assay
