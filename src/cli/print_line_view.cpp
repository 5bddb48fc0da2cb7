#include "src/cli/print_line_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/base/fields/json_fields.h"
#include "src/base/numerics/bad_input.h"

namespace assay::cli {
namespace {

constexpr size_t kWidth = 110;

/// "0-15, 17" of ascending lanes.
std::string lanes_text(const std::vector<int>& lanes) {
  std::string text;
  for (size_t i = 0; i < lanes.size(); ++i) {
    const size_t first = i;
    while (i + 1 < lanes.size() && lanes[i + 1] == lanes[i] + 1) ++i;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", lanes[first]);
    if (i > first) text += fmt::format("-{}", lanes[i]);
  }
  return text;
}
std::string lanes_text(uint64_t mask) {
  std::vector<int> lanes;
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) lanes.push_back(lane);
  return lanes.empty() ? "none" : lanes_text(lanes);
}

std::string value_text(const vm::LaneValue& value) {
  const bool exact =
      std::all_of(value.exact.begin(), value.exact.end(), [](const auto& e) { return e.error == 0; });
  if (exact) return value.text + (value.exact.empty() ? "" : " (exact)");
  std::string text = value.text;
  for (const vm::ExactValue& e : value.exact)
    text += fmt::format(" (exactly {:.12g}, {:+.3g} ulp)", e.exact, e.ulps);
  return text;
}

/// "LANES: TEXT" for each text, lanes that share one together, in lines of kWidth.
void print_lanes(const Console& console, const std::string& head,
                 const std::vector<std::pair<int, std::string>>& values) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (const auto& [lane, text] : values) {
    auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == text; });
    if (same == groups.end()) same = groups.insert(groups.end(), {text, {}});
    same->second.push_back(lane);
  }
  std::string line = head;
  bool blank = true;
  for (const auto& [text, lanes] : groups) {
    const std::string next = fmt::format("  {}: {}", lanes_text(lanes), text);
    if (!blank && line.size() + next.size() > kWidth) {
      console.line(line);
      line.assign(head.size(), ' ');
    }
    line += next, blank = false;
  }
  console.line(line);
}

void print_instruction(const Console& console, const vm::SteppedInstruction& in) {
  std::string lanes = "lanes " + lanes_text(in.active);
  if (in.executed != in.active) lanes += fmt::format(", the guard holds in {}", lanes_text(in.executed));
  console.line(fmt::format("\n{} {}{}{}  {}", console.styled(Style::dim, fmt::format("PTX {}", in.ptx_line)),
                           in.guard, in.guard.empty() ? "" : " ", console.styled(Style::bold, in.text),
                           lanes));
  for (const vm::RegisterView& r : in.registers) {
    std::vector<std::pair<int, std::string>> values;
    for (const vm::LaneValue& value : r.lanes) values.emplace_back(value.lane, value_text(value));
    print_lanes(console, fmt::format("  {:<5} {:<8} {:<6}", r.role, r.name, r.type), values);
  }
  std::vector<std::pair<std::string, std::vector<std::pair<int, std::string>>>> kinds;
  for (const vm::ReachedMemory& m : in.memory) {
    const std::string kind = fmt::format("  {} {} bytes at", m.direction, m.bytes);
    if (kinds.empty() || kinds.back().first != kind) kinds.push_back({kind, {}});
    kinds.back().second.emplace_back(m.lane, m.place);
  }
  for (const auto& [kind, places] : kinds) print_lanes(console, kind, places);
}

}  // namespace

void print_line_view(const Console& console, const vm::LineView& view) {
  if (!view.trap.empty()) console.line(console.styled(Style::bad, view.trap));
  if (view.visits == 0)
    return console.line(fmt::format("{}: no warp that was asked for comes there", view.place));
  console.line(fmt::format("{} {}: block ({}) warp {} of {}, visit {} of {}",
                           console.styled(Style::bold, "at"), view.place, fmt::join(view.block, ","),
                           view.warp, view.entry, view.visit, view.visits));
  for (const vm::SteppedInstruction& in : view.instructions) print_instruction(console, in);
}

int show_line_view(const OutputOptions& output, vm::LineView& view) {
  if (view.visits > 0 && view.visit == 0)
    throw BadInput(
        fmt::format("--visit: the warp came there {} time{}", view.visits, view.visits == 1 ? "" : "s"));
  print_line_view(output.console(), view);
  output.write(JsonWriter::json_of(view));
  return 0;
}

}  // namespace assay::cli
