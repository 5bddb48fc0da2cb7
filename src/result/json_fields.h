// JSON both ways from one listing of a struct's fields. For those who write documents.
#pragma once
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/format.h"

namespace assay {

/// In `fields(Io& io, Struct& x)`, of which there is one per struct; JsonWriter and JsonReader walk the same
/// one. Names in the document are the fields' own.
#define ASSAY_FIELD(name) io(#name, x.name)

/// A 64-bit pattern, written as "0x7fc00000": JSON numbers lose bits beyond 2^53.
struct Bits {
  uint64_t& value;
};

/// Writes fields into an object: `writer("name", field)`.
struct JsonWriter {
  nlohmann::json& object;
  template <typename T>
  void operator()(const char* name, T& field) {
    object[name] = json_of(field);
  }
  /// A list or a text that older documents lack.
  template <typename T>
  void or_empty(const char* name, T& field) {
    (*this)(name, field);
  }
  void operator()(const char* name, Bits bits) { object[name] = fmt::format("{:#x}", bits.value); }

  template <typename T>
  static nlohmann::json json_of(T& field);
};

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

/// Reads the same fields back. A missing or ill-typed field is BadInput naming its path.
struct JsonReader {
  const nlohmann::json& object;
  std::string path;
  template <typename T>
  void operator()(const char* name, T& field) {
    if constexpr (IsOptional<T>::value) {  // written as null; older documents lack it
      if (object.is_object() && !object.contains(name)) return field.reset();
    }
    read(at(name), field, path + "/" + name);
  }
  template <typename T>
  void or_empty(const char* name, T& field) {
    field.clear();
    if (object.is_object() && object.contains(name)) (*this)(name, field);
  }
  void operator()(const char* name, Bits bits) {
    std::string text;
    read(at(name), text, path + "/" + name);
    const char* end = text.data() + text.size();
    const bool prefixed = text.starts_with("0x");
    if (!prefixed || std::from_chars(text.data() + 2, end, bits.value, 16).ptr != end)
      bad(path + "/" + name, "a bit pattern like \"0x7fc00000\"");
  }

  const nlohmann::json& at(const char* name) const {
    if (!object.is_object()) bad(path, "an object");
    const auto found = object.find(name);
    if (found == object.end())
      throw BadInput(fmt::format("result {}/{}: missing; is this a result of assay?", path, name));
    return *found;
  }
  [[noreturn]] static void bad(const std::string& path, const char* expected) {
    throw BadInput(fmt::format("result {}: expected {}", path, expected));
  }
  template <typename T>
  static void read(const nlohmann::json& json, T& field, const std::string& path);
};

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T, size_t N>
struct IsVector<std::array<T, N>> : std::true_type {};

/// Numbers JSON has no form for are the strings "nan", "inf", "-inf".
inline nlohmann::json json_of_double(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  return x;
}

template <typename T>
nlohmann::json JsonWriter::json_of(T& field) {
  using Value = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Value, double>) {
    return json_of_double(field);
  } else if constexpr (std::is_same_v<Value, Dtype>) {
    return std::string(format(field).name);
  } else if constexpr (IsVector<Value>::value || std::is_same_v<Value, std::set<std::string>>) {
    nlohmann::json list = nlohmann::json::array();
    for (auto& item : field) list.push_back(json_of(item));
    return list;
  } else if constexpr (IsOptional<Value>::value) {
    return field ? json_of(*field) : nlohmann::json(nullptr);
  } else if constexpr (std::is_class_v<Value> && !std::is_same_v<Value, std::string>) {
    nlohmann::json child = nlohmann::json::object();
    JsonWriter writer{child};
    fields(writer, field);
    return child;
  } else {
    return field;
  }
}

template <typename T>
void JsonReader::read(const nlohmann::json& json, T& field, const std::string& path) {
  if constexpr (std::is_same_v<T, double>) {
    if (json.is_number())
      field = json.get<double>();
    else if (json == "nan")
      field = std::numeric_limits<double>::quiet_NaN();
    else if (json == "inf" || json == "-inf")
      field = json == "inf" ? HUGE_VAL : -HUGE_VAL;
    else
      bad(path, "a number, \"nan\", \"inf\" or \"-inf\"");
  } else if constexpr (std::is_same_v<T, Dtype>) {
    std::string name;
    read(json, name, path);
    field = format(name).dtype;
  } else if constexpr (std::is_same_v<T, std::set<std::string>>) {
    std::vector<std::string> list;
    read(json, list, path);
    field = {list.begin(), list.end()};
  } else if constexpr (IsVector<T>::value) {
    if (!json.is_array()) bad(path, "a list");
    if constexpr (requires { field.resize(0); }) field.resize(json.size());
    if (json.size() != field.size()) bad(path, "a list of another length");
    for (size_t i = 0; i < field.size(); ++i) read(json[i], field[i], fmt::format("{}/{}", path, i));
  } else if constexpr (IsOptional<T>::value) {
    field.reset();
    if (!json.is_null()) read(json, field.emplace(), path);
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!json.is_string()) bad(path, "a string");
    field = json.get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) bad(path, "true or false");
    field = json.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    if (!json.is_number_integer()) bad(path, "an integer");
    field = json.get<T>();
  } else {
    JsonReader reader{json, path};
    fields(reader, field);
  }
}

}  // namespace assay
