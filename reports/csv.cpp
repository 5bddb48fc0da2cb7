#include "reports/csv.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "reports/markup.h"

namespace assay {
namespace {

using nlohmann::json;

/// Quoted where it holds a comma, a quote or an end of line. A leading =, +, - or @ of text is kept from
/// being taken for a formula by a space before it.
std::string field(const json& value) {
  std::string text = value.is_null() ? "" : exact_decimal(value);
  if (value.is_string() && !text.empty() &&
      std::string_view("=+-@").find(text[0]) != std::string_view::npos && text != "inf" && text != "-inf")
    text = " " + text;
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string line(const std::vector<json>& values) {
  std::string out;
  for (size_t i = 0; i < values.size(); ++i) out += (i ? "," : "") + field(values[i]);
  return out + "\r\n";
}

/// One row per object of `list`: the fields `names` of it, after `first`.
std::string rows(const json& list, const std::vector<const char*>& names) {
  std::vector<json> head(names.begin(), names.end());
  std::string out = line(head);
  for (const json& object : list) {
    std::vector<json> values;
    for (const char* name : names) values.push_back(field_of(object, name));
    out += line(values);
  }
  return out;
}

std::string verification_csv(const json& v) {
  json outputs = json::array();
  for (json output : field_of(v, "outputs")) {
    output["kernel"] = field_of(v, "kernel");
    output["token"] = field_of(v, "token");
    for (const char* name : {"element", "got", "expected", "bound"})
      output[name] = field_of(field_of(output, "worst"), name);
    output["output"] = field_of(output, "name");
    outputs.push_back(std::move(output));
  }
  return rows(outputs, {"kernel", "output", "dtype", "elements", "ok", "violation", "nonfinite",
                        "wrong_class", "undecided", "max_ratio", "max_tightness", "max_relative_bound",
                        "max_enclosure", "element", "got", "expected", "bound", "token"});
}

std::string trend_csv(const json& trend) {
  json list = json::array();
  for (const json& run : field_of(trend, "runs"))
    for (json row : field_of(run, "ratios")) {
      for (const char* name : {"commit", "started", "cases", "passed", "findings", "undecided"})
        row[name] = field_of(run, name);
      list.push_back(std::move(row));
    }
  return rows(list, {"commit", "started", "kernel", "dtype", "max_ratio", "cases", "passed", "findings",
                     "undecided"});
}

std::string sweep_csv(const json& sweep) {
  std::vector<json> head = {"kernel", "output"};
  for (const json& d : field_of(sweep, "dimensions")) head.push_back(field_of(d, "option"));
  const std::vector<const char*> counts = {"verdict",   "elements",    "violation",
                                           "nonfinite", "wrong_class", "undecided"},
                                 numbers = {"max_error", "p99_error", "max_bound", "p99_bound",
                                            "max_ratio", "p99_ratio", "max_ulp",   "p99_ulp",
                                            "rms_error", "rms_exact", "bias",      "shrinkage"},
                                 rest = {"gate_min",          "gate_max", "seconds_kernel",
                                         "seconds_reference", "token",    "note"};
  for (const auto& names : {counts, numbers, rest}) head.insert(head.end(), names.begin(), names.end());
  std::string out = line(head);
  for (const json& cell : field_of(sweep, "cells")) {
    std::vector<json> values = {field_of(cell, "kernel"), field_of(cell, "output")};
    for (const json& s : field_of(cell, "settings")) values.push_back(field_of(s, "value"));
    for (const char* name : counts) values.push_back(field_of(cell, name));
    for (const char* name : numbers) values.push_back(field_of(field_of(cell, "over_seeds"), name));
    for (const char* name : rest) values.push_back(field_of(cell, name));
    out += line(values);
  }
  return out;
}

}  // namespace

std::string render_csv(const json& result) {
  const std::string kind = result_kind(result);
  if (kind == "sweep") return sweep_csv(result);
  if (kind == "trend") return trend_csv(result);
  if (kind == "verification") return verification_csv(result);
  return rows(field_of(result, "tightness"),
              {"kernel", "output", "dtype", "decay", "length_class", "cases", "undecided", "max_ratio",
               "max_tightness", "max_relative_bound"});
}

}  // namespace assay
