#include "reports/markdown_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/markdown_table.h"
#include "reports/markup.h"
#include "reports/svg_chart.h"
#include "reports/sweep_answers.h"
#include "reports/sweep_axes.h"
#include "src/result/sweep_result.h"

namespace assay {
namespace {

using nlohmann::json;

bool belongs(const SweepCell& cell, const SweepPanel& panel) {
  return !cell.samples.empty() && cell.output == panel.output && dtype_of(cell) == panel.dtype &&
         (panel.kernel.empty() || panel.kernel == cell.kernel);
}

std::string error_picture(const Sweep& sweep, const SweepAxes& axes, const SweepPanel& panel) {
  std::vector<SvgSeries> lines;
  for (size_t s = 0; s < axes.series.size(); ++s)
    for (const std::string& kernel : sweep.kernels) {
      const std::string name = kernel + (axes.series[s].empty() ? "" : " " + axes.series[s]);
      // A colour per series and a mark per kernel; a single series needs its colours for the kernels.
      const int number = static_cast<int>(&kernel - sweep.kernels.data());
      const int colour = axes.series.size() > 1 ? static_cast<int>(s) : number;
      SvgSeries error{name, {}, false, colour, number}, bound{name + ", bound", {}, true, colour, number};
      for (const SweepCell& cell : sweep.cells) {
        if (!belongs(cell, panel) || cell.kernel != kernel || axes.series_of(cell) != axes.series[s])
          continue;
        error.points.emplace_back(axes.x_of(cell), cell.over_seeds.max_error);
        bound.points.emplace_back(axes.x_of(cell), cell.over_seeds.max_bound);
      }
      lines.push_back(std::move(error));
      lines.push_back(std::move(bound));
    }
  return svg_lines(fmt::format("{} in {}: largest error and bound", panel.output, panel.dtype), axes.x,
                   "absolute", lines);
}

std::string panel_picture(const Sweep& sweep, const SweepAxes& axes, const SweepPanel& panel) {
  std::vector<SvgCell> cells;
  for (const SweepCell& cell : sweep.cells) {
    if (!belongs(cell, panel)) continue;
    const auto column = std::find(axes.x_values.begin(), axes.x_values.end(), setting(cell, axes.x));
    const auto row = std::find(axes.series.begin(), axes.series.end(), axes.series_of(cell));
    cells.push_back({static_cast<size_t>(column - axes.x_values.begin()),
                     static_cast<size_t>(row - axes.series.begin()), cell.over_seeds.max_ratio,
                     cell.verdict == CellVerdict::finding});
  }
  return svg_map(fmt::format("{} {} in {}: error / bound", panel.kernel, panel.output, panel.dtype),
                 axes.x_values, axes.series, cells);
}

std::string cells_table(const Sweep& sweep, const json& cells) {
  std::string out =
      "| kernel | settings | output | verdict | max error | p99 | max bound | error/bound | ulp | rms error "
      "| bias | worst case |\n"
      "|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|---|\n";
  for (size_t i = 0; i < sweep.cells.size(); ++i) {
    const SweepCell& cell = sweep.cells[i];
    const json& all = field_of(cells[i], "over_seeds");
    out += fmt::format("| {} | {} | {} | {} |", escape_markdown(cell.kernel),
                       escape_markdown(settings_text(cell)), escape_markdown(cell.output),
                       name_of(cell.verdict));
    for (const char* name :
         {"max_error", "p99_error", "max_bound", "max_ratio", "max_ulp", "rms_error", "bias"})
      out += fmt::format(" {} |", cell.samples.empty() ? "-" : short_decimal(field_of(all, name)));
    out += fmt::format(" `{}` |\n", cell.token);
  }
  return out;
}

std::string answer_table(const AnswerTable& answer) {
  if (answer.rows.empty()) return "";
  const auto escaped = [](std::vector<std::string> cells) {
    for (std::string& cell : cells) cell = escape_markdown(cell);
    return cells;
  };
  std::string text = markdown::head(escaped(answer.head), answer.head.size());
  for (const auto& row : answer.rows) text += markdown::row(escaped(row));
  return text + "\n" + escape_markdown(answer.note) + "\n\n";
}

}  // namespace

IllustratedText sweep_markdown(const json& result) {
  const Sweep sweep = sweep_from_json(result);
  const SweepAxes axes = axes_of(sweep);
  IllustratedText text;
  std::string names;
  for (const std::string& kernel : sweep.kernels) names += (names.empty() ? "" : ", ") + kernel;
  text.markdown = fmt::format("# Sweep of {}\n\n{} cells, {} runs each, on {}.\n\n", escape_markdown(names),
                              sweep.cells.size(), sweep.seeds.size(), escape_markdown(sweep.backend));
  for (const Answer& answer : answers(sweep)) {
    text.markdown += fmt::format("## {}\n\n", answer.question) + answer_table(answer.table);
    for (const std::string& sentence : answer.sentences)
      text.markdown += fmt::format("- {}\n", escape_markdown(sentence));
    if (!answer.sentences.empty()) text.markdown += "\n";
  }
  const auto add = [&](const SweepPanel& panel, const char* what, std::string svg) {
    text.add_picture(fmt::format("{}_{}{}_{}", what, panel.kernel.empty() ? "" : panel.kernel + "_",
                                 panel.output, panel.dtype),
                     fmt::format("{} of {} in {}", what, panel.output, panel.dtype), std::move(svg));
  };
  if (axes.logarithmic) {
    text.markdown += "## Error and bound\n\n";
    for (const SweepPanel& panel : panels_of(sweep, false))
      add(panel, "error", error_picture(sweep, axes, panel));
  }
  text.markdown += "## Error over bound\n\n";
  for (const SweepPanel& panel : panels_of(sweep, true))
    add(panel, "ratio", panel_picture(sweep, axes, panel));
  text.markdown += "## All cells\n\n" + cells_table(sweep, field_of(result, "cells"));
  return text;
}

}  // namespace assay
