// What ran where no operator is claimed, and what it wrote.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "reports/html_table.h"
#include "reports/markdown_table.h"
#include "reports/markup.h"
#include "reports/section.h"

namespace assay::sections {
namespace {

using nlohmann::json;

std::string range_text(const json& tensor) {
  return fmt::format("{} to {}", short_decimal(field_of(tensor, "smallest")),
                     short_decimal(field_of(tensor, "largest")));
}

std::string program_page(const json& program, const std::string&, int level) {
  std::string rows;
  for (const json& tensor : field_of(program, "written"))
    rows += "<tr>" + html::row_head(escape_markup(text_of(tensor, "name"))) +
            html::mono_cell(text_of(tensor, "shape")) + html::text_cell(range_text(tensor)) +
            html::number_cell(field_of(tensor, "nans"), count_of(tensor, "nans") > 0) +
            html::number_cell(field_of(tensor, "infinities"), count_of(tensor, "infinities") > 0) + "</tr>\n";
  return html::list_section(field_of(program, "launches"), level, "What ran") +
         html::table("What it wrote",
                     {{"tensor"}, {"shape"}, {"finite values"}, {"NaN", true}, {"infinite", true}}, rows);
}

std::string program_markdown(const json& program) {
  std::string out = markdown::head({"tensor", "shape", "finite values", "NaN", "infinite"}, 2);
  for (const json& tensor : field_of(program, "written"))
    out += markdown::row({markdown::code(text_of(tensor, "name")), markdown::code(text_of(tensor, "shape")),
                          escape_markdown(range_text(tensor)), markdown::short_field(tensor, "nans"),
                          markdown::short_field(tensor, "infinities")});
  return out + "\n";
}

void print_program(const Console& console, const Verification& v, size_t) {
  if (!v.program || v.program->written.empty()) return;
  console.line("");
  std::vector<std::vector<std::string>> rows{{"written", "shape", "smallest", "largest", "NaN", "infinite"}};
  for (const WrittenTensor& t : v.program->written)
    rows.push_back({t.name, t.shape, fmt::format("{:.6g}", t.smallest), fmt::format("{:.6g}", t.largest),
                    std::to_string(t.nans), std::to_string(t.infinities)});
  console.table(rows, 2);
  for (const WrittenTensor& t : v.program->written)
    if (t.nans + t.infinities > t.born)
      console.line(
          fmt::format("  {} of the values of {} that are not finite come from inputs, literals or "
                      "memory that nothing wrote",
                      t.nans + t.infinities - t.born, t.name));
}

}  // namespace

extern const Section program = {
    .field = "program",
    .later = true,
    .page = program_page,
    .markdown = program_markdown,
    .print = print_program,
};

}  // namespace assay::sections
