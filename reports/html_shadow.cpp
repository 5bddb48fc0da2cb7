// A run beside its own exact arithmetic, what stands behind one element, and all origins.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/html_sections.h"
#include "reports/html_table.h"
#include "reports/markup.h"

namespace assay::html {
namespace {

using nlohmann::json;

constexpr size_t kLines = 24, kEdges = 24;  // rows shown; the JSON has all

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

std::string step_item(const json& step) {
  std::string values;
  for (const json& o : field_of(step, "operands"))
    values += (values.empty() ? "" : ", ") + number_markup(field_of(o, "value"));
  if (!values.empty()) values += " \u2192 " + number_markup(field_of(step, "result"));
  const json& at = field_of(step, "at");
  const std::string text = text_of(at, "text");
  const int64_t times = count_of(step, "times");
  return fmt::format(
      "<li><b>{}</b> <code>{}</code> {}{}{}</li>\n", escape_markup(location_text(field_of(at, "where"))),
      escape_markup(text_of(at, "instruction")), values, times > 1 ? fmt::format(" \u00d7 {}", times) : "",
      text.empty() ? "" : fmt::format("<pre>{}</pre>", escape_markup(text)));
}

}  // namespace

std::string shadow_section(const json& shadow, int level) {
  std::string out = fmt::format("<h{0}>Against its own exact arithmetic</h{0}>\n", level);
  out += fmt::format("<p class=\"muted\">The run with shadows took {} s.</p>\n",
                     number_markup(field_of(shadow, "seconds")));
  out += shadow_outputs(field_of(shadow, "outputs"));
  out += shadow_lines(field_of(shadow, "lines"));
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

std::string slice_section(const json& slice, int level) {
  std::string out =
      fmt::format("<h{0}>Behind <code>{1}</code></h{0}>\n", level, escape_markup(text_of(slice, "element")));
  out +=
      fmt::format("<p>{}{} instruction instances on {} source lines; {} of {} blocks were run again.</p>\n",
                  slice.value("truncated", false) ? "More than " : "", grouped(field_of(slice, "instances")),
                  field_of(slice, "lines").size(), grouped(field_of(slice, "blocks")),
                  grouped(field_of(slice, "blocks_of")));
  std::string rows;
  for (const json& in : field_of(slice, "inputs")) {
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>", escape_markup(text_of(in, "input"))));
    rows += number_cell(field_of(in, "elements"));
    for (const char* name : {"first", "last", "largest"}) rows += mono_cell(text_of(in, name));
    rows += number_cell(field_of(in, "value")) + "</tr>\n";
  }
  out += table("Inputs it depends on",
               {{"input"}, {"elements", true}, {"first"}, {"last"}, {"largest"}, {"value", true}}, rows);
  out += "<p>The operands that decide its size, from the input to the output:</p>\n<ol class=\"chain\">\n";
  for (const json& step : field_of(slice, "chain")) out += step_item(step);
  return out + "</ol>\n";
}

std::string origins_section(const json& origins, int level) {
  std::string rows;
  for (const json& group : origins) {
    const json& origin = field_of(group, "origin");
    std::string outputs;
    for (const json& o : field_of(group, "outputs"))
      outputs += (outputs.empty() ? "" : ", ") + exact_decimal(o);
    rows += "<tr>" + row_head(escape_markup(text_of(origin, "kind"))) +
            text_cell(location_text(field_of(origin, "where"))) + number_cell(field_of(group, "elements")) +
            text_cell(outputs) + text_cell(text_of(origin, "sentence")) + "</tr>\n";
  }
  return fmt::format("<h{0}>Every distinct origin</h{0}>\n", level) +
         table("", {{"kind"}, {"where"}, {"elements", true}, {"outputs"}, {"example"}}, rows);
}

}  // namespace assay::html
