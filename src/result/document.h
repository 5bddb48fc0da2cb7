// The frame around every result: what it is and which program wrote it. For those who write documents.
#pragma once
#include "src/base/fields/json_fields.h"
#include "src/result/tool.h"

namespace assay {

inline constexpr int kResultSchema = 1;

/// What a document is and which program wrote it.
inline nlohmann::json document_frame(const char* kind) {
  return {{"schema", kResultSchema},
          {"kind", kind},
          {"tool", {{"name", "assay"}, {"version", tool_version()}, {"commit", tool_commit()}}}};
}

/// A document: its frame, then the fields.
template <typename Result>
nlohmann::json document(const char* kind, Result result) {
  nlohmann::json json = document_frame(kind);
  JsonWriter writer{json};
  fields(writer, result);
  return json;
}

template <typename Result>
Result read_document(const char* kind, const nlohmann::json& json) {
  if (!json.is_object() || !json.contains("schema") || !json.contains("kind")) {
    throw BadInput("not a result of assay: no 'schema' and 'kind' at the top");
  }
  if (json["schema"] != kResultSchema) {
    throw BadInput(
        fmt::format("result of schema {}: this program reads schema {}; write the result again with it",
                    json["schema"].dump(), kResultSchema));
  }
  if (json["kind"] != kind) {
    throw BadInput(fmt::format("result of kind {}: expected \"{}\"", json["kind"].dump(), kind));
  }
  Result result;
  JsonReader reader{json, ""};
  fields(reader, result);
  return result;
}

}  // namespace assay
