// Every distinct origin of a run, with the number of elements behind it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "reports/console_chain.h"
#include "reports/html_table.h"
#include "reports/markdown_table.h"
#include "reports/markup.h"
#include "reports/section.h"

namespace assay::sections {
namespace {

using nlohmann::json;
using namespace html;
using namespace markdown;

std::string origins_page(const json& origins, const std::string&, int level) {
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

std::string origins_markdown(const json& origins) {
  std::string out = head({"elements", "origin", "where", "example"}, 4);
  for (const json& group : origins) {
    const json& origin = field_of(group, "origin");
    out +=
        row({short_field(group, "elements"), escape_markdown(text_of(origin, "kind")),
             code(location_text(field_of(origin, "where"))), escape_markdown(text_of(origin, "sentence"))});
  }
  return out + "\n";
}

/// One entry per (kind, source line), most elements first.
void print_origins(const Console& console, const Verification& v, size_t) {
  const std::vector<OriginGroup>& groups = v.origins;
  if (groups.empty()) return;
  console.line(
      fmt::format("\n{}", console.styled(Style::bold, fmt::format("{} distinct origin{}", groups.size(),
                                                                  groups.size() == 1 ? "" : "s"))));
  for (const OriginGroup& g : groups) {
    const std::string at = g.origin.where.ptx_line > 0 ? " at " + short_place(g.origin.where) : "";
    console.line(fmt::format("  {:>7}  {}{}  ({})", g.elements,
                             console.styled(Style::bad, name_of(g.origin.kind)), at,
                             fmt::join(g.outputs, ", ")));
    if (!g.origin.source_text.empty()) console.line(fmt::format("           {}", g.origin.source_text));
    console.line(fmt::format("           as {}", g.origin.sentence));
  }
}

}  // namespace

extern const Section origins = {
    .field = "origins",
    .later = true,
    .page = origins_page,
    .markdown = origins_markdown,
    .print = print_origins,
};

}  // namespace assay::sections
