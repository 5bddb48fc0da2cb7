#include "reports/origin_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/markup.h"

namespace assay::html {
namespace {

using nlohmann::json;

constexpr double kWidth = 760, kHeight = 46, kGap = 26, kMargin = 4;
constexpr size_t kInputsShown = 3;
constexpr double kLetter = 7.2;  // width of one at 12 px, monospaced

struct Box {
  std::string kind;           ///< "input", "origin", "link", "output": its style
  std::string first, second;  ///< its two lines
  double x = kMargin, width = kWidth - 2 * kMargin;
};
using Row = std::vector<Box>;

/// As much of a text as fits: the end of a place, the beginning of an instruction.
std::string fitting(const std::string& text, double width, bool keep_end) {
  const auto letters = static_cast<size_t>(std::max(width / kLetter - 4, 4.0));
  if (text.size() <= letters) return text;
  const auto inside = [&](size_t at) {
    return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80;
  };
  size_t cut = keep_end ? text.size() - letters : letters;
  while (inside(cut)) ++cut;  // whole characters
  return keep_end ? "\u2026" + text.substr(cut) : text.substr(0, cut) + "\u2026";
}

std::string drawn(const Box& box, double y) {
  const auto line = [&](const std::string& text, double down, const char* style, bool keep_end) {
    return fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" class=\"{}\">{}</text>", box.x + 12, y + down, style,
                       escape_markup(fitting(text, box.width, keep_end)));
  };
  return fmt::format(
             "<g class=\"box {}\"><title>{}</title><rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" "
             "height=\"{:.0f}\" rx=\"6\"></rect>",
             box.kind, escape_markup(box.first + (box.second.empty() ? "" : ": " + box.second)), box.x, y,
             box.width, kHeight) +
         line(box.first, 19, "what", true) + line(box.second, 36, "how", false) + "</g>\n";
}

/// An arrow from a box of one row to one of the next.
std::string arrow(const Box& from, const Box& to, double y) {
  const double x0 = from.x + from.width / 2, x1 = std::clamp(x0, to.x + 20, to.x + to.width - 20);
  return fmt::format("<path class=\"arrow\" d=\"M{0:.0f} {1:.0f}L{2:.0f} {3:.0f}m-4 -6l4 6l4 -6\"></path>\n",
                     x0, y, x1, y + kGap);
}

/// The input elements side by side; the last box counts those that have none.
Row inputs_row(const json& origin) {
  const json& inputs = field_of(origin, "inputs");
  Row row;
  for (size_t i = 0; i < std::min(inputs.size(), kInputsShown); ++i)
    row.push_back(
        {"input", text_of(inputs[i], "element"), "= " + short_decimal(field_of(inputs[i], "value"))});
  const bool truncated = origin.value("inputs_truncated", false);
  if (truncated || inputs.size() > kInputsShown)
    row.push_back(
        {"input",
         inputs.size() > kInputsShown ? fmt::format("{} more", inputs.size() - kInputsShown) : "more",
         truncated ? "and others" : ""});
  const double width =
      (kWidth - 2 * kMargin + 12) / static_cast<double>(std::max<size_t>(row.size(), 1)) - 12;
  for (size_t i = 0; i < row.size(); ++i) {
    row[i].x = kMargin + static_cast<double>(i) * (width + 12);
    row[i].width = width;
  }
  return row;
}

Box link_box(const json& link) {
  return {"link", location_text(field_of(link, "where")), text_of(link, "instruction")};
}

std::vector<Row> rows_of(const json& origin) {
  std::vector<Row> rows;
  if (Row inputs = inputs_row(origin); !inputs.empty()) rows.push_back(std::move(inputs));
  if (const auto made = origin.find("infinity_made_at"); made != origin.end() && !made->is_null())
    rows.push_back({link_box(*made)});
  rows.push_back({{"origin", text_of(origin, "kind") + " at " + location_text(field_of(origin, "where")),
                   text_of(origin, "instruction") + " -> " + short_decimal(field_of(origin, "result"))}});
  const json& chain = field_of(origin, "chain");
  for (size_t i = 0; i < chain.size(); ++i)  // a chain may begin with the origin itself
    if (i > 0 || field_of(chain[i], "where") != field_of(origin, "where"))
      rows.push_back({link_box(chain[i])});
  rows.push_back({{"output", text_of(origin, "element"), "not finite"}});
  return rows;
}

}  // namespace

std::string origin_graph(const json& origin) {
  const std::vector<Row> rows = rows_of(origin);
  const double height = static_cast<double>(rows.size()) * (kHeight + kGap) - kGap + 2 * kMargin;
  std::string out = fmt::format(
      "<svg class=\"origin\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "role=\"img\" "
      "aria-label=\"from input elements to the output: see the list below\">\n",
      kWidth, height);
  double y = kMargin;
  for (size_t i = 0; i < rows.size(); ++i, y += kHeight + kGap) {
    for (const Box& box : rows[i]) {
      out += drawn(box, y);
      if (i + 1 < rows.size()) out += arrow(box, rows[i + 1].front(), y + kHeight);
    }
  }
  return out + "</svg>\n";
}

}  // namespace assay::html
