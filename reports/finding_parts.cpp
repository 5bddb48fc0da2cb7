#include "reports/finding_parts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/markup.h"
#include "reports/section.h"
#include "src/result/finding_kind.h"

namespace assay {
namespace {

using nlohmann::json;

/// "property/causality" -> "causality", "violation/o" -> "violation".
std::string fault_of(const json& v) {
  std::string cause = text_of(v, "cause");
  if (cause.starts_with("property/")) cause = cause.substr(cause.find('/') + 1);
  cause = cause.substr(0, cause.find('/'));
  return cause.empty() ? text_of(v, "verdict") : cause;
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

Rule rule_of(const json& v) {
  for (const Section* section : sections_by_weight())
    if (const json* part = section->rule ? part_of(v, *section) : nullptr)
      if (std::optional<Rule> rule = section->rule(*part)) return *rule;
  const std::string fault = fault_of(v);
  for (const FindingKindRow& row : finding_kinds())
    if (row.cause_word == fault) return {fault, std::string(row.text)};
  return {fault, fmt::format("{} does not hold", fault)};
}

json place_of(const json& v) {
  const json& entry = field_or_null(v, "entry");
  for (const Section* section : sections_by_weight()) {
    const json* part = section->place ? part_of(v, *section) : nullptr;
    json place = part ? section->place(*part) : json();
    if (!place.is_object()) continue;
    if (!text_of(place, "file").empty()) return place;
    // PTX without source lines: the line of the PTX file.
    if (count_of(place, "ptx_line") > 0 && text_of(entry, "file").ends_with(".ptx")) {
      place["file"] = text_of(entry, "file");
      place["line"] = count_of(place, "ptx_line");
      return place;
    }
  }
  return entry.is_object() && !text_of(entry, "file").empty() ? entry : json();
}

std::string headline_of(const json& v) {
  for (const Section* section : sections_by_weight())
    if (const json* part = section->headline ? part_of(v, *section) : nullptr)
      if (std::string line = section->headline(*part); !line.empty()) return line;
  return text_of(v, "cause");
}

std::string identity_in(const json& v) {
  const std::string identity = text_of(v, "identity");
  return identity.empty() ? text_of(v, "kernel") + "/" + text_of(v, "cause") : identity;
}

bool is_known(const json& v) {
  const json& known = field_or_null(v, "known");
  return known.is_boolean() && known.get<bool>();
}

}  // namespace assay
