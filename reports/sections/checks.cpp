// What the checks on the machine found, and which of them ran.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "reports/console_chain.h"
#include "reports/html_table.h"
#include "reports/markup.h"
#include "reports/section.h"
#include "src/base/program/source_place.h"

namespace assay::sections {

using nlohmann::json;

namespace {

/// "race: .. - no finding: .." of what a check met that is none.
json dismissed_lines(const json& report) {
  json lines = json::array();
  for (const json& dismissed : field_or_null(report, "dismissed"))
    lines.push_back(fmt::format("{}: {} - no finding: {}", text_of(dismissed, "kind"),
                                text_of(dismissed, "message"), text_of(dismissed, "reason")));
  return lines;
}

}  // namespace

extern const Section checks = {
    .field = "checks",
    .later = true,
    .page =
        [](const json& report, const std::string&, int level) {
          json lines = json::array();
          for (const json& finding : field_of(report, "findings"))
            lines.push_back(text_of(finding, "kind") + ": " + text_of(finding, "message"));
          return html::list_section(lines, level, "What the checks on the machine found") +
                 html::list_section(dismissed_lines(report), level, "What they met, and is no finding");
        },
    .markdown =
        [](const json& report) {
          std::string out;
          for (const json& finding : field_of(report, "findings"))
            out += fmt::format("- **{}** {}\n", escape_markdown(text_of(finding, "kind")),
                               escape_markdown(text_of(finding, "message")));
          for (const json& line : dismissed_lines(report))
            out += fmt::format("- {}\n", escape_markdown(exact_decimal(line)));
          return out;
        },
    .print =
        [](const Console& console, const Verification& v, size_t) {
          if (!v.checks) return;
          for (const CheckFinding& finding : v.checks->findings) {
            console.line(fmt::format("  {}: {}{}", console.styled(Style::bad, name_of(finding.kind)),
                                     finding.message,
                                     finding.count > 1 && finding.at.access != "not written"
                                         ? fmt::format(" ({} instances)", finding.count)
                                         : ""));
            for (const RacingPair& pair : finding.also)
              console.line(fmt::format("    nor between: {}{}", pair.message,
                                       pair.count > 1 ? fmt::format(" ({} instances)", pair.count) : ""));
            print_calls(console, finding.at.where);
            if (finding.other && finding.other->where.frames != finding.at.where.frames)
              print_calls(console, finding.other->where);
          }
        },
    .note =
        [](const Console& console, const Verification& v) {
          if (!v.checks) return;
          std::string text = v.checks->ran.empty()
                                 ? "not checked"
                                 : fmt::format("checked: {}", fmt::join(names_of(v.checks->ran), ", "));
          if (!v.checks->skipped.empty())
            text += fmt::format(" for races and unwritten values: {}", v.checks->skipped);
          if (v.checks->seconds > 0) text += fmt::format(", in {:.3f} s", v.checks->seconds);
          console.line(console.styled(Style::dim, text));
          for (const DismissedFinding& d : v.checks->dismissed)
            console.line(console.styled(
                Style::dim, fmt::format("no finding: {}, {} time{} {}: {}", name_of(d.met.kind), d.met.count,
                                        d.met.count == 1 ? "" : "s",
                                        is_nowhere(d.met.at.where) ? "in " + d.met.element
                                                                   : "at " + short_place(d.met.at.where),
                                        d.reason)));
        },
    .plain =
        [](const json& report) {
          std::string out;
          for (const json& finding : field_of(report, "findings"))
            out += fmt::format("{}: {}\n", text_of(finding, "kind"), text_of(finding, "message"));
          return out;
        },
    .headline =
        [](const json& report) {
          const json& findings = field_of(report, "findings");
          return findings.empty() ? "" : text_of(findings[0], "message");
        },
    .rule = [](const json& report) -> std::optional<Rule> {
      const json& findings = field_of(report, "findings");
      if (findings.empty()) return std::nullopt;
      const std::string kind = text_of(findings[0], "kind");
      return Rule{kind, fmt::format("the check {} found: {}", text_of(findings[0], "check"), kind)};
    },
    .place =
        [](const json& report) {
          const json& findings = field_of(report, "findings");
          return findings.empty() ? json() : field_or_null(field_or_null(findings[0], "at"), "where");
        },
};

}  // namespace assay::sections
