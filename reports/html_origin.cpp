// Where a bad value was born, and what explains it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/html_sections.h"
#include "reports/html_table.h"
#include "reports/markup.h"
#include "reports/origin_graph.h"

namespace assay::html {
namespace {

using nlohmann::json;

std::string triple(const json& at) {
  std::string out;
  for (const json& part : at) out += (out.empty() ? "" : ", ") + exact_decimal(part);
  return fmt::format("({})", out);
}

std::string link_item(const json& link) {
  const std::string text = text_of(link, "text");
  return fmt::format("<b>{}</b> <code>{}</code>{}", escape_markup(location_text(field_of(link, "where"))),
                     escape_markup(text_of(link, "instruction")),
                     text.empty() ? "" : fmt::format("<pre>{}</pre>", escape_markup(text)));
}

std::string operands_table(const json& origin) {
  std::string rows;
  for (const json& operand : field_of(origin, "operands")) {
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>", escape_markup(text_of(operand, "name"))));
    rows += text_cell(text_of(operand, "type")) + exact_cells(field_of(operand, "value")) +
            mono_cell(text_of(operand, "bits")) + "</tr>\n";
  }
  rows += "<tr>" + row_head("result") + "<td></td>" + exact_cells(field_of(origin, "result")) +
          "<td></td></tr>\n";
  return table("", {{"operand"}, {"type"}, {"decimal", true}, {"hexadecimal"}, {"bits"}}, rows);
}

std::string inputs_table(const json& origin) {
  const json& inputs = field_of(origin, "inputs");
  if (inputs.empty()) return "";
  std::string rows;
  for (const json& input : inputs) {
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>", escape_markup(text_of(input, "element"))));
    rows += number_cell(field_of(input, "value")) + text_cell(text_of(input, "nearest_finite")) + "</tr>\n";
  }
  return table(origin.value("inputs_truncated", false) ? "Input elements it depends on (there are more)"
                                                       : "Input elements it depends on",
               {{"element"}, {"value", true}, {"nearest value that makes the output finite"}}, rows);
}

}  // namespace

std::string origin_section(const json& origin, int level) {
  std::string out = fmt::format("<h{0}>Where it was born</h{0}>\n<p>Walked back from <code>{1}</code>.</p>\n",
                                level, escape_markup(text_of(origin, "element"))) +
                    origin_graph(origin);
  if (const std::string source = text_of(origin, "source_text"); !source.empty())
    out += fmt::format("<pre>{}</pre>\n", escape_markup(source));
  out += fmt::format(
      "<dl "
      "class=\"facts\"><dt>kind</dt><dd><b>{}</b></dd>\n<dt>where</dt><dd>{}</dd>\n<dt>instruction</"
      "dt><dd><code>{}</code></dd>\n"
      "<dt>block, thread</dt><dd class=\"mono\">{} {}</dd></dl>\n",
      escape_markup(text_of(origin, "kind")), escape_markup(location_text(field_of(origin, "where"))),
      escape_markup(text_of(origin, "instruction")), triple(field_of(origin, "block")),
      triple(field_of(origin, "thread")));
  out += operands_table(origin) + inputs_table(origin);
  if (const auto made = origin.find("infinity_made_at"); made != origin.end() && !made->is_null()) {
    out += "<p>The infinity was made at " + link_item(*made) + "</p>\n";
  }
  if (const json& chain = field_of(origin, "chain"); !chain.empty()) {
    out += fmt::format("<h{0}>From there to the output</h{0}>\n<ol class=\"chain\">\n", level + 1);
    for (const json& link : chain) out += "<li>" + link_item(link) + "</li>\n";
    out += "</ol>\n";
  }
  return out;
}

std::string diagnosis_section(const json& diagnosis, int level) {
  if (diagnosis.empty()) return "";
  std::string out = fmt::format("<h{0}>Diagnosis</h{0}>\n", level);
  for (const json& cause : diagnosis) {
    out += fmt::format(
        "<div class=\"callout note\"><p><b>{}</b> <span class=\"muted\">score {}</span><br>{}</p>\n<ul>\n",
        escape_markup(text_of(cause, "cause")), number_markup(field_of(cause, "score")),
        escape_markup(text_of(cause, "explanation")));
    for (const json& line : field_of(cause, "evidence"))
      out += fmt::format("<li>{}</li>\n", escape_markup(exact_decimal(line)));
    if (const auto against = cause.find("against"); against != cause.end())
      for (const json& line : *against)
        out += fmt::format("<li>against it: {}</li>\n", escape_markup(exact_decimal(line)));
    out += "</ul></div>\n";
  }
  return out;
}

}  // namespace assay::html
