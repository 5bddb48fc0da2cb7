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
  void one_of(const char* field, std::string&, std::initializer_list<const char*> names) {
    property(field, {{"enum", std::vector<std::string>(names.begin(), names.end())}}, "");
    required.push_back(field);
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

  static SchemaJson or_null_of(SchemaJson schema) {
    return {{"anyOf", SchemaJson::array({std::move(schema), {{"type", "null"}}})}};
  }
  template <typename T>
  static SchemaJson schema_of(SchemaJson& definitions);
};

template <typename T>
SchemaJson SchemaWriter::schema_of(SchemaJson& definitions) {
  if constexpr (std::is_same_v<T, double>) {
    definitions["number"] = {
        {"description", "a double; what JSON cannot write is a string"},
        {"anyOf", SchemaJson::array({{{"type", "number"}}, {{"enum", {"nan", "inf", "-inf"}}}})}};
    return {{"$ref", "#/$defs/number"}};
  } else if constexpr (std::is_same_v<T, Dtype>) {
    SchemaJson names = SchemaJson::array();
    for (const Format& row : formats()) names.push_back(row.name);
    return {{"enum", names}};
  } else if constexpr (Named<T>) {
    return {{"enum", names_of(T{})}};
  } else if constexpr (std::is_same_v<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::is_integral_v<T>) {
    return {{"type", "integer"}};
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    return {{"type", "string"}};
  } else if constexpr (std::is_same_v<T, std::set<std::string>>) {
    return schema_of<std::vector<std::string>>(definitions);
  } else if constexpr (kIsList<T>) {
    SchemaJson schema{{"type", "array"}, {"items", schema_of<typename T::value_type>(definitions)}};
    if constexpr (!requires(T list) { list.resize(0); }) {
      schema["minItems"] = T{}.size();
      schema["maxItems"] = T{}.size();
    }
    return schema;
  } else if constexpr (kIsMap<T>) {
    return {{"type", "object"},
            {"properties", SchemaJson::object()},
            {"additionalProperties", schema_of<typename T::mapped_type>(definitions)}};
  } else if constexpr (kIsOptional<T>) {
    return or_null_of(schema_of<typename T::value_type>(definitions));
  } else {
    SchemaWriter writer{definitions, {}, {}};
    T example{};
    fields(writer, example);
    if (writer.name.empty()) return writer.object();
    definitions[writer.name] = writer.object();
    return {{"$ref", "#/$defs/" + writer.name}};
  }
}

}  // namespace assay
