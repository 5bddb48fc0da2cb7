// Source lines that may have made finite values wrong or left memory unwritten, the likeliest first.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/html_table.h"
#include "reports/markup.h"
#include "reports/section.h"
#include "src/base/program/source_place.h"

namespace assay::sections {
namespace {

using nlohmann::json;

const json& link_of(const json& line) {
  return field_of(line, "at");
}

std::string suspect_lines_page(const json& lines, const std::string&, int level) {
  std::string rows;
  for (const json& line : lines) {
    const json& at = link_of(line);
    rows += "<tr>" + html::row_head(escape_markup(location_text(field_of(at, "where")))) +
            html::mono_cell(text_of(at, "instruction")) + html::mono_cell(text_of(at, "text")) +
            html::text_cell(text_of(line, "reason")) + "</tr>\n";
  }
  return fmt::format("<h{0}>Lines that may be wrong</h{0}>\n", level) +
         html::table("The likeliest first", {{"line"}, {"instruction"}, {"source"}, {"why"}}, rows);
}

std::string suspect_lines_markdown(const json& lines) {
  std::string out = "Lines that may be wrong, the likeliest first:\n\n";
  for (const json& line : lines)
    out += fmt::format("1. {}: {}\n", escape_markdown(location_text(field_of(link_of(line), "where"))),
                       escape_markdown(text_of(line, "reason")));
  return out + "\n";
}

void print_suspect_lines(const Console& console, const Verification& v, size_t) {
  if (v.lines.empty()) return;
  console.line("");
  console.line("lines that may be wrong, the likeliest first");
  for (const SuspectLine& line : v.lines) {
    console.line(
        fmt::format("  {}: {}", console.styled(Style::bold, source_place(line.at.where)), line.reason));
    if (!line.at.text.empty()) console.line("    " + line.at.text);
  }
}

}  // namespace

extern const Section suspect_lines = {
    .field = "lines",
    .later = true,
    .page = suspect_lines_page,
    .markdown = suspect_lines_markdown,
    .print = print_suspect_lines,
    .plain =
        [](const json& lines) {
          std::string out;
          for (const json& line : lines)
            out += fmt::format("at {}: {}\n", location_text(field_of(link_of(line), "where")),
                               text_of(line, "reason"));
          return out;
        },
    .place = [](const json& lines) { return field_of(link_of(lines[0]), "where"); },
};

}  // namespace assay::sections
