// JSON both ways from the list of a type's fields (fields.h). For .cpp files that read or write a document.
#pragma once
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/fields/names.h"
#include "src/base/fields/shapes.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/format.h"

namespace assay {

/// Writes fields into an object.
struct JsonWriter {
  nlohmann::json& object;
  void type(const char*, const char* = "") {}
  template <typename T>
  void operator()(const char* name, T& field, const char* = "") {
    object[name] = json_of(field);
  }
  void operator()(const char* name, Bits bits, const char* = "") {
    object[name] = fmt::format("{:#x}", bits.value);
  }
  template <typename T>
  void later(const char* name, T& field, const char* = "") {
    (*this)(name, field);
  }
  template <typename T>
  void or_null(const char* name, T& field, const char* = "") {
    object[name] = field.empty() ? nlohmann::json(nullptr) : json_of(field);
  }
  template <typename Make>
  void made(const char* name, const Make& make, const char* = "") {
    auto value = make();
    object[name] = json_of(value);
  }
  template <typename Make>
  void made_where(bool there, const char* name, const Make& make, const char* = "") {
    if (there) made(name, make);
  }

  template <typename T>
  static nlohmann::json json_of(T& field);
};

/// Reads the same fields back. A missing or ill-typed field is BadInput naming its path.
struct JsonReader {
  const nlohmann::json& object;
  std::string path;
  void type(const char*, const char* = "") {}
  template <typename T>
  void operator()(const char* name, T& field, const char* = "") {
    read(at(name), field, path + "/" + name);
  }
  void operator()(const char* name, Bits bits, const char* = "") {
    std::string text;
    read(at(name), text, path + "/" + name);
    const char* end = text.data() + text.size();
    const bool prefixed = text.starts_with("0x");
    if (!prefixed || std::from_chars(text.data() + 2, end, bits.value, 16).ptr != end)
      bad(path + "/" + name, "a bit pattern like \"0x7fc00000\"");
  }
  template <typename T>
  void later(const char* name, T& field, const char* = "") {
    // What is read is new: a result from before there was this field has its default.
    if (object.is_object() && object.contains(name)) (*this)(name, field);
  }
  template <typename T>
  void or_null(const char* name, T& field, const char* = "") {
    field = T{};
    if (object.is_object() && object.contains(name) && !object[name].is_null()) (*this)(name, field);
  }
  template <typename Make>
  void made(const char*, const Make&, const char* = "") {}
  template <typename Make>
  void made_where(bool, const char*, const Make&, const char* = "") {}

  const nlohmann::json& at(const char* name) const {
    if (!object.is_object()) bad(path, "an object");
    const auto found = object.find(name);
    if (found == object.end())
      throw BadInput(fmt::format("result {}/{}: missing; is this a result of assay?", path, name));
    return *found;
  }
  [[noreturn]] static void bad(const std::string& path, const std::string& expected) {
    throw BadInput(fmt::format("result {}: expected {}", path, expected));
  }
  template <typename T>
  static void read(const nlohmann::json& json, T& field, const std::string& path);
};

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
  } else if constexpr (Named<Value>) {
    return std::string(name_of(field));
  } else if constexpr (kIsList<Value> || std::is_same_v<Value, std::set<std::string>>) {
    nlohmann::json list = nlohmann::json::array();
    for (auto& item : field) list.push_back(json_of(item));
    return list;
  } else if constexpr (kIsMap<Value>) {
    nlohmann::json object = nlohmann::json::object();
    for (auto& [key, value] : field) object[fmt::format("{}", key)] = json_of(value);
    return object;
  } else if constexpr (kIsOptional<Value>) {
    return field ? json_of(*field) : nlohmann::json(nullptr);
  } else if constexpr (std::is_class_v<Value> && !std::is_convertible_v<Value, std::string_view>) {
    nlohmann::json child = nlohmann::json::object();
    JsonWriter writer{child};
    fields(writer, field);
    return child;
  } else {
    return field;
  }
}

template <Named E>
std::string names_text() {
  std::string text;
  for (const std::string_view name : names_of(E{}))
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", name);
  return text;
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
  } else if constexpr (Named<T>) {
    std::string name;
    read(json, name, path);
    const std::optional<T> value = value_named<T>(name);
    if (!value) bad(path, "one of " + names_text<T>());
    field = *value;
  } else if constexpr (std::is_same_v<T, std::set<std::string>>) {
    std::vector<std::string> list;
    read(json, list, path);
    field = {list.begin(), list.end()};
  } else if constexpr (kIsList<T>) {
    if (!json.is_array()) bad(path, "a list");
    if constexpr (requires { field.resize(0); }) field.resize(json.size());
    if (json.size() != field.size()) bad(path, "a list of another length");
    for (size_t i = 0; i < field.size(); ++i) read(json[i], field[i], fmt::format("{}/{}", path, i));
  } else if constexpr (kIsOptional<T>) {
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
