// Where a bad value was born, and what explains it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/html_sections.h"
#include "reports/markup.h"

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
  const auto row = [&](const std::string& name, const std::string& type, const json& value,
                       const std::string& bits) {
    rows += fmt::format(
        "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td><td class=\"number\"><data "
        "value=\"{}\">{}</data></td><td class=\"mono\">{}</td><td class=\"mono\">{}</td></tr>\n",
        escape_markup(name), escape_markup(type), escape_markup(exact_decimal(value)),
        escape_markup(exact_decimal(value)), escape_markup(hex_float(value)), escape_markup(bits));
  };
  for (const json& operand : field_of(origin, "operands")) {
    row(text_of(operand, "name"), text_of(operand, "type"), field_of(operand, "value"),
        text_of(operand, "bits"));
  }
  row("result", "", field_of(origin, "result"), "");
  return "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">operand</th><th "
         "scope=\"col\">type</th><th scope=\"col\" class=\"number\">decimal</th>"
         "<th scope=\"col\">hexadecimal</th><th scope=\"col\">bits</th></tr></thead><tbody>" +
         rows + "</tbody></table></div>\n";
}

std::string inputs_table(const json& origin) {
  const json& inputs = field_of(origin, "inputs");
  if (inputs.empty()) return "";
  std::string rows;
  for (const json& input : inputs) {
    rows += fmt::format(
        "<tr><th scope=\"row\"><code>{}</code></th><td class=\"number\">{}</td><td "
        "class=\"number\">{}</td></tr>\n",
        escape_markup(text_of(input, "element")), number_markup(field_of(input, "value")),
        escape_markup(text_of(input, "nearest_finite")));
  }
  const bool truncated = origin.value("inputs_truncated", false);
  return fmt::format(
      "<div class=\"scroll\"><table><caption>Input elements it depends on{}</caption><thead><tr><th "
      "scope=\"col\">element</th><th scope=\"col\" class=\"number\">value</th>"
      "<th scope=\"col\" class=\"number\">nearest value that makes the output "
      "finite</th></tr></thead><tbody>{}</tbody></table></div>\n",
      truncated ? " (there are more)" : "", rows);
}

}  // namespace

std::string origin_section(const json& origin, int level) {
  std::string out = fmt::format(
      "<h{0}>Where it was born</h{0}>\n<p>{1} <span class=\"muted\">Walked back from "
      "<code>{2}</code>.</span></p>\n",
      level, escape_markup(text_of(origin, "sentence")), escape_markup(text_of(origin, "element")));
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
    out += "</ul></div>\n";
  }
  return out;
}

}  // namespace assay::html
