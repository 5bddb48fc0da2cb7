#include "reports/markdown_trend.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "reports/markdown_table.h"
#include "reports/markup.h"
#include "reports/svg_chart.h"
#include "reports/trend_change.h"

namespace assay {
namespace {

using nlohmann::json;
using namespace markdown;

std::set<std::string> kernels_in(const json& runs) {
  std::set<std::string> kernels;
  for (const json& run : runs)
    for (const json& ratio : field_of(run, "ratios")) kernels.insert(text_of(ratio, "kernel"));
  return kernels;
}

/// The kernel's largest error over bound in each run, a line for each format. What is no finite number is in
/// the table only.
std::string ratio_picture(const json& runs, const std::string& kernel) {
  std::map<std::string, SvgSeries> lines;
  std::vector<std::string> names;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string commit = text_of(runs[i], "commit");
    names.push_back(commit.empty() ? fmt::format("run {}", i + 1) : commit);
    for (const json& ratio : field_of(runs[i], "ratios")) {
      if (text_of(ratio, "kernel") != kernel) continue;
      SvgSeries& line = lines[text_of(ratio, "dtype")];
      const json& value = field_of(ratio, "max_ratio");
      if (value.is_number()) line.points.emplace_back(static_cast<double>(i + 1), value.get<double>());
    }
  }
  std::vector<SvgSeries> series;
  for (auto& [dtype, line] : lines) {
    line.name = dtype, line.colour = static_cast<int>(series.size());
    series.push_back(std::move(line));
  }
  series.push_back({"bound", {{1, 1}, {static_cast<double>(runs.size()), 1}}, true, 7});
  return svg_lines(fmt::format("{}: largest error / bound of each run", kernel), "run", "error / bound",
                   series, names);
}

std::string findings_table(const json& findings, const json& runs) {
  if (findings.empty()) return "No run had a finding.\n\n";
  std::string out = head({"kernel", "finding", "first seen", "last seen", "replay", "runs"}, 5);
  for (const json& finding : findings) {
    const json& seen = field_of(finding, "runs");
    out += row({code(text_of(finding, "kernel")), escape_markdown(text_of(finding, "identity")),
                escape_markdown(trend_run_text(runs, seen.front().get<size_t>())),
                escape_markdown(trend_run_text(runs, seen.back().get<size_t>())),
                code(text_of(finding, "replay")), std::to_string(seen.size())});
  }
  return out + "\n";
}

std::string runs_table(const json& runs) {
  std::string out =
      head({"run", "began (UTC)", "largest error / bound", "cases", "passed", "findings", "undecided"}, 3);
  for (size_t i = 0; i < runs.size(); ++i) {
    std::string ratios;
    for (const json& ratio : field_of(runs[i], "ratios"))
      ratios +=
          fmt::format("{}{} {} {}", ratios.empty() ? "" : "; ", escape_markdown(text_of(ratio, "kernel")),
                      escape_markdown(text_of(ratio, "dtype")), short_decimal(field_of(ratio, "max_ratio")));
    std::vector<std::string> cells = {escape_markdown(trend_run_text(runs, i)),
                                      escape_markdown(text_of(runs[i], "started")), ratios};
    for (const char* name : {"cases", "passed", "findings", "undecided"})
      cells.push_back(short_decimal(field_of(runs[i], name)));
    out += row(cells);
  }
  return out;
}

}  // namespace

IllustratedText trend_markdown(const json& trend) {
  const json& runs = field_of(trend, "runs");
  IllustratedText text;
  text.markdown = fmt::format("# Trend of {} runs\n\n", runs.size());
  if (const std::string change = trend_change(trend); !change.empty())
    text.markdown += escape_markdown(change) + "\n\n";
  text.markdown += "## Error over bound, before the output is rounded\n\n";
  for (const std::string& kernel : kernels_in(runs))
    text.add_picture("trend_" + kernel, fmt::format("largest error / bound of {} by run", kernel),
                     ratio_picture(runs, kernel));
  text.markdown += "## Findings\n\n" + findings_table(field_of(trend, "findings"), runs) + "## All runs\n\n" +
                   runs_table(runs);
  return text;
}

}  // namespace assay
