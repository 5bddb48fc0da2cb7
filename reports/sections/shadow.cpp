// A run beside its own exact arithmetic. The console has it in what `trace` prints (cli/print_shadow.h).
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/html_table.h"
#include "reports/markdown_table.h"
#include "reports/markup.h"
#include "reports/section.h"

namespace assay::sections {
namespace {

using nlohmann::json;
using namespace html;
using namespace markdown;

constexpr size_t kLines = 24, kEdges = 24;  // rows shown on a page; the JSON has all

std::string place_head(const json& of) {
  return row_head(escape_markup(location_text(field_of(of, "where"))));
}

std::string shadow_outputs(const json& outputs) {
  std::string rows;
  for (const json& o : outputs) {
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>", escape_markup(text_of(o, "name"))));
    for (const char* name : {"followed", "nonfinite", "rms_error", "rms_exact", "max_error", "bound"})
      rows += number_cell(field_of(o, name));
    rows += mono_cell(text_of(o, "worst")) + "</tr>\n";
  }
  return table("Errors of the stored values",
               {{"output"},
                {"followed", true},
                {"non-finite", true},
                {"rms error", true},
                {"rms value", true},
                {"largest error", true},
                {"bound before cancelling", true},
                {"at"}},
               rows);
}

std::string shadow_lines(const json& lines) {
  if (lines.empty()) return "";
  std::string rows;
  for (size_t i = 0; i < std::min(kLines, lines.size()); ++i) {
    rows += "<tr>" + place_head(lines[i]) + mono_cell(text_of(lines[i], "instruction"));
    for (const char* name : {"share", "roundings", "largest"}) rows += number_cell(field_of(lines[i], name));
    rows += "</tr>\n";
  }
  return table(
      "Which roundings made them",
      {{"line"}, {"instruction"}, {"percent", true}, {"roundings", true}, {"largest, relative", true}}, rows);
}

std::string shadow_amplifiers(const json& shadow) {
  const auto amplifiers = shadow.find("amplifiers");
  if (amplifiers == shadow.end() || amplifiers->empty()) return "";
  std::string rows;
  for (const json& a : *amplifiers) {
    rows += "<tr>" + place_head(a) + mono_cell(text_of(a, "instruction"));
    for (const char* name : {"growth", "error", "value", "exact"}) rows += number_cell(field_of(a, name));
    rows += "</tr>\n";
  }
  return table("Which lines made large errors out of small ones",
               {{"line"},
                {"instruction"},
                {"times", true},
                {"relative error", true},
                {"value", true},
                {"exactly", true}},
               rows);
}

std::string shadow_edges(const json& shadow) {
  const auto edges = shadow.find("edges");
  if (edges == shadow.end() || edges->empty()) return "";
  std::string rows;
  for (size_t i = 0; i < std::min(kEdges, edges->size()); ++i) {
    const json& edge = (*edges)[i];
    rows += "<tr>" + place_head(edge) + mono_cell(text_of(edge, "instruction")) +
            text_cell(text_of(edge, "text")) + number_cell(field_of(edge, "extreme")) +
            number_cell(field_of(edge, "distance")) + "</tr>\n";
  }
  return table("How near each instruction came to where its format ends",
               {{"line"}, {"instruction"}, {""}, {"extreme", true}, {"binades left", true}}, rows);
}

std::string shadow_page(const json& shadow, const std::string&, int level) {
  std::string out = fmt::format("<h{0}>Against its own exact arithmetic</h{0}>\n", level);
  out += fmt::format("<p class=\"muted\">The run with shadows took {} s.</p>\n",
                     number_markup(field_of(shadow, "seconds")));
  out += shadow_outputs(field_of(shadow, "outputs"));
  out += shadow_lines(field_of(shadow, "lines"));
  out += shadow_amplifiers(shadow);
  if (const json& parting = field_of(shadow, "parting"); !parting.is_null())
    out += fmt::format(
        "<p>Value and exact value first part by more than {} at <b>{}</b>: <code>{}</code> gave {}, "
        "exactly {}.</p>\n",
        number_markup(field_of(parting, "threshold")),
        escape_markup(location_text(field_of(parting, "where"))),
        escape_markup(text_of(parting, "instruction")), number_markup(field_of(parting, "value")),
        number_markup(field_of(parting, "exact")));
  return out + shadow_edges(shadow);
}

std::string shadow_markdown(const json& shadow) {
  constexpr size_t kRows = 12;
  std::string out = "Against its own exact arithmetic\n\n" +
                    head({"output", "rms error", "rms value", "largest error", "at"}, 1);
  for (const json& o : field_of(shadow, "outputs"))
    out += row({code(text_of(o, "name")), short_field(o, "rms_error"), short_field(o, "rms_exact"),
                short_field(o, "max_error"), code(text_of(o, "worst"))});
  const json& lines = field_of(shadow, "lines");
  if (!lines.empty()) out += "\n" + head({"percent of the errors", "line", "instruction"}, 0);
  for (size_t i = 0; i < std::min(kRows, lines.size()); ++i)
    out += row({short_field(lines[i], "share"), code(location_text(field_of(lines[i], "where"))),
                code(text_of(lines[i], "instruction"))});
  const auto edges = shadow.find("edges");
  if (edges == shadow.end() || edges->empty()) return out + "\n";
  out += "\n" + head({"binades left", "line", "instruction", ""}, 0);
  for (size_t i = 0; i < std::min(kRows, edges->size()); ++i)
    out += row({short_field((*edges)[i], "distance"), code(location_text(field_of((*edges)[i], "where"))),
                code(text_of((*edges)[i], "instruction")), escape_markdown(text_of((*edges)[i], "text"))});
  return out + "\n";
}

}  // namespace

extern const Section shadow = {
    .field = "shadow",
    .later = true,
    .page = shadow_page,
    .markdown = shadow_markdown,
    .place =
        [](const json& shadow) {
          const json& lines = field_or_null(shadow, "lines");
          return lines.empty() ? json() : field_or_null(lines[0], "where");
        },
};

}  // namespace assay::sections
