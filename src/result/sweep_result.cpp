#include "src/result/sweep_result.h"

#include "src/result/document.h"

namespace assay {

template <typename Io>
void fields(Io& io, SweepDimension& x) {
  ASSAY_FIELD(option);
  ASSAY_FIELD(values);
}

template <typename Io>
void fields(Io& io, SweepSetting& x) {
  ASSAY_FIELD(option);
  ASSAY_FIELD(value);
}

template <typename Io>
void fields(Io& io, SweepSample& x) {
  ASSAY_FIELD(seed);
  ASSAY_FIELD(max_error);
  ASSAY_FIELD(p99_error);
  ASSAY_FIELD(max_bound);
  ASSAY_FIELD(p99_bound);
  ASSAY_FIELD(max_ratio);
  ASSAY_FIELD(p99_ratio);
  ASSAY_FIELD(max_ulp);
  ASSAY_FIELD(p99_ulp);
  ASSAY_FIELD(rms_error);
  ASSAY_FIELD(rms_exact);
  ASSAY_FIELD(bias);
  ASSAY_FIELD(shrinkage);
}

template <typename Io>
void fields(Io& io, SweepCell& x) {
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(settings);
  ASSAY_FIELD(output);
  ASSAY_FIELD(verdict);
  ASSAY_FIELD(note);
  ASSAY_FIELD(elements);
  ASSAY_FIELD(violation);
  ASSAY_FIELD(nonfinite);
  ASSAY_FIELD(wrong_class);
  ASSAY_FIELD(undecided);
  ASSAY_FIELD(over_seeds);
  ASSAY_FIELD(samples);
  ASSAY_FIELD(gated);
  ASSAY_FIELD(gate_min);
  ASSAY_FIELD(gate_max);
  ASSAY_FIELD(seconds_kernel);
  ASSAY_FIELD(seconds_reference);
  ASSAY_FIELD(token);
}

template <typename Io>
void fields(Io& io, Sweep& x) {
  ASSAY_FIELD(kernels);
  ASSAY_FIELD(dimensions);
  ASSAY_FIELD(seeds);
  ASSAY_FIELD(base);
  ASSAY_FIELD(backend);
  ASSAY_FIELD(tolerance);
  ASSAY_FIELD(complete);
  ASSAY_FIELD(seconds);
  ASSAY_FIELD(cells);
}

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
