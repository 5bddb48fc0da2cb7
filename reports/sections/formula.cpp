// The kernel's outputs on real numbers against the reference.
#include <fmt/format.h>

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

std::string formula_page(const json& formula, const std::string&, int level) {
  std::string out = heading(level, "The formula, in exact arithmetic");
  if (const std::string skipped = text_of(formula, "skipped"); !skipped.empty())
    return out + fmt::format("<p>Not judged: {}.</p>\n", escape_markup(skipped));
  std::string rows;
  for (const json& output : field_of(formula, "outputs")) {
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>", escape_markup(text_of(output, "name"))));
    rows += number_cell(field_of(output, "elements")) + number_cell(field_of(output, "judged"));
    rows += number_cell(field_of(output, "violation"), count_of(output, "violation") > 0);
    rows += number_cell(field_of(output, "max_difference")) + number_cell(field_of(output, "max_allowed"));
    const json& worst = field_of(output, "worst");
    rows += mono_cell(text_of(worst, "element"));
    for (const char* name : {"exact", "expected", "allowed"}) rows += number_cell(field_of(worst, name));
    rows += "</tr>\n";
  }
  out += fmt::format("<p>In {} s; {} comparisons would come out otherwise on real numbers.</p>\n",
                     number_markup(field_of(formula, "seconds")), number_markup(field_of(formula, "turned")));
  if (const std::string loss = text_of(formula, "loss"); !loss.empty())
    out += fmt::format("<p>Nothing is judged behind {}.</p>\n", escape_markup(loss));
  return out +
         table(
             "Where nothing rounds, what do the kernel's instructions give? Difference from the reference, "
             "and what constants, radius and shadow explain of it, relative to the output's root mean "
             "square; then the element of the largest share of what is allowed.",
             {{"output"},
              {"elements", true},
              {"judged", true},
              {"violation", true},
              {"difference", true},
              {"allowed", true},
              {"element"},
              {"exact", true},
              {"expected", true},
              {"allowed there", true}},
             rows);
}

std::string formula_markdown(const json& formula) {
  if (const std::string skipped = text_of(formula, "skipped"); !skipped.empty())
    return fmt::format("Formula not judged: {}\n\n", escape_markdown(skipped));
  std::string out =
      "The formula, in exact arithmetic\n\n" +
      head({"output", "judged", "violation", "difference / rms", "allowed / rms", "worst at"}, 1);
  for (const json& o : field_of(formula, "outputs"))
    out += row({code(text_of(o, "name")), short_field(o, "judged"), short_field(o, "violation"),
                short_field(o, "max_difference"), short_field(o, "max_allowed"),
                code(text_of(field_of(o, "worst"), "element"))});
  return out + "\n";
}

void print_formula(const Console& console, const Verification& v, size_t) {
  if (v.outputs.empty() || !v.formula) return;
  if (!v.formula->skipped.empty())
    return console.line(
        console.styled(Style::dim, fmt::format("formula not judged: {}", v.formula->skipped)));
  std::vector<std::vector<std::string>> rows{
      {"formula", "judged", "violation", "difference/rms", "allowed/rms"}};
  for (const FormulaOutput& o : v.formula->outputs)
    rows.push_back({o.name, fmt::format("{} of {}", o.judged, o.elements), std::to_string(o.violation),
                    fmt::format("{:.2g}", o.max_difference), fmt::format("{:.2g}", o.max_allowed)});
  console.table(rows, 2);
  if (const int64_t unjudged = v.formula->unjudged(); unjudged > 0 && !v.formula->loss.empty())
    console.line(fmt::format("  of {} elements the formula is not judged: no shadow follows {}", unjudged,
                             v.formula->loss));
  for (const OutputComparison& o : v.outputs)
    if (const std::string text = unbounded_text(o.name, o.by_formula, o.elements); !text.empty())
      console.line("  " + text);
  const FormulaOutput* worst = nullptr;
  for (const FormulaOutput& o : v.formula->outputs)
    if (o.violation > 0 &&
        (!worst || o.worst.difference / o.worst.allowed > worst->worst.difference / worst->worst.allowed))
      worst = &o;
  if (!worst) return;
  console.line(
      fmt::format("  in exact arithmetic {} is {:.12g} where the formula gives {:.12g}: {:.3g} apart, "
                  "where {:.3g} can be explained",
                  worst->worst.element, worst->worst.exact, worst->worst.expected, worst->worst.difference,
                  worst->worst.allowed));
}

std::string formula_line(const json& output) {
  if (count_of(output, "violation") == 0) return "";
  const json& worst = field_of(output, "worst");
  return fmt::format(
      "{} of {} elements of {} are wrong in exact arithmetic too: {} is {}, the formula gives {}, {} apart "
      "where {} can be explained",
      count_of(output, "violation"), count_of(output, "judged"), text_of(output, "name"),
      text_of(worst, "element"), short_field(worst, "exact"), short_field(worst, "expected"),
      short_field(worst, "difference"), short_field(worst, "allowed"));
}

}  // namespace

extern const Section formula = {
    .field = "formula",
    .later = true,
    .page = formula_page,
    .markdown = formula_markdown,
    .print = print_formula,
    .plain =
        [](const json& formula) {
          std::string out;
          for (const json& output : field_of(formula, "outputs"))
            if (const std::string line = formula_line(output); !line.empty()) out += line + "\n";
          return out;
        },
    .headline = [](const json& formula) -> std::string {
      for (const json& output : field_of(formula, "outputs"))
        if (std::string line = formula_line(output); !line.empty()) return line;
      return "";
    },
};

}  // namespace assay::sections
