#include "src/cli/print_slice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::cli {
namespace {

std::string short_place(const SourceLocation& where) {
  const std::string file = where.file.substr(where.file.rfind('/') + 1);
  return where.line > 0 ? fmt::format("{}:{}", file, where.line)
                        : fmt::format("{} PTX line {}", file, where.ptx_line);
}

std::string step_text(const SliceStep& step) {
  std::string operands;
  for (const OriginOperand& o : step.operands)
    operands += fmt::format("{}{:.6g}", operands.empty() ? "" : ", ", o.value);
  std::string text = fmt::format("    {:<24} {:<26}", short_place(step.at.where),
                                 step.at.instruction.substr(0, step.at.instruction.find(' ')));
  if (!step.type.empty() && !step.operands.empty())
    text += fmt::format(" {} -> {:.6g}", operands, step.result);
  if (step.times > 1) text += fmt::format("  (x {})", step.times);
  if (!step.at.text.empty()) text += fmt::format("   {}", step.at.text);
  return text;
}

}  // namespace

void print_slice(const Console& console, const ElementSlice& slice, size_t depth) {
  console.line(
      fmt::format("\n{} {} = {:.9g}", console.styled(Style::bold, "behind"), slice.element, slice.value));
  console.line(fmt::format("  {}{} instruction instances on {} source lines; {} of {} blocks were run again",
                           slice.truncated ? "more than " : "", slice.instances, slice.lines.size(),
                           slice.blocks, slice.blocks_of));
  if (slice.truncated)
    console.line("  the nearest of them, and further back those behind the operands that decide its size");
  for (const SliceInput& in : slice.inputs) {
    const std::string range = in.elements == 1 ? in.first : fmt::format("{} to {}", in.first, in.last);
    console.line(fmt::format("  {}: {} element{}, {}; largest {} = {:.6g}", in.input, in.elements,
                             in.elements == 1 ? "" : "s", range, in.largest, in.value));
  }
  if (slice.unwritten)
    console.line(console.styled(Style::doubtful, "  a value that nothing wrote takes part"));
  if (slice.chain.empty()) return;
  console.line("  the operands that decide its size, from the input to the output");
  for_ends(
      slice.chain.size(), depth, [&](size_t i) { console.line(step_text(slice.chain[i])); },
      [&](size_t left_out) { console.line(fmt::format("    ... {} more (--depth)", left_out)); });
}

void print_origin_groups(const Console& console, const std::vector<OriginGroup>& groups) {
  if (groups.empty()) return;
  console.line(
      fmt::format("\n{}", console.styled(Style::bold, fmt::format("{} distinct origin{}", groups.size(),
                                                                  groups.size() == 1 ? "" : "s"))));
  for (const OriginGroup& g : groups) {
    const std::string at = g.origin.where.ptx_line > 0 ? " at " + short_place(g.origin.where) : "";
    console.line(fmt::format("  {:>7}  {}{}  ({})", g.elements,
                             console.styled(Style::bad, name_of(g.origin.kind)), at,
                             fmt::join(g.outputs, ", ")));
    if (!g.origin.source_text.empty()) console.line(fmt::format("           {}", g.origin.source_text));
    console.line(fmt::format("           as {}", g.origin.sentence));
  }
}

}  // namespace assay::cli
