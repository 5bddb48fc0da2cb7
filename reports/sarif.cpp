#include "reports/sarif.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/markup.h"

namespace assay {
namespace {

using nlohmann::json;

/// The rule a finding falls under: its top diagnosis, else the origin's or the trap's kind, else the verdict.
std::string rule_of(const json& v) {
  const json &diagnosis = field_of(v, "diagnosis"), &origin = field_of(v, "origin"),
             &trap = field_of(v, "trap");
  if (!diagnosis.empty()) return text_of(diagnosis[0], "cause");
  if (!origin.is_null()) return text_of(origin, "kind");
  if (!trap.is_null()) return text_of(trap, "kind");
  if (const json& found = check_findings(v); !found.empty()) return text_of(found[0], "kind");
  return text_of(v, "verdict");
}

std::string message_of(const json& v) {
  const json& origin = field_of(v, "origin");
  const json& found = check_findings(v);
  const std::string what = origin.is_null() && !found.empty() ? text_of(found[0], "message")
                           : origin.is_null() ? text_of(v, "cause") : text_of(origin, "sentence");
  return fmt::format("{}: {}. Replay: {}", text_of(v, "kernel"), what, text_of(v, "replay"));
}

json location_of(const json& v) {
  const json &origin = field_of(v, "origin"), &trap = field_of(v, "trap");
  const json& where = !origin.is_null() ? field_of(origin, "where")
                      : !trap.is_null() ? field_of(trap, "where")
                      : !check_findings(v).empty() ? field_of(field_of(check_findings(v)[0], "at"), "where")
                                        : origin;
  if (where.is_null() || text_of(where, "file").empty()) return json::array();
  json region = json::object();
  if (const int64_t line = count_of(where, "line"); line > 0) region["startLine"] = line;
  return json::array({{{"physicalLocation",
                        {{"artifactLocation", {{"uri", text_of(where, "file")}}}, {"region", region}}}}});
}

}  // namespace

std::string render_sarif(const json& result) {
  const std::string kind = result_kind(result);
  std::vector<const json*> findings;
  if (kind == "fuzz") {
    for (const json& finding : field_of(result, "findings")) findings.push_back(&finding);
  } else if (text_of(result, "verdict") != "pass") {
    findings.push_back(&result);
  }
  json results = json::array(), rules = json::array();
  std::vector<std::string> names;
  for (const json* finding : findings) {
    const std::string rule = rule_of(*finding);
    if (std::find(names.begin(), names.end(), rule) == names.end()) {
      names.push_back(rule);
      rules.push_back({{"id", rule}});
    }
    const bool note = text_of(*finding, "verdict") != "finding";
    results.push_back({{"ruleId", rule},
                       {"level", note ? "warning" : "error"},
                       {"message", {{"text", message_of(*finding)}}},
                       {"locations", location_of(*finding)},
                       {"partialFingerprints", {{"cause/v1", text_of(*finding, "cause")}}}});
  }
  const json document = {
      {"version", "2.1.0"},
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"runs",
       json::array({{{"tool", {{"driver", {{"name", "assay"}, {"rules", rules}}}}}, {"results", results}}})}};
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace assay
