// The sections of a sweep: answers first, then the charts that carry them, then every number.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/html_sections.h"
#include "reports/html_table.h"
#include "reports/markup.h"
#include "reports/sweep_answers.h"
#include "reports/sweep_axes.h"
#include "src/result/sweep_result.h"

namespace assay::html {
namespace {

using nlohmann::json;

std::string sweep_tiles(const Sweep& sweep) {
  std::string out = "<dl class=\"tiles\">\n";
  const auto tile = [&](std::string_view name, const json& number, bool bad) {
    out += fmt::format("<div><dt>{}</dt><dd{}>{}</dd></div>\n", name, bad ? " class=\"bad\"" : "",
                       number_markup(number));
  };
  const auto of_verdict = [&](CellVerdict verdict) {
    return std::count_if(sweep.cells.begin(), sweep.cells.end(),
                         [&](const SweepCell& c) { return c.verdict == verdict; });
  };
  tile("cells", sweep.cells.size(), false);
  tile("runs of each", sweep.seeds.size(), false);
  tile("findings", of_verdict(CellVerdict::finding), of_verdict(CellVerdict::finding) > 0);
  tile("undecided", of_verdict(CellVerdict::undecided), of_verdict(CellVerdict::undecided) > 0);
  tile("refused", of_verdict(CellVerdict::refused), false);
  tile("seconds", sweep.seconds, false);
  return out + "</dl>\n";
}

std::string answer_table(const AnswerTable& answer) {
  if (answer.rows.empty()) return "";
  std::vector<std::string> names;
  for (const std::string& name : answer.head) names.push_back(escape_markup(name));
  std::vector<Column> columns;
  for (const std::string& name : names) columns.push_back({name});
  std::string rows;
  for (const auto& row : answer.rows) {
    rows += "<tr>" + row_head(escape_markup(row.front()));
    for (size_t i = 1; i < row.size(); ++i) rows += text_cell(row[i]);
    rows += "</tr>\n";
  }
  return table(escape_markup(answer.note), columns, rows);
}

std::string answers_section(const Sweep& sweep) {
  std::string out;
  for (const Answer& answer : answers(sweep)) {
    out += "<h3>" + escape_markup(answer.question) + "</h3>\n" + answer_table(answer.table);
    if (answer.sentences.empty()) continue;
    out += "<ul class=\"answers\">\n";
    for (const std::string& sentence : answer.sentences) out += "<li>" + escape_markup(sentence) + "</li>\n";
    out += "</ul>\n";
  }
  return out;
}

/// A chart with its caption; `label` for those who do not see it.
std::string figure(std::string_view chart, const SweepPanel& panel, const std::string& caption,
                   const std::string& label) {
  return fmt::format(
      "<figure data-chart=\"{}\" data-at=\"/cells\" data-kernel=\"{}\" data-output=\"{}\" "
      "data-dtype=\"{}\"><figcaption>{}"
      "</figcaption><div class=\"canvas\" role=\"img\" tabindex=\"0\" aria-label=\"{}\"></div></figure>\n",
      chart, escape_markup(panel.kernel), escape_markup(panel.output), escape_markup(panel.dtype), caption,
      escape_markup(label));
}

std::string error_charts(const Sweep& sweep, const SweepAxes& axes) {
  std::string out = fmt::format(
      "<p>Largest absolute error over an output against {}, one line per series with the range over {} "
      "seeds, a colour for each, a mark for each kernel; dotted: the largest "
      "proved bound. Turn the wheel or press + and - to zoom, drag to move, double-click or press 0 to go "
      "back.</p>\n",
      escape_markup(axes.x), sweep.seeds.size());
  for (const SweepPanel& panel : panels_of(sweep, false)) {
    const std::string what =
        fmt::format("<b><code>{}</code></b> in {}", escape_markup(panel.output), escape_markup(panel.dtype));
    out += figure("sweep_error", panel, what,
                  fmt::format("error and bound of {} in {} against {}: see the table below", panel.output,
                              panel.dtype, axes.x));
  }
  return out;
}

std::string heat_maps(const Sweep& sweep, const SweepAxes& axes) {
  std::string out = fmt::format(
      "<p>Largest error over bound, {} against {}. Above 1 the kernel is wrong; far below, the bound is "
      "loose there.</p>\n",
      escape_markup(axes.series_name()), escape_markup(axes.x));
  for (const SweepPanel& panel : panels_of(sweep, true)) {
    const std::string what =
        fmt::format("<b><code>{}</code></b>: <code>{}</code> in {}", escape_markup(panel.kernel),
                    escape_markup(panel.output), escape_markup(panel.dtype));
    out += figure("sweep_heat", panel, what,
                  fmt::format("heat map of error over bound of {} {} in {}: see the table below",
                              panel.kernel, panel.output, panel.dtype));
  }
  return out;
}

std::string worst_section(const json& worst) {
  std::string out;
  for (size_t i = 0; i < worst.size(); ++i)
    out +=
        fmt::format("<details id=\"worst-{0}\"><summary><code>{1}</code> {2} {3}</summary>\n{4}</details>\n",
                    i + 1, escape_markup(text_of(worst[i], "kernel")),
                    verdict_badge(text_of(worst[i], "verdict")), escape_markup(text_of(worst[i], "token")),
                    verification_sections(worst[i], fmt::format("/worst/{}", i), 3));
  return out;
}

std::string cells_table(const Sweep& sweep, const json& cells) {
  std::string rows;
  for (size_t i = 0; i < sweep.cells.size(); ++i) {
    const json& cell = cells[i];
    const json& all = field_of(cell, "over_seeds");
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>", escape_markup(text_of(cell, "kernel")))) +
            text_cell(settings_text(sweep.cells[i])) + text_cell(text_of(cell, "output")) +
            text_cell(text_of(cell, "verdict"));
    for (const char* name : {"max_error", "p99_error", "max_bound", "max_ratio", "p99_ratio", "max_ulp",
                             "rms_error", "rms_exact", "bias"})
      rows += number_cell(sweep.cells[i].samples.empty() ? json() : field_of(all, name),
                          std::string_view(name) == "max_ratio" && sweep.cells[i].over_seeds.max_ratio > 1);
    rows += number_cell(field_of(cell, "undecided")) + mono_cell(text_of(cell, "token")) + "</tr>\n";
  }
  return table("",
               {{"kernel"},
                {"settings"},
                {"output"},
                {"verdict"},
                {"max error", true},
                {"p99", true},
                {"max bound", true},
                {"error/bound", true},
                {"p99", true},
                {"ulp", true},
                {"rms error", true},
                {"rms", true},
                {"bias", true},
                {"undecided", true},
                {"worst case"}},
               rows);
}

}  // namespace

json sweep_chart_data(const json& result) {
  const Sweep sweep = sweep_from_json(result);
  const SweepAxes axes = axes_of(sweep);
  json cells = json::array();
  for (size_t i = 0; i < sweep.cells.size(); ++i) {
    const SweepCell& cell = sweep.cells[i];
    if (cell.samples.empty()) continue;
    // Numbers are the document's own, so that the page and the document cannot part.
    const json& source = field_of(result, "cells")[i];
    json errors = json::array();
    for (const json& sample : field_of(source, "samples")) errors.push_back(field_of(sample, "max_error"));
    const json& all = field_of(source, "over_seeds");
    cells.push_back({{"kernel", cell.kernel},
                     {"output", cell.output},
                     {"dtype", dtype_of(cell)},
                     {"series", axes.series_of(cell)},
                     {"x", axes.x_of(cell)},
                     {"errors", std::move(errors)},
                     {"error", field_of(all, "max_error")},
                     {"bound", field_of(all, "max_bound")},
                     {"ratio", field_of(all, "max_ratio")},
                     {"verdict", cell.verdict},
                     {"token", cell.token}});
  }
  return {{"x", axes.x},
          {"logarithmic", axes.logarithmic},
          {"names", axes.x_values},
          {"series", axes.series},
          {"cells", std::move(cells)}};
}

std::string sweep_sections(const json& result) {
  const Sweep sweep = sweep_from_json(result);
  const SweepAxes axes = axes_of(sweep);
  std::string over;
  for (const SweepDimension& d : sweep.dimensions)
    over += fmt::format("{}{} ({} values)", over.empty() ? "" : ", ", d.option, d.values.size());
  std::string out = sweep_tiles(sweep);
  out += fmt::format(
      "<dl class=\"facts\"><dt>over</dt><dd>{}</dd><dt>base</dt><dd "
      "class=\"mono\">{}</dd><dt>backend</dt><dd>{}</dd></dl>\n",
      escape_markup(over), escape_markup(sweep.base), escape_markup(sweep.backend));
  out +=
      "<nav aria-label=\"Sections\"><a href=\"#answers\">Answers</a><a href=\"#error\">Error and bound</a><a "
      "href=\"#ratio\">Error "
      "over bound</a><a href=\"#worst\">Worst runs</a><a href=\"#cells\">All cells</a></nav>\n";
  out += "<h2 id=\"answers\">What was learnt</h2>\n" + answers_section(sweep);
  out += "<h2 id=\"error\">Error and bound</h2>\n" + error_charts(sweep, axes);
  out += "<h2 id=\"ratio\">Error over bound</h2>\n" + heat_maps(sweep, axes);
  out +=
      "<h2 id=\"worst\">Worst runs</h2>\n<p>Of each kernel and format the cell nearest to its bound, in "
      "full: where the error "
      "lies along each axis, which source lines make it, how near every instruction came to its format's "
      "end.</p>\n" +
      worst_section(field_of(result, "worst"));
  out += fmt::format("<h2 id=\"cells\">All cells</h2>\n<details><summary>All {} cells as a table</summary>",
                     sweep.cells.size()) +
         cells_table(sweep, field_of(result, "cells")) + "</details>\n";
  return out;
}

}  // namespace assay::html
