// Whether the declared roundings explain the errors: a statistical verdict.
#include <fmt/format.h>

#include <cmath>
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

/// Of the kernel's outputs, then of the file's.
template <typename Visit>
void for_each_rounding(const json& rounding, const Visit& visit) {
  for (const char* of : {"outputs", "expected"})
    for (const json& output : field_of(rounding, of)) visit(output, std::string_view(of) == "expected");
}

std::string rounding_page(const json& rounding, const std::string&, int level) {
  std::string rows;
  for_each_rounding(rounding, [&](const json& output, bool of_file) {
    const std::string name = escape_markup(text_of(output, "name"));
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>{}", name, of_file ? " in the file" : ""));
    if (const std::string skipped = text_of(output, "skipped"); !skipped.empty()) {
      rows += fmt::format("<td colspan=\"15\">not judged: {}</td></tr>\n", escape_markup(skipped));
      return;
    }
    const json& worst = field_of(output, "worst");
    rows += number_cell(field_of(output, "parts")) +
            number_cell(field_of(output, "unlikely"), count_of(output, "unlikely") > 0);
    rows += number_cell(field_of(field_of(output, "all"), "error")) +
            number_cell(field_of(field_of(output, "all"), "predicted"));
    rows += mono_cell(text_of(worst, "where"));
    for (const char* name : {"elements", "ratio", "allowed_ratio", "slope", "allowed_slope", "bias",
                             "allowed_bias", "carried", "allowed_carried", "excess"})
      rows += number_cell(field_of(worst, name));
    rows += "</tr>\n";
  });
  return heading(level, "The declared roundings against the errors: statistical") +
         fmt::format("<p>In {} s; at most {} false alarms in a run, under the model.</p>\n",
                     number_markup(field_of(rounding, "seconds")),
                     number_markup(field_of(rounding, "false_alarms"))) +
         table(
             "Root mean square of the errors, and of those that the declared roundings make likely, relative "
             "to the "
             "exact values; then the part that is nearest to what is allowed, or furthest beyond it: how "
             "many times "
             "the predicted error it has, and the slope of its values on the exact ones.",
             {{"output"},
              {"parts", true},
              {"unlikely", true},
              {"error", true},
              {"predicted", true},
              {"part"},
              {"elements", true},
              {"times", true},
              {"allowed", true},
              {"slope", true},
              {"from 1, at most", true},
              {"bias", true},
              {"at most", true},
              {"carried", true},
              {"allowed", true},
              {"of what is allowed", true}},
             rows);
}

std::string rounding_markdown(const json& rounding) {
  std::string out =
      "The declared roundings against the errors, a statistical verdict\n\n" +
      head({"output", "parts", "unlikely", "error", "predicted", "part", "times", "allowed", "slope"}, 1);
  for_each_rounding(rounding, [&](const json& o, bool of_file) {
    const std::string name = code(text_of(o, "name")) + (of_file ? " in the file" : "");
    if (const std::string skipped = text_of(o, "skipped"); !skipped.empty()) {
      out += row({name, "", "", "", "", escape_markdown("not judged: " + skipped), "", "", ""});
      return;
    }
    const json &worst = field_of(o, "worst"), &all = field_of(o, "all");
    out +=
        row({name, short_field(o, "parts"), short_field(o, "unlikely"), short_field(all, "error"),
             short_field(all, "predicted"), escape_markdown(text_of(worst, "where")),
             short_field(worst, "ratio"), short_field(worst, "allowed_ratio"), short_field(worst, "slope")});
  });
  return out + "\n";
}

void print_rounding(const Console& console, const Verification& v, size_t) {
  if (v.outputs.empty() || !v.rounding) return;
  std::vector<std::vector<std::string>> rows{
      {"roundings", "unlikely", "error/rms", "predicted", "times", "allowed", "slope - 1", "allowed"}};
  std::string skipped;
  for (const auto* outputs : {&v.rounding->outputs, &v.rounding->expected})
    for (const RoundingOutput& o : *outputs) {
      const std::string name = o.name + (outputs == &v.rounding->expected ? " in the file" : "");
      if (!o.skipped.empty()) {
        skipped += fmt::format("{}{}: {}", skipped.empty() ? "" : "; ", name, o.skipped);
        continue;
      }
      rows.push_back({name, fmt::format("{} of {}", o.unlikely, o.parts), fmt::format("{:.2g}", o.all.error),
                      fmt::format("{:.2g}", o.all.predicted), fmt::format("{:.3g}", o.all.ratio),
                      fmt::format("{:.3g}", o.all.allowed_ratio), fmt::format("{:.1e}", o.all.slope - 1),
                      fmt::format("{:.1e}", o.all.allowed_slope)});
    }
  if (rows.size() > 1) console.table(rows, 2);
  if (!skipped.empty())
    console.line(console.styled(Style::dim, fmt::format("roundings not judged: {}", skipped)));
}

std::string rounding_lines(const json& rounding, bool first_only) {
  std::string out;
  for_each_rounding(rounding, [&](const json& output, bool of_file) {
    if (count_of(output, "unlikely") == 0 || (first_only && !out.empty())) return;
    const json& worst = field_of(output, "worst");
    out += fmt::format(
        "{}{} has {} times the error that the declared roundings explain (slope {}), where {} times may be",
        text_of(worst, "where"), of_file ? " in the file" : "", short_field(worst, "ratio"),
        short_field(worst, "slope"), short_field(worst, "allowed_ratio"));
    if (!first_only) out += "\n";
  });
  return out;
}

}  // namespace

extern const Section rounding = {
    .field = "rounding",
    .later = true,
    .page = rounding_page,
    .markdown = rounding_markdown,
    .print = print_rounding,
    .plain = [](const json& rounding) { return rounding_lines(rounding, false); },
    .headline = [](const json& rounding) { return rounding_lines(rounding, true); },
};

}  // namespace assay::sections
