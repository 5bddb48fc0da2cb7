// Which arguments exponentials saw: above 0 a decay grows.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/html_table.h"
#include "reports/markup.h"
#include "reports/section.h"

namespace assay::sections {
namespace {

using nlohmann::json;
using namespace html;

std::string exponents_page(const json& exponents, const std::string&, int level) {
  std::string rows;
  for (const json& range : exponents) {
    rows += "<tr>" + row_head(escape_markup(location_text(field_of(range, "where")))) +
            mono_cell(text_of(range, "instruction"));
    for (const char* name : {"min", "max", "count", "nans"}) rows += number_cell(field_of(range, name));
    rows += "</tr>\n";
  }
  return heading(level, "Arguments of exponentials") + table("",
                                                             {{"where"},
                                                              {"instruction"},
                                                              {"smallest", true},
                                                              {"largest", true},
                                                              {"count", true},
                                                              {"NaN", true}},
                                                             rows);
}

void print_exponents(const Console& console, const Verification& v) {
  if (v.exponents.empty()) return;
  double least = v.exponents[0].min, largest = v.exponents[0].max;
  for (const ExponentRange& e : v.exponents)
    least = std::min(least, e.min), largest = std::max(largest, e.max);
  console.line(
      console.styled(Style::dim, fmt::format("exponentials at {} places saw arguments from {:.6g} to {:.6g}",
                                             v.exponents.size(), least, largest)));
}

}  // namespace

extern const Section exponents = {
    .field = "exponents",
    .page = exponents_page,
    .note = print_exponents,
};

}  // namespace assay::sections
