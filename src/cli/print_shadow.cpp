#include "src/cli/print_shadow.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace assay::cli {
namespace {

constexpr size_t kLines = 5, kExponentials = 2, kOutputs = 4;

/// The power of two that is above every value of the result's format.
double overflow_of(const ExponentRange& range) {
  return range.instruction.find(".f16") == std::string::npos ? 128 : 16;
}

std::string short_place(const SourceLocation& where) {
  if (where.file.empty()) return fmt::format("{} (PTX line {})", where.function, where.ptx_line);
  return fmt::format("{}:{}", where.file.substr(where.file.rfind('/') + 1), where.line);
}

std::string output_text(const ShadowOutput& o) {
  if (o.followed == 0) return fmt::format("  {}: no float result is stored to it", o.name);
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

}  // namespace

std::string distance_text(const ExponentRange& range) {
  const double overflow = overflow_of(range);
  if (range.max >= overflow)
    return fmt::format("saw up to {:.4g}: overflowed (from {:g} on)", range.max, overflow);
  if (range.max > overflow - 4) return fmt::format("saw up to {:.4g}: within 4 of overflow", range.max);
  if (range.max <= 0) return fmt::format("saw up to {:.4g}: safe", range.max);
  return fmt::format("saw up to {:.4g}: {:.4g} below overflow", range.max, overflow - range.max);
}

void print_shadow(const Console& console, const Verification& v) {
  std::vector<const ExponentRange*> exponents;
  for (const ExponentRange& e : v.exponents) exponents.push_back(&e);
  std::stable_sort(exponents.begin(), exponents.end(), [](const auto* a, const auto* b) {
    return overflow_of(*a) - a->max < overflow_of(*b) - b->max;
  });
  if (v.shadow) {
    const ShadowReport& shadow = *v.shadow;
    console.line(console.styled(Style::bold, "against its own exact arithmetic"));
    for (size_t i = 0; i < std::min(kOutputs, shadow.outputs.size()); ++i)
      console.line(output_text(shadow.outputs[i]));
    print_lines(console, shadow);
    if (shadow.parting) {
      const ShadowParting& p = *shadow.parting;
      console.line(fmt::format(
          "  first parted by more than {:.2g} at {}: {} gave {:.9g}, exactly {:.9g}, block ({}), thread ({})",
          p.threshold, short_place(p.where), p.instruction, p.value, p.exact, fmt::join(p.block, ","),
          fmt::join(p.thread, ",")));
    }
  }
  for (size_t i = 0; i < std::min(kExponentials, exponents.size()); ++i) {
    const ExponentRange& e = *exponents[i];
    const std::string text =
        fmt::format("  {} at {} {}", e.instruction, short_place(e.where), distance_text(e));
    console.line(e.max > overflow_of(e) - 4 ? console.styled(Style::doubtful, text) : text);
  }
}

}  // namespace assay::cli
