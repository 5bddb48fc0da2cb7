// One verification: what it comes to, what was run, then its sections.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/finding_parts.h"
#include "reports/html_sections.h"
#include "reports/html_table.h"
#include "reports/markup.h"
#include "reports/section.h"
#include "src/result/verdict.h"

namespace assay::html {
namespace {

using nlohmann::json;

/// Every parameter of the case, as it stands in the result.
std::string case_facts(const json& parameters) {
  std::string rows;
  for (const auto& [name, value] : parameters.items()) {
    const bool empty = value.is_null() || ((value.is_array() || value.is_string()) && value.empty());
    if (empty || name == "kernel") continue;
    std::string text;
    if (value.is_array()) {
      for (const json& entry : value) text += (text.empty() ? "" : ", ") + exact_decimal(entry);
    } else {
      text = exact_decimal(value);
    }
    rows += "<tr>" + row_head(escape_markup(name)) + mono_cell(text) + "</tr>\n";
  }
  return "<details><summary>Case parameters</summary>" + table("", {{"parameter"}, {"value"}}, rows) +
         "</details>\n";
}

/// What is wrong, in words; where no section has any, the key.
std::string fact_of(const json& verification) {
  const std::string line = headline_of(verification);
  return line.empty() ? text_of(verification, "cause") : line;
}

/// Is a line of a list that of the place?
bool is_at(const json& line, const json& place) {
  const json& where = field_of(line, "where");
  return text_of(where, "file") == text_of(place, "file") &&
         count_of(where, "line") == count_of(place, "line");
}

/// The verdict in a sentence, the named cause with its advice, the line.
std::string lead(const json& verification) {
  const std::string verdict = text_of(verification, "verdict");
  if (verdict == name_of(Verdict::pass)) {
    const json& outputs = field_of(verification, "outputs");
    const bool some = std::any_of(outputs.begin(), outputs.end(),
                                  [](const json& output) { return count_of(output, "by_formula") > 0; });
    return fmt::format("<p class=\"lead\">Every element lies within the proved bound{}.</p>\n",
                       some ? ", or where none is finite is right by its formula" : "");
  }
  const json& origin = field_of(verification, "origin");
  const std::string sentence = origin.is_null() ? fact_of(verification) : text_of(origin, "sentence");
  std::string out = fmt::format("<div class=\"callout{}\"><p class=\"lead\">{}</p>\n",
                                verdict == name_of(Verdict::finding) ? "" : " note", escape_markup(sentence));
  for (const json& cause : field_of(verification, "diagnosis")) {
    out += fmt::format("<p><b>{}</b>: {}</p>\n", escape_markup(text_of(cause, "cause")),
                       escape_markup(text_of(cause, "explanation")));
    break;  // the likeliest; all stand below
  }
  if (const json place = place_of(verification); !place.is_null()) {
    const int64_t line = count_of(place, "line");
    std::string text = origin.is_null() ? "" : text_of(origin, "source_text");
    const json& lines = field_or_null(verification, "lines");
    if (text.empty() && lines.is_array() && !lines.empty() && is_at(field_of(lines[0], "at"), place))
      text = text_of(lines[0]["at"], "text");
    out += fmt::format("<p><code>{}{}</code></p>\n", escape_markup(text_of(place, "file")),
                       line > 0 ? fmt::format(":{}", line) : "");
    if (!text.empty()) out += fmt::format("<pre><code>{}</code></pre>\n", escape_markup(text));
  }
  for (const json& other : field_or_null(verification, "also"))
    out += fmt::format("<p>The same defect: {} (<code>{}</code>)</p>\n",
                       escape_markup(text_of(other, "sentence")), escape_markup(text_of(other, "replay")));
  return out + "</div>\n";
}

std::string run_facts(const json& verification) {
  std::string out = "<dl class=\"facts\">\n";
  out += fact("kernel", "<code>" + escape_markup(text_of(verification, "kernel")) + "</code>");
  out += fact("backend", escape_markup(text_of(verification, "backend")));
  out += fact("declared arithmetic", escape_markup(text_of(verification, "arithmetic")));
  out += fact("key", escape_markup(text_of(verification, "cause")));
  const int64_t differ = verification.value("bits_differ", int64_t{-1});
  if (differ >= 0) {
    out += fact("GPU against machine",
                differ == 0 ? "<span class=\"good\">the same bits</span>"
                            : fmt::format("<span class=\"bad\">{} elements differ</span>", differ));
  }
  if (count_of(verification, "lane_instructions") > 0)
    out += fact("lane instructions", number_markup(verification["lane_instructions"]));
  for (const auto& [name, label] :
       {std::pair{"seconds_reference", "reference"}, std::pair{"seconds_kernel", "kernel"}}) {
    if (verification.contains(name)) out += fact(label, number_markup(verification[name]) + " s");
  }
  return out + "</dl>\n";
}

}  // namespace

std::string verdict_badge(const std::string& verdict) {
  const char* sign = verdict == name_of(Verdict::pass)      ? "\u2713"
                     : verdict == name_of(Verdict::finding) ? "\u2717"
                                                            : "?";
  return fmt::format("<span class=\"badge {0}\">{1} {0}</span>", escape_markup(verdict), sign);
}

std::string replay_line(const std::string& command) {
  if (command.empty()) return "";
  return fmt::format(
      "<div class=\"replay\"><code>{}</code><button class=\"copy\" type=\"button\" "
      "hidden>copy</button></div>\n",
      escape_markup(command));
}

std::string verification_sections(const json& verification, const std::string& pointer, int level) {
  std::string out =
      lead(verification) + replay_line(text_of(verification, "replay")) + run_facts(verification);
  // A program without an operator has sizes of its own, and no case.
  if (field_or_null(verification, "program").is_null()) out += case_facts(field_of(verification, "case"));
  for (const Section* section : sections_of_page())
    if (const json* part = part_of(verification, *section)) out += section->page(*part, pointer, level);
  return out;
}

}  // namespace assay::html
