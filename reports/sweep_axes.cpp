#include "reports/sweep_axes.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "src/case/case.h"

namespace assay {
namespace {

bool is_positive_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0;
}

bool all_numbers(const SweepDimension& d) {
  return std::all_of(d.values.begin(), d.values.end(), is_positive_number);
}

}  // namespace

std::string SweepAxes::series_of(const SweepCell& cell) const {
  std::string text;
  for (const std::string& option : options) text += (text.empty() ? "" : ", ") + setting(cell, option);
  return text;
}

std::string SweepAxes::series_name() const {
  std::string text;
  for (const std::string& option : options) text += (text.empty() ? "" : ", ") + option;
  return text.empty() ? "the kernel" : text;
}

double SweepAxes::x_of(const SweepCell& cell) const {
  const std::string value = setting(cell, x);
  if (logarithmic) return std::stod(value);
  return static_cast<double>(std::find(x_values.begin(), x_values.end(), value) - x_values.begin());
}

SweepAxes axes_of(const Sweep& sweep) {
  SweepAxes axes;
  const SweepDimension* chosen = &sweep.dimensions.front();
  for (const SweepDimension& d : sweep.dimensions) {
    const auto rank = [](const SweepDimension& x) {
      return std::tuple(x.option == "length" && x.values.size() > 1, all_numbers(x), x.option != "dtype",
                        x.values.size());
    };
    if (rank(d) > rank(*chosen)) chosen = &d;
  }
  axes.x = chosen->option;
  axes.x_values = chosen->values;
  axes.logarithmic = all_numbers(*chosen);
  for (const SweepDimension& d : sweep.dimensions)
    if (&d != chosen && d.option != "dtype") axes.options.push_back(d.option);
  for (const SweepCell& cell : sweep.cells) {
    const std::string series = axes.series_of(cell);
    if (std::find(axes.series.begin(), axes.series.end(), series) == axes.series.end())
      axes.series.push_back(series);
  }
  return axes;
}

std::vector<SweepPanel> panels_of(const Sweep& sweep, bool by_kernel) {
  std::vector<SweepPanel> panels;
  for (const SweepCell& cell : sweep.cells) {
    if (cell.samples.empty()) continue;
    const SweepPanel panel{by_kernel ? cell.kernel : "", cell.output, dtype_of(cell)};
    const auto same = [&](const SweepPanel& other) {
      return other.kernel == panel.kernel && other.output == panel.output && other.dtype == panel.dtype;
    };
    if (std::none_of(panels.begin(), panels.end(), same)) panels.push_back(panel);
  }
  return panels;
}

std::string dtype_of(const SweepCell& cell) {
  const std::string swept = setting(cell, "dtype");
  return swept.empty() ? std::string(format(parse_token(cell.token).dtype).name) : swept;
}

}  // namespace assay
