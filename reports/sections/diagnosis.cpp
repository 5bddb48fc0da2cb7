// What explains a finding: named causes, the likeliest first.
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

std::string diagnosis_page(const json& diagnosis, const std::string&, int level) {
  std::string out = fmt::format("<h{0}>Diagnosis</h{0}>\n", level);
  for (const json& cause : diagnosis) {
    out += fmt::format(
        "<div class=\"callout note\"><p><b>{}</b> <span class=\"muted\">{}</span><br>{}</p>\n<ul>\n",
        escape_markup(text_of(cause, "cause")),
        fmt::format("<data value=\"{}\">{}</data>", exact_decimal(field_of(cause, "score")),
                    percent(field_of(cause, "score"))),
        escape_markup(text_of(cause, "explanation")));
    for (const json& line : field_of(cause, "evidence"))
      out += fmt::format("<li>{}</li>\n", escape_markup(exact_decimal(line)));
    if (const auto against = cause.find("against"); against != cause.end())
      for (const json& line : *against)
        out += fmt::format("<li>against it: {}</li>\n", escape_markup(exact_decimal(line)));
    out += "</ul></div>\n";
  }
  return out;
}

std::string diagnosis_markdown(const json& diagnosis) {
  std::string out;
  for (const json& cause : diagnosis) {
    out += fmt::format("**{}** ({}): {}\n\n", escape_markdown(text_of(cause, "cause")),
                       percent(field_of(cause, "score")), escape_markdown(text_of(cause, "explanation")));
    for (const json& line : field_of(cause, "evidence"))
      out += fmt::format("- {}\n", escape_markdown(exact_decimal(line)));
    if (const auto against = cause.find("against"); against != cause.end())
      for (const json& line : *against)
        out += fmt::format("- against it: {}\n", escape_markdown(exact_decimal(line)));
    out += "\n";
  }
  return out;
}

void print_diagnosis(const Console& console, const Verification& v, size_t) {
  if (!v.diagnosis.empty()) console.line("");
  for (const Diagnosis& d : v.diagnosis) {
    console.prose(fmt::format("{} {} ({:.0f} %): {}", console.styled(Style::bold, "cause"), d.cause,
                              100 * d.score, d.explanation));
    for (const std::string& evidence : d.evidence) console.prose(fmt::format("  - {}", evidence));
    for (const std::string& against : d.against) console.prose(fmt::format("  - against it: {}", against));
  }
}

}  // namespace

extern const Section diagnosis = {
    .field = "diagnosis",
    .page = diagnosis_page,
    .markdown = diagnosis_markdown,
    .print = print_diagnosis,
    .rule = [](const json& diagnosis) -> std::optional<Rule> {
      return Rule{text_of(diagnosis[0], "cause"), text_of(diagnosis[0], "explanation")};
    },
};

}  // namespace assay::sections
