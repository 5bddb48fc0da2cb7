#include "reports/annotations.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/finding_parts.h"
#include "reports/markup.h"
#include "src/result/verdict.h"

namespace assay {
namespace {

using nlohmann::json;

/// In a command's text three characters have a meaning, in a property's value two more.
std::string escaped(const std::string& text, bool property) {
  std::string out;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    out += special ? fmt::format("%{:02X}", static_cast<uint8_t>(c)) : std::string(1, c);
  }
  return out;
}

}  // namespace

std::string render_github_annotations(const json& result) {
  std::string out;
  for (const json* v : findings_in(result)) {
    const char* level = is_known(*v)                                          ? "notice"
                        : text_of(*v, "verdict") == name_of(Verdict::finding) ? "error"
                                                                              : "warning";
    std::string place;
    if (const json at = place_of(*v); !at.is_null()) {
      place = "file=" + escaped(text_of(at, "file"), true);
      if (const int64_t line = count_of(at, "line"); line > 0) place += fmt::format(",line={}", line);
      place += ",";
    }
    const std::string title =
        fmt::format("{}: {}{}", text_of(*v, "kernel"), rule_of(*v).name, is_known(*v) ? " (known)" : "");
    const std::string cause = cause_sentence_of(*v);
    out += fmt::format("::{} {}title={}::{}\n", level, place, escaped(title, true),
                       escaped(fmt::format("{}\n{}{}{}", headline_of(*v), cause, cause.empty() ? "" : "\n",
                                           text_of(*v, "replay")),
                               false));
  }
  if (const std::string shortfall = shortfall_of(result); !shortfall.empty())
    out += fmt::format("::error title=assay::{}\n", escaped(shortfall, false));
  return out;
}

}  // namespace assay
