// What the verdicts would have seen.
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

template <typename Visit>
void for_each_power(const json& power, const Visit& visit) {
  for (const char* of : {"outputs", "expected"})
    for (const json& output : field_of(power, of))
      visit(output, text_of(output, "name") + (std::string_view(of) == "expected" ? " in the file" : ""));
}

/// What would have passed in its place.
std::string would_pass(bool zeros, bool flipped, bool inconclusive) {
  if (flipped) return "zeros, a flipped sign";
  if (zeros) return "zeros";
  return inconclusive ? "zeros in the last quarter" : "";
}
std::string would_pass(const json& o) {
  const auto is = [&](const char* name) { return field_of(o, name).get<bool>(); };
  return would_pass(is("zeros"), is("flipped"), is("inconclusive"));
}

std::string power_page(const json& power, const std::string&, int level) {
  std::string rows;
  for_each_power(power, [&](const json& o, const std::string& name) {
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>", escape_markup(name)));
    rows += number_cell(field_of(o, "error")) + number_cell(field_of(o, "smallest"));
    rows += mono_cell(text_of(o, "by")) + number_cell(field_of(o, "smallest_late")) +
            mono_cell(text_of(o, "by_late"));
    rows += mono_cell(would_pass(o)) + "</tr>\n";
  });
  return heading(level, "What would have been seen") +
         table(
             "The smallest uniform relative error of an output that some verdict would have seen, and of its "
             "last "
             "quarter of tokens only; what would have passed in its place.",
             {{"output"},
              {"error", true},
              {"smallest", true},
              {"by"},
              {"in the last quarter", true},
              {"by"},
              {"would pass"}},
             rows);
}

std::string power_markdown(const json& power) {
  std::string out = "The smallest uniform relative error that would have been seen\n\n" +
                    head({"output", "error", "smallest", "by", "in the last quarter", "by", "would pass"}, 1);
  for_each_power(power, [&](const json& o, const std::string& name) {
    out += row({code(name), short_field(o, "error"), short_field(o, "smallest"),
                escape_markdown(text_of(o, "by")), short_field(o, "smallest_late"),
                escape_markdown(text_of(o, "by_late")), would_pass(o)});
  });
  return out + "\n";
}

void print_power(const Console& console, const Verification& v, size_t) {
  if (v.outputs.empty() || !v.power) return;
  std::vector<std::vector<std::string>> rows{
      {"would be seen", "error/rms", "from", "by", "last quarter", "by", "would pass"}};
  const auto size = [](double error) {
    return std::isfinite(error) ? fmt::format("{:.2g}", error) : std::string("nothing");
  };
  for (const auto* outputs : {&v.power->outputs, &v.power->expected})
    for (const PowerOutput& o : *outputs)
      rows.push_back({o.name + (outputs == &v.power->expected ? " in the file" : ""),
                      fmt::format("{:.2g}", o.error), size(o.smallest), o.by, size(o.smallest_late),
                      o.by_late, would_pass(o.zeros, o.flipped, o.inconclusive)});
  console.table(rows, 2);
  if (!v.power->inconclusive()) return;
  std::string advice;
  if (!v.formula || !v.formula->skipped.empty())
    advice += " --formula always judges the formula of this case;";
  if (!v.rounding) advice += " --rounding always its roundings;";
  console.line(fmt::format(
      "what is inconclusive here is decided by a case of the same kind that is shorter, with stronger "
      "decays or in fp32;{} bounds grow with the sequence and with the roundings of the format",
      advice));
}

}  // namespace

extern const Section power = {
    .field = "power",
    .later = true,
    .page = power_page,
    .markdown = power_markdown,
    .print = print_power,
};

}  // namespace assay::sections
