// Special values by the source line that made them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "reports/html_table.h"
#include "reports/markdown_table.h"
#include "reports/markup.h"
#include "reports/section.h"
#include "src/base/program/source_place.h"

namespace assay::sections {
namespace {

using nlohmann::json;

constexpr size_t kShown = 12;

std::string births_page(const json& births, const std::string&, int level) {
  std::string rows;
  for (const json& line : births)
    rows += "<tr>" + html::row_head(escape_markup(location_text(field_of(line, "where")))) +
            html::mono_cell(text_of(line, "instruction")) + html::number_cell(field_of(line, "nans")) +
            html::number_cell(field_of(line, "infinities")) +
            html::number_cell(field_of(line, "divisions_by_zero")) +
            html::number_cell(field_of(line, "subnormals")) + html::mono_cell(text_of(line, "example")) +
            "</tr>\n";
  return fmt::format("<h{0}>Special values by the line that made them</h{0}>\n", level) +
         html::table("From operands that were nothing of the kind",
                     {{"line"},
                      {"instruction"},
                      {"NaN", true},
                      {"infinite", true},
                      {"by zero", true},
                      {"subnormal", true},
                      {"as in"}},
                     rows);
}

std::string births_markdown(const json& births) {
  std::string out =
      "Special values by the line that made them:\n\n" +
      markdown::head({"line", "instruction", "NaN", "infinite", "by zero", "subnormal", "as in"}, 2);
  for (const json& line : births)
    out += markdown::row(
        {escape_markdown(location_text(field_of(line, "where"))),
         markdown::code(text_of(line, "instruction")), markdown::short_field(line, "nans"),
         markdown::short_field(line, "infinities"), markdown::short_field(line, "divisions_by_zero"),
         markdown::short_field(line, "subnormals"), markdown::code(text_of(line, "example"))});
  return out + "\n";
}

void print_births(const Console& console, const Verification& v, size_t) {
  if (v.births.empty()) return;
  console.line("");
  std::vector<std::vector<std::string>> rows{
      {"born at", "instruction", "NaN", "infinite", "by zero", "subnormal", "as in"}};
  for (size_t i = 0; i < std::min(kShown, v.births.size()); ++i) {
    const LineBirths& b = v.births[i];
    rows.push_back({source_place(b.where), b.instruction, std::to_string(b.nans),
                    std::to_string(b.infinities), std::to_string(b.divisions_by_zero),
                    std::to_string(b.subnormals), b.example});
  }
  console.table(rows, 2);
  if (v.births.size() > kShown) console.line(fmt::format("  and {} further lines", v.births.size() - kShown));
}

}  // namespace

extern const Section births = {
    .field = "births",
    .later = true,
    .page = births_page,
    .markdown = births_markdown,
    .print = print_births,
};

}  // namespace assay::sections
