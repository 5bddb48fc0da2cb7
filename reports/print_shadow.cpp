#include "reports/print_shadow.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "reports/console_chain.h"
#include "src/base/ptx/form.h"
#include "src/base/vm/shadow_edges.h"

namespace assay {
namespace {

constexpr size_t kLines = 5, kEdges = 4, kOutputs = 4;
constexpr double kNear = 4;  // binades

std::string output_text(const ShadowOutput& o) {
  if (o.followed == 0)
    return fmt::format("  {}: no finite float whose rounding was followed is stored to it", o.name);
  std::string text = fmt::format(
      "  {}: rms error {:.2g} of rms {:.3g}; largest {:.2g} at {} (bound {:.2g} before cancelling)", o.name,
      o.rms_error, o.rms_exact, o.max_error, o.worst, o.bound);
  if (o.nonfinite) text += fmt::format("; {} non-finite", o.nonfinite);
  return text;
}

void print_lines(const Console& console, const ShadowReport& shadow) {
  if (shadow.lines.empty()) return;
  console.line("  made by the roundings of");
  double rest = 0;
  for (size_t i = 0; i < shadow.lines.size(); ++i) {
    const ShadowLine& line = shadow.lines[i];
    if (i >= kLines) {
      rest += line.share;
      continue;
    }
    console.line(fmt::format("    {:5.1f} %  {:<24} {} (up to {:.2g} of its result)", line.share,
                             short_place(line.where), line.instruction, line.largest));
  }
  if (shadow.lines.size() > kLines)
    console.line(fmt::format("    {:5.1f} %  {} other lines", rest, shadow.lines.size() - kLines));
}

/// What is told of an exponential by its argument alone.
ShadowEdge edge_of_range(const ExponentRange& range) {
  const ptx::Form form = ptx::form_of(range.instruction);
  const bool half = form.type() == ptx::Type::f16 || form.type() == ptx::Type::f16x2;
  return vm::describe_edge(vm::edge_of(form, half ? ptx::Type::f16 : ptx::Type::f32), {range.min, range.max});
}

/// Of a run too long for shadows: the exponentials nearest to overflow.
void print_exponents_alone(const Console& console, const Verification& v) {
  std::vector<std::pair<ShadowEdge, const ExponentRange*>> exponents;
  for (const ExponentRange& e : v.exponents) exponents.emplace_back(edge_of_range(e), &e);
  std::stable_sort(exponents.begin(), exponents.end(),
                   [](const auto& a, const auto& b) { return a.first.distance < b.first.distance; });
  for (size_t i = 0; i < std::min(kEdges, exponents.size()); ++i) {
    const auto& [edge, range] = exponents[i];
    const std::string text =
        fmt::format("  {} at {} {}", range->instruction, short_place(range->where), edge.text);
    console.line(edge.distance < kNear ? console.styled(Style::doubtful, text) : text);
  }
}

}  // namespace

std::string distance_text(const ExponentRange& range) {
  return edge_of_range(range).text;
}

void print_shadow(const Console& console, const Verification& v) {
  if (!v.shadow) return print_exponents_alone(console, v);
  const ShadowReport& shadow = *v.shadow;
  console.line(console.styled(Style::bold, "against its own exact arithmetic"));
  for (size_t i = 0; i < std::min(kOutputs, shadow.outputs.size()); ++i)
    console.line(output_text(shadow.outputs[i]));
  print_lines(console, shadow);
  for (const ShadowAmplifier& a : shadow.amplifiers)
    console.line(fmt::format(
        "  amplified {:.2g} times at {}: {}, at worst {:.9g} for exactly {:.9g}, block ({}), thread ({})",
        a.growth, short_place(a.where), a.instruction, a.value, a.exact, fmt::join(a.block, ","),
        fmt::join(a.thread, ",")));
  if (shadow.parting) {
    const ShadowParting& p = *shadow.parting;
    console.line(fmt::format(
        "  first parted by more than {:.2g} at {}: {} gave {:.9g}, exactly {:.9g}, block ({}), thread ({})",
        p.threshold, short_place(p.where), p.instruction, p.value, p.exact, fmt::join(p.block, ","),
        fmt::join(p.thread, ",")));
  }
  // The nearest edge of each instruction's root tells most of its kind; exponentials come first.
  std::set<ptx::Operation> shown;
  const auto show = [&](const ShadowEdge& e) {
    if (shown.size() == kEdges || !shown.insert(ptx::form_of(e.instruction).operation).second) return;
    const std::string text = fmt::format("  {} at {} {}", e.instruction, short_place(e.where), e.text);
    console.line(e.distance < kNear ? console.styled(Style::doubtful, text) : text);
  };
  for (const ShadowEdge& e : shadow.edges)
    if (ptx::form_of(e.instruction).operation == ptx::Operation::ex2) show(e);
  for (const ShadowEdge& e : shadow.edges) show(e);
}

}  // namespace assay
