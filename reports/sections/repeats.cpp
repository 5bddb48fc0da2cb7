// The run in other orders, with other bytes in unwritten memory, on other architectures.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "reports/html_table.h"
#include "reports/markup.h"
#include "reports/section.h"

namespace assay::sections {
namespace {

using nlohmann::json;

bool is_finding(const json& repeat) {
  return count_of(repeat, "differing") > 0 && !field_of(repeat, "by_order_of_sums").get<bool>() &&
         !field_of(repeat, "expected").get<bool>();
}

/// One line of a repeat in which something differs.
std::string sentence(const std::string& how, int64_t differing, const std::string& element,
                     const std::string& largest, bool by_sums, bool expected, const std::string& departure) {
  std::string text =
      fmt::format("{}: {} element{} differ, first {}", how, differing, differing == 1 ? "" : "s", element);
  if (by_sums)
    text += fmt::format("; only the order of floating-point atomics, up to {} of the tensor's size", largest);
  else if (expected)
    text +=
        fmt::format("; as the architectures' own roundings explain, up to {} of the tensor's size", largest);
  if (!departure.empty()) text += "; first parted: " + departure;
  return text;
}
std::string sentence(const json& r) {
  return sentence(text_of(r, "how"), count_of(r, "differing"), text_of(r, "element"),
                  short_decimal(field_of(r, "largest")), field_of(r, "by_order_of_sums").get<bool>(),
                  field_of(r, "expected").get<bool>(), text_of(r, "departure"));
}

json lines_of(const json& repeats) {
  json lines = json::array();
  for (const json& repeat : repeats)
    lines.push_back(count_of(repeat, "differing") > 0 ? sentence(repeat)
                                                      : text_of(repeat, "how") + ": the same bits");
  return lines;
}

const json* first_finding(const json& repeats) {
  for (const json& repeat : repeats)
    if (is_finding(repeat)) return &repeat;
  return nullptr;
}

void print_repeats(const Console& console, const Verification& v, size_t) {
  std::vector<std::string> same;
  for (const Repeat& r : v.repeats)
    if (r.differing == 0) same.push_back(r.how);
  for (const Repeat& r : v.repeats) {
    // Findings stand among the properties.
    if (r.differing == 0 || !(r.by_order_of_sums || r.expected)) continue;
    console.line("  " + sentence(r.how, r.differing, r.element, fmt::format("{:.2g}", r.largest),
                                 r.by_order_of_sums, r.expected, r.departure));
    if (!r.note.empty()) console.line("    " + r.note);
  }
  if (!same.empty()) console.line(fmt::format("  same bits: {}", fmt::join(same, "; ")));
}

}  // namespace

extern const Section repeats = {
    .field = "repeats",
    .later = true,
    .page = [](const json& repeats, const std::string&,
               int level) { return html::list_section(lines_of(repeats), level, "Run once more"); },
    .markdown =
        [](const json& repeats) {
          std::string out = "Run once more:\n\n";
          for (const json& line : lines_of(repeats))
            out += fmt::format("- {}\n", escape_markdown(line.get<std::string>()));
          return out + "\n";
        },
    .print = print_repeats,
    .headline =
        [](const json& repeats) {
          const json* const found = first_finding(repeats);
          return found ? sentence(*found) : std::string();
        },
    .rule = [](const json& repeats) -> std::optional<Rule> {
      const json* const found = first_finding(repeats);
      if (!found) return std::nullopt;
      return Rule{text_of(*found, "kind") + "-changes-results",
                  "the run comes out otherwise when repeated in another way"};
    },
    .place =
        [](const json& repeats) {
          const json* const found = first_finding(repeats);
          return found ? field_of(*found, "where") : json();
        },
};

}  // namespace assay::sections
