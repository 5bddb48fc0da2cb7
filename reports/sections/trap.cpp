// How a run ended that did not complete.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "reports/console_chain.h"
#include "reports/html_table.h"
#include "reports/markdown_table.h"
#include "reports/markup.h"
#include "reports/section.h"
#include "src/base/program/source_place.h"

namespace assay::sections {
namespace {

using nlohmann::json;
using namespace html;
using namespace markdown;

std::string trap_page(const json& trap, const std::string&, int level) {
  const auto triple = [](const json& at) {
    return at.is_array() && at.size() == 3
               ? fmt::format("({}, {}, {})", exact_decimal(at[0]), exact_decimal(at[1]), exact_decimal(at[2]))
               : exact_decimal(at);
  };
  return heading(level, "Trap: the run did not complete") +
         fmt::format(
             "<div class=\"callout\"><p class=\"lead\"><b>{}</b>: {}</p>\n<dl "
             "class=\"facts\">{}{}{}</dl></div>\n",
             escape_markup(text_of(trap, "kind")), escape_markup(text_of(trap, "message")),
             fact("where", escape_markup(location_text(field_of(trap, "where")))),
             fact("block", triple(field_of(trap, "block"))),
             fact("thread", triple(field_of(trap, "thread"))));
}

}  // namespace

extern const Section trap = {
    .field = "trap",
    .page = trap_page,
    .markdown =
        [](const json& trap) {
          return fmt::format("**Trap** {}: {} at {}\n\n", escape_markdown(text_of(trap, "kind")),
                             escape_markdown(text_of(trap, "message")),
                             code(location_text(field_of(trap, "where"))));
        },
    .print =
        [](const Console& console, const Verification& v, size_t) {
          if (!v.trap) return;
          console.line(fmt::format("  at {}, block ({}), thread ({})", place_with_ptx_line(v.trap->where),
                                   fmt::join(v.trap->block, ","), fmt::join(v.trap->thread, ",")));
          print_frames(console, v.trap->where);
        },
    .plain =
        [](const json& trap) {
          return fmt::format("trap {}: {} at {}\n", text_of(trap, "kind"), text_of(trap, "message"),
                             location_text(field_of(trap, "where")));
        },
    .headline =
        [](const json& trap) {
          return fmt::format("{}: {}", text_of(trap, "kind"), text_of(trap, "message"));
        },
    .rule = [](const json& trap) -> std::optional<Rule> {
      return Rule{text_of(trap, "kind"), "the run ended by a trap: " + text_of(trap, "kind")};
    },
    .place = [](const json& trap) { return field_or_null(trap, "where"); },
};

}  // namespace assay::sections
