// Of a finding whose explanation had no time, or not enough: that a cause may be had.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/markup.h"
#include "reports/section.h"

namespace assay::sections {

extern const Section unexplained = {
    .field = "unexplained",
    .later = true,
    .page = [](const nlohmann::json& why, const std::string&,
               int) { return fmt::format("<p>Not explained: {}.</p>\n", escape_markup(exact_decimal(why))); },
    .markdown =
        [](const nlohmann::json& why) {
          return fmt::format("Not explained: {}.\n\n", escape_markdown(exact_decimal(why)));
        },
    .print =
        [](const Console& console, const Verification& v, size_t) {
          if (v.unexplained) console.prose(fmt::format("not explained: {}", *v.unexplained));
        },
    .plain = [](const nlohmann::json& why) { return fmt::format("not explained: {}\n", exact_decimal(why)); },
};

}  // namespace assay::sections
