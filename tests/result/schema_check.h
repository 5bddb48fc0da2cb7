// Checks a document against the part of JSON Schema that the schemas here use.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace assay {

class SchemaCheck {
 public:
  explicit SchemaCheck(nlohmann::json root) : root_(std::move(root)) {}

  /// What does not hold, one line each, with the path in the document. Empty: valid.
  std::vector<std::string> errors(const nlohmann::json& document) const {
    std::vector<std::string> found;
    check(root_, document, "", found);
    return found;
  }

 private:
  using Json = nlohmann::json;

  bool valid(const Json& schema, const Json& value) const {
    std::vector<std::string> found;
    check(schema, value, "", found);
    return found.empty();
  }

  static bool has_type(const std::string& type, const Json& v) {
    if (type == "object") return v.is_object();
    if (type == "array") return v.is_array();
    if (type == "string") return v.is_string();
    if (type == "boolean") return v.is_boolean();
    if (type == "integer") return v.is_number_integer();
    if (type == "number") return v.is_number();
    if (type == "null") return v.is_null();
    throw std::runtime_error("schema uses type " + type);
  }

  void check(const Json& schema, const Json& v, const std::string& path,
             std::vector<std::string>& found) const {
    for (const auto& [key, rule] : schema.items()) {
      if (key == "$ref") {
        const std::string text = rule.get<std::string>().substr(1);
        check(root_.at(Json::json_pointer(text)), v, path, found);
      } else if (key == "anyOf" || key == "oneOf") {
        int64_t holding = 0;
        for (const auto& option : rule) holding += valid(option, v);
        if (key == "anyOf" ? holding < 1 : holding != 1) found.push_back(path + ": " + key + " fails");
      } else if (key == "type") {
        if (!has_type(rule, v)) found.push_back(path + ": not a " + rule.get<std::string>());
      } else if (key == "const") {
        if (v != rule) found.push_back(path + ": is not " + rule.dump());
      } else if (key == "enum") {
        if (std::find(rule.begin(), rule.end(), v) == rule.end())
          found.push_back(path + ": not among " + rule.dump());
      } else if (key == "pattern") {
        const bool hex =
            v.is_string() && v.get<std::string>().starts_with("0x") && v.get<std::string>().size() > 2;
        if (rule != "^0x[0-9a-f]+$") throw std::runtime_error("schema uses another pattern");
        if (!hex) found.push_back(path + ": not a bit pattern");
      } else if (key == "items") {
        for (size_t i = 0; v.is_array() && i < v.size(); ++i)
          check(rule, v[i], path + "/" + std::to_string(i), found);
      } else if (key == "minItems" || key == "maxItems") {
        const bool fits = key == "minItems" ? v.size() >= rule.get<size_t>() : v.size() <= rule.get<size_t>();
        if (v.is_array() && !fits) found.push_back(path + ": wrong length");
      } else if (key == "minProperties" || key == "maxProperties") {
        const bool fits =
            key == "minProperties" ? v.size() >= rule.get<size_t>() : v.size() <= rule.get<size_t>();
        if (v.is_object() && !fits) found.push_back(path + ": wrong number of keys");
      } else if (key == "minimum" || key == "maximum") {
        const bool fits =
            !v.is_number() || (key == "minimum" ? v.get<double>() >= rule : v.get<double>() <= rule);
        if (!fits) found.push_back(path + ": out of range");
      } else if (key == "required") {
        for (const auto& name : rule) {
          if (v.is_object() && !v.contains(name))
            found.push_back(path + ": lacks " + name.get<std::string>());
        }
      } else if (key == "properties") {
        for (const auto& [name, child] : rule.items()) {
          if (v.is_object() && v.contains(name)) check(child, v[name], path + "/" + name, found);
        }
      } else if (key == "additionalProperties") {
        if (!v.is_object()) continue;
        for (const auto& [name, child] : v.items()) {
          if (schema.at("properties").contains(name)) continue;
          if (rule.is_object())
            check(rule, child, path + "/" + name, found);
          else
            found.push_back(path + ": unknown " + name);
        }
      } else if (key != "$schema" && key != "title" && key != "$defs" && key != "description") {
        throw std::runtime_error("schema uses keyword " + key);
      }
    }
  }

  Json root_;
};

}  // namespace assay
