// The sections of a trend: charts by kernel, findings by the runs that had them, all runs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "reports/html_sections.h"
#include "reports/html_table.h"
#include "reports/markup.h"
#include "reports/trend_change.h"

namespace assay::html {
namespace {

using nlohmann::json;

std::string charts(const json& runs) {
  std::set<std::string> kernels;
  for (const json& run : runs)
    for (const json& ratio : field_of(run, "ratios")) kernels.insert(text_of(ratio, "kernel"));
  std::string out;
  for (const std::string& kernel : kernels)
    out += fmt::format(
        "<figure data-chart=\"trend\" data-at=\"/runs\" "
        "data-kernel=\"{0}\"><figcaption><b><code>{0}</code></b>: "
        "largest error / bound of each run, by format</figcaption><div class=\"canvas\" role=\"img\" "
        "aria-label=\"error over bound by run: see the table of runs\"></div></figure>\n",
        escape_markup(kernel));
  return out;
}

std::string findings_table(const json& findings, const json& runs) {
  if (findings.empty()) return "<p>No run had a finding.</p>\n";
  std::string rows;
  for (const json& finding : findings) {
    const json& seen = field_of(finding, "runs");
    const size_t first = seen.front().get<size_t>(), last = seen.back().get<size_t>();
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>", escape_markup(text_of(finding, "kernel")))) +
            text_cell(text_of(finding, "identity")) + text_cell(trend_run_text(runs, first)) +
            text_cell(trend_run_text(runs, last)) + number_cell(seen.size()) +
            mono_cell(text_of(finding, "replay")) + "</tr>\n";
  }
  return table("", {{"kernel"}, {"finding"}, {"first seen"}, {"last seen"}, {"runs", true}, {"replay"}},
               rows);
}

std::string runs_table(const json& runs) {
  std::string rows;
  for (size_t i = 0; i < runs.size(); ++i) {
    std::string ratios;
    for (const json& ratio : field_of(runs[i], "ratios"))
      ratios +=
          fmt::format("{}{} {} {}", ratios.empty() ? "" : "; ", escape_markup(text_of(ratio, "kernel")),
                      escape_markup(text_of(ratio, "dtype")), number_markup(field_of(ratio, "max_ratio")));
    rows +=
        "<tr>" + row_head(escape_markup(trend_run_text(runs, i))) + mono_cell(text_of(runs[i], "started"));
    for (const char* name : {"cases", "passed", "findings", "undecided"})
      rows += number_cell(field_of(runs[i], name), std::string_view(name) == "findings" && runs[i][name] > 0);
    rows += "<td>" + ratios + "</td></tr>\n";
  }
  return table("",
               {{"run"},
                {"began (UTC)"},
                {"cases", true},
                {"passed", true},
                {"findings", true},
                {"undecided", true},
                {"largest error / bound"}},
               rows);
}

}  // namespace

std::string trend_sections(const json& trend) {
  const json& runs = field_of(trend, "runs");
  std::string out;
  if (const std::string change = trend_change(trend); !change.empty())
    out = fmt::format("<div class=\"callout{}\"><p class=\"lead\">{}</p></div>\n",
                      count_of(runs.back(), "findings") > 0 ? "" : " note", escape_markup(change));
  return out + "<h2 id=\"ratio\">Error over bound, before the output is rounded</h2>\n" + charts(runs) +
         "<h2 id=\"findings\">Findings</h2>\n" + findings_table(field_of(trend, "findings"), runs) +
         "<h2 id=\"runs\">All runs</h2>\n" + runs_table(runs);
}

}  // namespace assay::html
