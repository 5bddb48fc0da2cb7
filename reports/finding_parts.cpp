#include "reports/finding_parts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/markup.h"
#include "reports/section.h"
#include "src/result/finding_kind.h"

namespace assay {
namespace {

using nlohmann::json;

/// A field that may be absent (older documents) or null.
const json& part(const json& object, const char* name) {
  static const json none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

/// First entry of a list that may be absent, null or empty.
const json& first(const json& list) {
  static const json none;
  return list.is_array() && !list.empty() ? list[0] : none;
}

/// "property/causality" -> "causality", "violation/o" -> "violation".
std::string fault_of(const json& v) {
  std::string cause = text_of(v, "cause");
  if (cause.starts_with("property/")) cause = cause.substr(cause.find('/') + 1);
  cause = cause.substr(0, cause.find('/'));
  return cause.empty() ? text_of(v, "verdict") : cause;
}

/// Candidates for the place to point at, best first.
std::vector<const json*> places_of(const json& v) {
  const json& slice = part(v, "slice");
  const json& shadow = part(v, "shadow");
  std::vector<const json*> places = {&part(part(v, "origin"), "where"), &part(part(v, "trap"), "where")};
  if (!check_findings(v).empty()) places.push_back(&part(part(check_findings(v)[0], "at"), "where"));
  if (slice.is_object() && !part(slice, "chain").empty())
    places.push_back(&part(part(slice["chain"].back(), "at"), "where"));
  places.push_back(&part(first(part(shadow, "lines")), "where"));
  places.push_back(&part(v, "entry"));
  return places;
}

}  // namespace

std::vector<const json*> findings_in(const json& result) {
  std::vector<const json*> findings;
  if (result_kind(result) == "fuzz") {
    for (const json& finding : field_of(result, "findings")) findings.push_back(&finding);
  } else if (text_of(result, "verdict") != name_of(Verdict::pass)) {
    findings.push_back(&result);
  }
  return findings;
}

std::string rule_of(const json& v) {
  const json &diagnosis = field_of(v, "diagnosis"), &origin = field_of(v, "origin"),
             &trap = field_of(v, "trap");
  if (!diagnosis.empty()) return text_of(diagnosis[0], "cause");
  if (!origin.is_null()) return text_of(origin, "kind");
  if (!trap.is_null()) return text_of(trap, "kind");
  if (const json& found = check_findings(v); !found.empty()) return text_of(found[0], "kind");
  return fault_of(v);
}

std::string rule_text(const json& v) {
  if (const json& diagnosis = field_of(v, "diagnosis"); !diagnosis.empty())
    return text_of(diagnosis[0], "explanation");
  if (const json& origin = field_of(v, "origin"); !origin.is_null())
    return fmt::format("a value that is not finite was born of {}", text_of(origin, "kind"));
  if (const json& trap = field_of(v, "trap"); !trap.is_null())
    return fmt::format("the run ended by a trap: {}", text_of(trap, "kind"));
  if (const json& found = check_findings(v); !found.empty())
    return fmt::format("the check {} found: {}", text_of(found[0], "check"), text_of(found[0], "kind"));
  for (const FindingKindRow& row : finding_kinds())
    if (row.cause_word == fault_of(v)) return std::string(row.text);
  return fmt::format("{} does not hold", fault_of(v));
}

json place_of(const json& v) {
  const json& entry = part(v, "entry");
  for (const json* place : places_of(v)) {
    if (!place->is_object()) continue;
    if (!text_of(*place, "file").empty()) return *place;
    // PTX without source lines: the line of the PTX file.
    if (count_of(*place, "ptx_line") > 0 && text_of(entry, "file").ends_with(".ptx")) {
      json at = *place;
      at["file"] = text_of(entry, "file");
      at["line"] = count_of(*place, "ptx_line");
      return at;
    }
  }
  return nullptr;
}

std::string headline_of(const json& v) {
  for (const Section* section : sections_by_weight())
    if (const json* part = part_of(v, *section))
      if (std::string line = section->headline(*part); !line.empty()) return line;
  return text_of(v, "cause");
}

std::string identity_in(const json& v) {
  const std::string identity = text_of(v, "identity");
  return identity.empty() ? text_of(v, "kernel") + "/" + text_of(v, "cause") : identity;
}

bool is_known(const json& v) {
  const json& known = part(v, "known");
  return known.is_boolean() && known.get<bool>();
}

}  // namespace assay
