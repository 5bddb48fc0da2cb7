#include "reports/finding_parts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/markup.h"
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

std::string output_headline(const json& output, const char* of, int64_t faults) {
  const json& worst = field_of(output, "worst");
  return fmt::format("{} of {} elements of {}{}: {} is {}, expected {}, error {} times its bound", faults,
                     count_of(output, "elements"), text_of(output, "name"), of, text_of(worst, "element"),
                     short_decimal(field_of(worst, "got")), short_decimal(field_of(worst, "expected")),
                     short_decimal(field_of(worst, "ratio")));
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
    if (name_of(row.kind) == fault_of(v)) return std::string(row.text);
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
  if (const json& origin = field_of(v, "origin"); !origin.is_null()) return text_of(origin, "sentence");
  if (const json& trap = field_of(v, "trap"); !trap.is_null())
    return fmt::format("{}: {}", text_of(trap, "kind"), text_of(trap, "message"));
  if (const json& found = check_findings(v); !found.empty()) return text_of(found[0], "message");
  if (const json& failed = field_of(v, "properties_failed"); !failed.empty()) return exact_decimal(failed[0]);
  for (const json& output : field_of(v, "outputs"))
    if (const int64_t faults =
            count_of(output, "violation") + count_of(output, "wrong_class") + count_of(output, "undecided"))
      return output_headline(output, "", faults);
  for (const json& output : part(v, "expected_outputs"))
    if (const int64_t faults =
            count_of(output, "violation") + count_of(output, "wrong_class") + count_of(output, "nonfinite"))
      return output_headline(output, " in the inputs' file", faults);
  if (const json& domain = field_of(v, "domain"); !domain.empty())
    return "outside the domain: " + exact_decimal(domain[0]);
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
