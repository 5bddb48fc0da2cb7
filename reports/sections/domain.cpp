// Inputs outside the operator's domain: "g[b=0,t=3,h=0,k=1] = 0.5: above 0". Then nothing is run; or, where
// inputs make states grow, what no bound follows is not judged.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/html_table.h"
#include "reports/markup.h"
#include "reports/section.h"

namespace assay::sections {

using nlohmann::json;

extern const Section domain = {
    .field = "domain",
    .page =
        [](const json& lines, const std::string&, int level) {
          return html::list_section(lines, level, "Inputs outside the domain: no fault of the kernel");
        },
    .markdown =
        [](const json& lines) {
          std::string out;
          for (const json& line : lines)
            out += fmt::format("- outside the domain: {}\n", escape_markdown(exact_decimal(line)));
          return out;
        },
    .plain =
        [](const json& lines) {
          std::string out;
          for (const json& line : lines) out += fmt::format("outside the domain: {}\n", exact_decimal(line));
          return out;
        },
    .headline = [](const json& lines) { return "outside the domain: " + exact_decimal(lines[0]); },
};

}  // namespace assay::sections
