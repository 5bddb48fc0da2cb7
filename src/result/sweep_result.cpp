#include "src/result/sweep_result.h"

#include "src/result/document.h"

namespace assay {

nlohmann::json to_json(const SweepCell& cell) {
  SweepCell copy = cell;
  return JsonWriter::json_of(copy);
}

SweepCell sweep_cell_from_json(const nlohmann::json& json) {
  SweepCell cell;
  JsonReader::read(json, cell, "/cell");
  return cell;
}

nlohmann::json to_json(const Sweep& sweep) {
  nlohmann::json json = document("sweep", sweep);
  json["worst"] = nlohmann::json::array();
  for (const Verification& v : sweep.worst) json["worst"].push_back(to_json(v));
  return json;
}

Sweep sweep_from_json(const nlohmann::json& json) {
  Sweep sweep = read_document<Sweep>("sweep", json);
  if (!json.contains("worst") || !json["worst"].is_array()) throw BadInput("result /worst: expected a list");
  for (const nlohmann::json& v : json["worst"]) sweep.worst.push_back(verification_from_json(v));
  return sweep;
}

std::string setting(const SweepCell& cell, std::string_view option) {
  for (const SweepSetting& s : cell.settings)
    if (s.option == option) return s.value;
  return "";
}

std::string settings_text(const SweepCell& cell) {
  std::string text;
  for (const SweepSetting& s : cell.settings) text += (text.empty() ? "" : " ") + s.option + "=" + s.value;
  return text;
}

}  // namespace assay
