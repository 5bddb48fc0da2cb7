// A JSON value that a person wrote, and where it stands: for .cpp files that read such documents.
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "src/base/numerics/bad_input.h"

namespace assay {

/// Every check that fails throws BadInput with file and pointer.
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, std::string pointer, const std::string& path)
      : value_(value), pointer_(std::move(pointer)), path_(path) {}

  const std::string& pointer() const { return pointer_; }
  /// "FILE at /launches/0": before what is wrong there.
  std::string place() const { return fmt::format("{} at {}", path_, pointer_.empty() ? "/" : pointer_); }
  bool is_string() const { return value_.is_string(); }
  bool is_null() const { return value_.is_null(); }
  bool is_number() const { return value_.is_number(); }
  bool is_array() const { return value_.is_array(); }
  bool is_object() const { return value_.is_object(); }
  size_t size() const { return value_.size(); }
  /// Its JSON, for who reads it later.
  std::string written() const { return value_.dump(); }
  bool has(const char* key) const { return value_.contains(key); }

  [[noreturn]] void fail(const std::string& what) const { throw BadInput(place() + ": " + what); }

  /// Checks that this is an object with no key but these.
  void keys(std::initializer_list<const char*> known) const {
    if (!value_.is_object()) fail(fmt::format("expected an object, got {}", value_.type_name()));
    for (const auto& [key, item] : value_.items())
      if (std::find_if(known.begin(), known.end(), [&, &key = key](const char* k) { return key == k; }) ==
          known.end())
        fail(fmt::format("unknown key \"{}\"; known here: {}", key, fmt::join(known, ", ")));
  }

  JsonNode get(const char* key, const char* meaning) const {
    if (!has(key)) fail(fmt::format("key \"{}\" is missing: {}", key, meaning));
    return JsonNode(value_.at(key), pointer_ + "/" + key, path_);
  }

  std::string text() const {
    if (!value_.is_string()) fail(fmt::format("expected a string, got {}", value_.type_name()));
    return value_.get<std::string>();
  }

  /// A number, or a string that holds an expression.
  std::string expression() const {
    if (value_.is_number()) return value_.dump();
    if (!value_.is_string())
      fail(fmt::format("expected a number or an expression in a string, got {}", value_.type_name()));
    return value_.get<std::string>();
  }

  double number() const {
    if (!value_.is_number()) fail(fmt::format("expected a number, got {}", value_.type_name()));
    return value_.get<double>();
  }

  int64_t whole(int64_t low, int64_t high) const {
    if (!value_.is_number_integer() || value_.get<double>() < static_cast<double>(low) ||
        value_.get<double>() > static_cast<double>(high))
      fail(fmt::format("expected a whole number from {} to {}, got {}", low, high, value_.dump()));
    return value_.get<int64_t>();
  }

  bool boolean() const {
    if (!value_.is_boolean()) fail(fmt::format("expected true or false, got {}", value_.dump()));
    return value_.get<bool>();
  }

  std::vector<JsonNode> items(size_t least = 0) const {
    if (!value_.is_array()) fail(fmt::format("expected an array, got {}", value_.type_name()));
    if (value_.size() < least)
      fail(fmt::format("expected at least {} entries, got {}", least, value_.size()));
    std::vector<JsonNode> nodes;
    for (size_t i = 0; i < value_.size(); ++i)
      nodes.emplace_back(value_[i], fmt::format("{}/{}", pointer_, i), path_);
    return nodes;
  }

  std::vector<std::pair<std::string, JsonNode>> members() const {
    if (!value_.is_object()) fail(fmt::format("expected an object, got {}", value_.type_name()));
    std::vector<std::pair<std::string, JsonNode>> nodes;
    for (const auto& [key, item] : value_.items())
      nodes.emplace_back(key, JsonNode(item, pointer_ + "/" + key, path_));
    return nodes;
  }

 private:
  const nlohmann::json& value_;
  std::string pointer_;
  const std::string& path_;
};

}  // namespace assay
