#include "reports/html_table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/markup.h"

namespace assay::html {

std::string heading(int level, std::string_view text) {
  return fmt::format("<h{0}>{1}</h{0}>\n", level, text);
}

std::string fact(std::string_view name, const std::string& markup) {
  return markup.empty() ? "" : fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, markup);
}

std::string list_section(const nlohmann::json& lines, int level, std::string_view title) {
  if (lines.empty()) return "";
  std::string out = heading(level, title) + "<ul>\n";
  for (const nlohmann::json& line : lines)
    out += fmt::format("<li class=\"mono\">{}</li>\n", escape_markup(exact_decimal(line)));
  return out + "</ul>\n";
}

std::string table(const std::string& caption, const std::vector<Column>& columns, const std::string& rows) {
  std::string out = "<div class=\"scroll\">";
  out += caption.empty() ? "" : fmt::format("<p class=\"caption\">{}</p>", caption);
  out += "<table>\n<thead><tr>";
  for (const Column& column : columns) {
    out += fmt::format("<th scope=\"col\"{}>{}</th>", column.number ? " class=\"number\"" : "", column.name);
  }
  return out + "</tr></thead>\n<tbody>\n" + rows + "</tbody></table></div>\n";
}

std::string row_head(const std::string& markup) {
  return fmt::format("<th scope=\"row\">{}</th>", markup);
}

std::string text_cell(std::string_view text) {
  return fmt::format("<td>{}</td>", escape_markup(text));
}

std::string mono_cell(std::string_view text) {
  return fmt::format("<td class=\"mono\">{}</td>", escape_markup(text));
}

std::string number_cell(const nlohmann::json& value, bool bad) {
  return fmt::format("<td class=\"number{}\">{}</td>", bad ? " bad" : "", number_markup(value));
}

std::string exact_cells(const nlohmann::json& value) {
  const std::string decimal = escape_markup(exact_decimal(value));
  return fmt::format("<td class=\"number\"><data value=\"{0}\">{0}</data></td>{1}", decimal,
                     mono_cell(hex_float(value)));
}

}  // namespace assay::html
