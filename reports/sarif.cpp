#include "reports/sarif.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/finding_parts.h"
#include "reports/markup.h"
#include "src/result/identity.h"
#include "src/result/verdict.h"

namespace assay {
namespace {

using nlohmann::json;

/// Relative URIs are meant from the root of the source tree; this is the name that code hosts give it.
constexpr const char* kSourceRoot = "%SRCROOT%";

/// A path as a URI reference (RFC 3986): what may not stand in a path segment is percent-encoded.
std::string uri_of(const std::string& path) {
  std::string out;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("/-._~!$&'()*+,;=@").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<uint8_t>(c));
  }
  return out;
}

json artifact_of(const std::string& file) {
  if (file.starts_with('/')) return {{"uri", "file://" + uri_of(file)}};
  return {{"uri", uri_of(file.starts_with("./") ? file.substr(2) : file)}, {"uriBaseId", kSourceRoot}};
}

/// Of a SourceLocation; with `text`, the source line.
json location_at(const json& where, const std::string& text = "") {
  json physical = {{"artifactLocation", artifact_of(text_of(where, "file"))}};
  if (const int64_t line = count_of(where, "line"); line > 0) {
    physical["region"]["startLine"] = line;
    if (!text.empty()) physical["region"]["snippet"]["text"] = text;
  }
  json location = {{"physicalLocation", physical}};
  if (const std::string function = text_of(where, "function"); !function.empty())
    location["logicalLocations"] = json::array({{{"name", function}, {"kind", "function"}}});
  return location;
}

/// From where a non-finite value was born to the output, as steps that a viewer can walk.
json flow_of(const json& origin) {
  json steps = json::array();
  for (const json& link : field_of(origin, "chain")) {
    const json& where = field_of(link, "where");
    if (text_of(where, "file").empty()) continue;
    json location = location_at(where, text_of(link, "text"));
    location["message"]["text"] = text_of(link, "instruction");
    steps.push_back({{"location", location}});
  }
  if (steps.empty()) return steps;
  return json::array({{{"threadFlows", json::array({{{"locations", steps}}})}}});
}

std::string message_of(const json& v) {
  const std::string cause = cause_sentence_of(v);
  return fmt::format("{}: {}. {}{}Replay: {}", text_of(v, "kernel"), headline_of(v), cause,
                     cause.empty() ? "" : ". ", text_of(v, "replay"));
}

json result_of(const json& v, size_t rule) {
  const std::string identity = identity_in(v), print = fingerprint(identity);
  json result = {{"ruleId", rule_of(v).name},
                 {"ruleIndex", rule},
                 {"level", text_of(v, "verdict") == name_of(Verdict::finding) ? "error" : "warning"},
                 {"message", {{"text", message_of(v)}}},
                 {"locations", json::array()},
                 // The second name is the one by which code hosts recognise an alert.
                 {"partialFingerprints", {{"identity/v2", print}, {"primaryLocationLineHash", print + ":1"}}},
                 {"properties",
                  {{"kernel", text_of(v, "kernel")},
                   {"cause", text_of(v, "cause")},
                   {"identity", identity},
                   {"token", text_of(v, "token")}}}};
  if (const json place = place_of(v); !place.is_null()) result["locations"].push_back(location_at(place));
  if (const json& origin = field_of(v, "origin"); !origin.is_null()) {
    if (json flow = flow_of(origin); !flow.empty()) result["codeFlows"] = flow;
  }
  json others = json::array();
  for (const json& other : field_or_null(v, "also"))
    others.push_back({{"cause", text_of(other, "cause")}, {"replay", text_of(other, "replay")}});
  if (!others.empty()) result["properties"]["also"] = others;
  if (v.contains("known") && v["known"].is_boolean())
    result["baselineState"] = is_known(v) ? "unchanged" : "new";
  return result;
}

}  // namespace

std::string render_sarif(const json& result) {
  json results = json::array(), rules = json::array();
  std::map<std::string, size_t> indices;
  for (const json* finding : findings_in(result)) {
    const Rule rule = rule_of(*finding);
    const auto [at, added] = indices.try_emplace(rule.name, indices.size());
    if (added) rules.push_back({{"id", rule.name}, {"shortDescription", {{"text", rule.text}}}});
    results.push_back(result_of(*finding, at->second));
  }
  const json& tool = field_of(result, "tool");
  json driver = {{"name", "assay"}, {"rules", rules}};
  if (const std::string version = text_of(tool, "version"); !version.empty()) driver["version"] = version;
  json run = {
      {"tool", {{"driver", driver}}},
      {"columnKind", "utf16CodeUnits"},
      {"originalUriBaseIds", {{kSourceRoot, {{"description", {{"text", "the root of the source tree"}}}}}}},
      {"results", results}};
  const std::string shortfall = shortfall_of(result);
  json invocation = {{"executionSuccessful", shortfall.empty()}};
  if (!shortfall.empty())
    invocation["toolExecutionNotifications"] =
        json::array({{{"level", "error"}, {"message", {{"text", shortfall}}}}});
  run["invocations"] = json::array({invocation});
  if (const json& checkout = field_or_null(result, "checkout"); checkout.is_object()) {
    run["properties"] = {{"commit", text_of(checkout, "commit")},
                         {"branch", text_of(checkout, "branch")},
                         {"changed", field_of(checkout, "dirty")}};
  }
  const json document = {{"version", "2.1.0"},
                         {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                         {"runs", json::array({run})}};
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace assay
