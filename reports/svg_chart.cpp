#include "reports/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "reports/markup.h"

namespace assay {
namespace {

constexpr const char* kColours[] = {"#3b7dbd", "#d9822b", "#3f9b5f", "#9a6bb8", "#c0504d", "#2f9e9e",
                                    "#8c6d4f", "#7a7a7a", "#c95fa3", "#7f9a2f", "#5b6fd1", "#b0475b"};
constexpr double kWidth = 860, kHeight = 394, kLeft = 70, kRight = 330, kTop = 48, kBottom = 48;

std::string open(double width, double height, const std::string& title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" "
      "height=\"{:.0f}\" role=\"img\" "
      "font-family=\"sans-serif\" font-size=\"12\"><title>{}</title>\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#ffffff\"/>\n"
      "<text x=\"12\" y=\"20\" font-weight=\"bold\">{}</text>\n",
      width, height, width, height, escape_markup(title), escape_markup(title));
}

std::string text(double x, double y, const char* anchor, const std::string& words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"#444\">{}</text>\n", x, y,
                     anchor, escape_markup(words));
}

/// Exponents of an axis and the way from a value to a place on it.
struct Axis {
  double low = HUGE_VAL, high = -HUGE_VAL, from, to;

  void take(double exponent) {
    low = std::min(low, exponent);
    high = std::max(high, exponent);
  }
  double place(double exponent) const {
    return from + (exponent - low) / (high > low ? high - low : 1) * (to - from);
  }
};

bool drawable(const std::pair<double, double>& point) {
  return point.first > 0 && point.second > 0 && std::isfinite(point.first) && std::isfinite(point.second);
}

}  // namespace

std::string svg_lines(const std::string& title, const std::string& x_name, const std::string& y_name,
                      const std::vector<SvgSeries>& series, const std::vector<std::string>& places) {
  const auto x_of = [&](double value) { return places.empty() ? std::log2(value) : value; };
  Axis x{.from = kLeft, .to = kWidth - kRight}, y{.from = kHeight - kBottom, .to = kTop};
  for (const SvgSeries& s : series)
    for (const auto& point : s.points)
      if (drawable(point)) x.take(x_of(point.first)), y.take(std::log10(point.second));
  std::string out = open(kWidth, kHeight, title);
  if (x.low > x.high) return out + text(kLeft, kHeight / 2, "start", "no positive numbers") + "</svg>\n";
  y.low = std::floor(y.low), y.high = std::max(std::ceil(y.high), y.low + 1);
  for (double e = y.low; e <= y.high; ++e) {
    out +=
        fmt::format("<line x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/>\n",
                    x.from, x.to, y.place(e));
    out += text(x.from - 6, y.place(e) + 4, "end", fmt::format("1e{:.0f}", e));
  }
  const double labels = places.empty() ? 10 : 6;  // names are wider than numbers
  const double step = std::max(1.0, std::ceil((x.high - x.low) / labels));
  for (double e = x.low; e <= x.high + 1e-9; e += step)
    out += text(x.place(e), y.from + 18, "middle",
                places.empty() ? fmt::format("{:.4g}", std::exp2(e)) : places.at(static_cast<size_t>(e) - 1));
  out += text((x.from + x.to) / 2, kHeight - 8, "middle", x_name) + text(12, kTop - 10, "start", y_name);
  double legend = kTop + 8;
  for (const SvgSeries& s : series) {
    const char* colour = kColours[static_cast<size_t>(s.colour) % std::size(kColours)];
    const char* dash = s.dashed ? (s.mark == 0 ? " stroke-dasharray=\"5 4\"" : " stroke-dasharray=\"2 3\"")
                                : (s.mark == 0 ? "" : " stroke-dasharray=\"12 3\"");
    std::string path, marks;
    for (const auto& point : s.points) {
      if (!drawable(point)) continue;
      const double left = x.place(x_of(point.first)), top = y.place(std::log10(point.second));
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", left, top);
      const double size = s.dashed ? 1.4 : 2.4;
      marks += s.mark == 0 ? fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"", left, top, size)
                           : fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\"",
                                         left - size, top - size, 2 * size, 2 * size);
      marks += fmt::format(" fill=\"{}\"><title>{}: {} {}, {}</title></{}>\n", colour, escape_markup(s.name),
                           escape_markup(x_name), point.first, point.second, s.mark == 0 ? "circle" : "rect");
    }
    if (path.empty()) continue;
    out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"{}/>\n", path, colour,
                       dash) +
           marks;
    out += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\" "
        "stroke-width=\"1.6\"{4}/>\n",
        x.to + 12, x.to + 34, legend - 4, colour, dash);
    out += text(x.to + 40, legend, "start", s.name);
    legend += 16;
  }
  return out + "</svg>\n";
}

std::string svg_map(const std::string& title, const std::vector<std::string>& columns,
                    const std::vector<std::string>& rows, const std::vector<SvgCell>& cells) {
  constexpr double kName = 150, kCellWidth = 62, kCellHeight = 24;
  const double width = kName + kCellWidth * static_cast<double>(columns.size()) + 16,
               height = kTop + 24 + kCellHeight * static_cast<double>(rows.size()) + 12;
  std::string out = open(width, height, title);
  const auto left = [](size_t column) { return kName + kCellWidth * static_cast<double>(column); };
  const auto top = [](size_t row) { return kTop + 24 + kCellHeight * static_cast<double>(row); };
  for (size_t i = 0; i < columns.size(); ++i)
    out += text(left(i) + kCellWidth / 2, kTop + 14, "middle", columns[i]);
  for (size_t i = 0; i < rows.size(); ++i) out += text(kName - 8, top(i) + 16, "end", rows[i]);
  for (const SvgCell& cell : cells) {
    const bool bad = cell.bad || !(cell.value <= 1);
    const double strength = cell.value > 0 ? std::clamp(1 + std::log2(cell.value) / 10, 0.08, 1.0) : 0.04;
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"2\" fill=\"{}\" "
        "fill-opacity=\"{:.2f}\"/>\n",
        left(cell.column) + 1, top(cell.row) + 1, kCellWidth - 2, kCellHeight - 2,
        bad ? "#b3261e" : "#2b6a9e", bad ? 1 : strength);
    out += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"{}\">{:.2g}<title>{}</title></text>\n",
        left(cell.column) + kCellWidth / 2, top(cell.row) + 16, bad || strength > 0.6 ? "#fff" : "#222",
        cell.value, cell.value);
  }
  return out + "</svg>\n";
}

}  // namespace assay
