// What a state is off by that these log decays decay.
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

std::string accumulated_page(const json& sums, const std::string&, int) {
  std::string out;
  for (const json& sum : sums) {
    const auto number = [&](const char* name) { return number_markup(field_of(sum, name)); };
    out += fmt::format(
        "<p>Accumulated log decay over the {} steps to <code>{}</code>: {} nats, off by {} (bound {}).</p>\n",
        number("steps"), escape_markup(text_of(sum, "element")), number("decay"), number("error"),
        number("bound"));
  }
  return out;
}

std::string accumulated_markdown(const json& sums) {
  std::string out;
  for (const json& sum : sums)
    out += fmt::format("Accumulated log decay over the {} steps to {}: {} nats, off by {} (bound {}).\n\n",
                       short_field(sum, "steps"), code(text_of(sum, "element")), short_field(sum, "decay"),
                       short_field(sum, "error"), short_field(sum, "bound"));
  return out;
}

void print_accumulated_decay(const Console& console, const Verification& v, size_t) {
  for (const AccumulatedDecay& sum : v.accumulated_decay)
    console.line(
        fmt::format("accumulated log decay: {:.6g} nats over the {} steps to {}, off by {:.3g} (bound "
                    "{:.3g}): a state is off by a factor "
                    "of {:.4g}",
                    sum.decay, sum.steps, sum.element, sum.error, sum.bound, std::exp(sum.error)));
}

}  // namespace

extern const Section accumulated_decay = {
    .field = "accumulated_decay",
    .later = true,
    .page = accumulated_page,
    .markdown = accumulated_markdown,
    .print = print_accumulated_decay,
};

}  // namespace assay::sections
