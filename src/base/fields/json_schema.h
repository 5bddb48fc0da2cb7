// The JSON Schema of a type's JSON, from the list of its fields (fields.h).
#pragma once
#include "src/base/fields/json_fields.h"

namespace assay {

/// In the order in which it is written, so that a schema reads as the lists do.
using SchemaJson = nlohmann::ordered_json;

/// Collects what `fields` lists; the types that have a name are added to `definitions`.
struct SchemaWriter {
  SchemaJson& definitions;
  std::string name, description;
  SchemaJson properties = SchemaJson::object(), required = SchemaJson::array();

  void type(const char* called, const char* about = "") { name = called, description = about; }
  template <typename T>
  void operator()(const char* field, T&, const char* about = "") {
    property(field, schema_of<T>(definitions), about);
    required.push_back(field);
  }
  void operator()(const char* field, Bits, const char* about = "") {
    property(field, {{"type", "string"}, {"pattern", "^0x[0-9a-f]+$"}}, about);
    required.push_back(field);
  }
  template <typename T>
  void later(const char* field, T&, const char* about = "") {
    property(field, schema_of<T>(definitions), about);
  }
  template <typename T>
  void or_null(const char* field, T&, const char* about = "") {
    property(field, or_null_of(schema_of<T>(definitions)), about);
  }
  template <typename Make>
  void made(const char* field, const Make&, const char* about = "") {
    property(field, schema_of<std::invoke_result_t<Make>>(definitions), about);
    if (!kIsOptional<std::invoke_result_t<Make>>) required.push_back(field);
  }
  template <typename Make>
  void made_where(bool, const char* field, const Make&, const char* about = "") {
    property(field, schema_of<std::invoke_result_t<Make>>(definitions), about);
  }
  void property(const char* field, SchemaJson schema, const char* about) {
    if (*about) schema["description"] = about;
    properties[field] = std::move(schema);
  }
  SchemaJson object() const {
    SchemaJson schema = SchemaJson::object();
    if (!description.empty()) schema["description"] = description;
    schema.update({{"type", "object"}, {"properties", properties}});
    schema["required"] = required;
    schema["additionalProperties"] = false;
    return schema;
  }

  // Schemas whose text no type is part of: compiled once.
  static SchemaJson or_null_of(SchemaJson schema) {
    return {{"anyOf", SchemaJson::array({std::move(schema), {{"type", "null"}}})}};
  }
  static SchemaJson of_type(const char* name) { return {{"type", name}}; }
  static SchemaJson one_of_names(std::vector<std::string> names) { return {{"enum", std::move(names)}}; }
  static SchemaJson number(SchemaJson& definitions) {
    definitions["number"] = {
        {"description", "a double; what JSON cannot write is a string"},
        {"anyOf", SchemaJson::array({{{"type", "number"}}, {{"enum", {"nan", "inf", "-inf"}}}})}};
    return reference("number");
  }
  static SchemaJson reference(const std::string& name) { return {{"$ref", "#/$defs/" + name}}; }
  static SchemaJson list_of(SchemaJson items) { return {{"type", "array"}, {"items", std::move(items)}}; }
  static SchemaJson list_of(SchemaJson items, size_t size) {
    SchemaJson schema = list_of(std::move(items));
    schema["minItems"] = size;
    schema["maxItems"] = size;
    return schema;
  }
  static SchemaJson map_of(SchemaJson values) {
    return {{"type", "object"},
            {"properties", SchemaJson::object()},
            {"additionalProperties", std::move(values)}};
  }
  template <typename T>
  static SchemaJson schema_of(SchemaJson& definitions);
};

template <typename T>
SchemaJson SchemaWriter::schema_of(SchemaJson& definitions) {
  if constexpr (std::is_same_v<T, double>) {
    return number(definitions);
  } else if constexpr (std::is_same_v<T, Dtype>) {
    std::vector<std::string> names;
    for (const Format& row : formats()) names.emplace_back(row.name);
    return one_of_names(std::move(names));
  } else if constexpr (Named<T>) {
    const auto& names = names_of(T{});
    return one_of_names({std::begin(names), std::end(names)});
  } else if constexpr (std::is_same_v<T, bool>) {
    return of_type("boolean");
  } else if constexpr (std::is_integral_v<T>) {
    return of_type("integer");
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    return of_type("string");
  } else if constexpr (std::is_same_v<T, std::set<std::string>>) {
    return schema_of<std::vector<std::string>>(definitions);
  } else if constexpr (kIsList<T>) {
    SchemaJson items = schema_of<typename T::value_type>(definitions);
    if constexpr (requires(T list) { list.resize(0); })
      return list_of(std::move(items));
    else
      return list_of(std::move(items), T{}.size());
  } else if constexpr (kIsMap<T>) {
    return map_of(schema_of<typename T::mapped_type>(definitions));
  } else if constexpr (kIsOptional<T>) {
    return or_null_of(schema_of<typename T::value_type>(definitions));
  } else {
    SchemaWriter writer{definitions, {}, {}};
    T example{};
    fields(writer, example);
    if (writer.name.empty()) return writer.object();
    definitions[writer.name] = writer.object();
    return reference(writer.name);
  }
}

}  // namespace assay
