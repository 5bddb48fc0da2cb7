// Where two engines ran: whose fault it is.
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

std::string triage_page(const json& triage, const std::string&, int level) {
  return list_section(field_of(triage, "evidence"), level, "At fault: " + text_of(triage, "fault")) +
         fmt::format("<p>{}</p>\n", escape_markup(text_of(triage, "explanation")));
}

std::string triage_markdown(const json& triage) {
  std::string out = fmt::format("**At fault: {}**. {}\n\n", escape_markdown(text_of(triage, "fault")),
                                escape_markdown(text_of(triage, "explanation")));
  for (const json& line : field_of(triage, "evidence"))
    out += fmt::format("- {}\n", escape_markdown(exact_decimal(line)));
  return out + "\n";
}

void print_triage(const Console& console, const Verification& v, size_t) {
  if (!v.triage || v.triage->fault == Fault::none) return;
  console.line(fmt::format("\n{} {}: {}", console.styled(Style::bold, "at fault"), name_of(v.triage->fault),
                           v.triage->explanation));
  for (const std::string& line : v.triage->evidence) console.line(fmt::format("  - {}", line));
}

}  // namespace

extern const Section triage = {
    .field = "triage",
    .later = true,
    .page = triage_page,
    .markdown = triage_markdown,
    .print = print_triage,
};

}  // namespace assay::sections
