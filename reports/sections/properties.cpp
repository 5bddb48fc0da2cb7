// Properties that fail, one sentence each: "same-bits-twice: o[...] differs".
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/html_table.h"
#include "reports/markup.h"
#include "reports/section.h"

namespace assay::sections {

using nlohmann::json;

extern const Section properties = {
    .field = "properties_failed",
    .page = [](const json& lines, const std::string&,
               int level) { return html::list_section(lines, level, "Properties that fail"); },
    .markdown =
        [](const json& lines) {
          std::string out;
          for (const json& line : lines) out += fmt::format("- {}\n", escape_markdown(exact_decimal(line)));
          return out;
        },
    .print =
        [](const Console& console, const Verification& v, size_t) {
          for (const std::string& failure : v.properties_failed) console.line(fmt::format("  {}", failure));
        },
    .plain =
        [](const json& lines) {
          std::string out;
          for (const json& line : lines) out += fmt::format("{}\n", exact_decimal(line));
          return out;
        },
    .headline = [](const json& lines) { return exact_decimal(lines[0]); },
};

}  // namespace assay::sections
