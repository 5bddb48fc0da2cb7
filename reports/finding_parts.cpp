#include "reports/finding_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
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

namespace {

/// Neither outside the sources' root nor of the toolkit (kernels/prepare_ptx.h calls its headers cuda/...).
bool is_the_users(const std::string& file) {
  return !file.empty() && !file.starts_with('/') && !file.starts_with("cuda/");
}

/// Of a line that is none of the user's (a toolkit's, or outside the sources' root) the innermost call that
/// is.
json own_place_of(json place) {
  const json& frames = field_or_null(place, "frames");
  if (!frames.is_array() || frames.empty()) return place;
  if (is_the_users(text_of(place, "file"))) return place;
  const auto own = std::find_if(frames.begin(), frames.end(),
                                [](const json& f) { return is_the_users(exact_decimal(f)); });
  const std::string frame = exact_decimal(own == frames.end() ? frames.front() : *own);
  const size_t colon = frame.rfind(':');
  int64_t line = 0;
  if (colon == frame.npos ||
      std::from_chars(frame.data() + colon + 1, frame.data() + frame.size(), line).ec != std::errc())
    return place;
  place["file"] = frame.substr(0, colon);
  place["line"] = line;
  return place;
}

}  // namespace

json place_of(const json& v) {
  const json& entry = field_or_null(v, "entry");
  for (const Section* section : sections_by_weight()) {
    const json* part = section->place ? part_of(v, *section) : nullptr;
    json place = part ? section->place(*part) : json();
    if (!place.is_object()) continue;
    if (!text_of(place, "file").empty() && count_of(place, "line") > 0) return own_place_of(std::move(place));
    // PTX without source lines: the line of the PTX file.
    if (count_of(place, "ptx_line") > 0 && text_of(entry, "file").ends_with(".ptx")) {
      place["file"] = text_of(entry, "file");
      place["line"] = count_of(place, "ptx_line");
      return place;
    }
    if (!text_of(place, "file").empty()) return place;
  }
  return entry.is_object() && !text_of(entry, "file").empty() ? own_place_of(entry) : json();
}

std::string headline_of(const json& v) {
  for (const Section* section : sections_by_weight())
    if (const json* part = section->headline ? part_of(v, *section) : nullptr)
      if (std::string line = section->headline(*part); !line.empty()) return line;
  return text_of(v, "cause");
}

std::string cause_sentence_of(const json& v) {
  const json& diagnosis = field_or_null(v, "diagnosis");
  if (!diagnosis.is_array() || diagnosis.empty()) return "";
  return fmt::format("cause {} ({}): {}", text_of(diagnosis[0], "cause"),
                     percent(field_or_null(diagnosis[0], "score")), text_of(diagnosis[0], "explanation"));
}

std::string identity_in(const json& v) {
  const std::string identity = text_of(v, "identity");
  return identity.empty() ? text_of(v, "kernel") + "/" + text_of(v, "cause") : identity;
}

std::string shortfall_of(const json& run) {
  if (text_of(run, "kind") != "fuzz") return "";
  if (const std::string why = text_of(run, "ended_early"); !why.empty()) return "the run ended early: " + why;
  const json& few = field_or_null(run, "too_few");
  if (few.empty()) return "";
  std::string text;
  for (const json& entry : few)
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", text_of(entry, "kernel"), count_of(entry, "cases"));
  return fmt::format("fewer than {} cases judged of {}", count_of(run, "min_cases"), text);
}

bool is_known(const json& v) {
  const json& known = field_or_null(v, "known");
  return known.is_boolean() && known.get<bool>();
}

}  // namespace assay
