// Without rounding the kernel would agree; it rounds more than its declared arithmetic says.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "src/verification/diagnosis/causes/error_shares.h"

namespace assay {
namespace {

/// Of an error of which the roundings made less, the rest is not theirs, whatever else is right.
constexpr double kLeastShare = 0.125;

std::string line_place(const ShadowLine& line) {
  return line.where.line > 0 ? fmt::format("{}:{}", line.where.file, line.where.line)
                             : fmt::format("PTX line {}", line.where.ptx_line);
}

/// A bound grows nearly in proportion where all declared numbers do.
std::string how_to_mend(const ErrorShares& shares, const ShadowReport& shadow) {
  const std::string where = shadow.lines.empty()
                                ? "on the lines named"
                                : fmt::format("at {}, which makes {:.0f} % of the rounding errors",
                                              line_place(shadow.lines.front()), shadow.lines.front().share);
  const std::string round = "round later or in a wider format " + where;
  const double bound = shares.output->worst.bound;
  if (!(bound > 0) || !std::isfinite(bound)) return round + ", or declare the arithmetic as it is";
  return fmt::format(
      "{}; or, if it is meant so, declare that rounding as it is: all declared numbers about {:.3g} times as "
      "large would hold it",
      round, shares.whole / bound);
}

}  // namespace

Cause rounding_beyond_declared() {
  return {"rounding-beyond-declared",
          "the formula is right; the roundings are more than the declared arithmetic allows",
          [](const Evidence& e) {
            Diagnosis d;
            const auto shares = error_shares(e);
            if (!shares) return d;
            if (shares->rounding < kLeastShare * shares->whole) return d;
            if (!is_formula_right(e, *shares) && shares->formula > shares->output->worst.bound) return d;
            d.score = is_formula_right(e, *shares)
                          ? 0.7
                          : 0.7 * shares->rounding / std::max(shares->formula + shares->rounding, 1e-300);
            d.explanation = how_to_mend(*shares, *e.shadow);
            d.evidence.push_back(fmt::format(
                "{}: of an error of {:.3g} the roundings made {:.3g}, bound {:.3g}",
                shares->output->worst.element, shares->whole, shares->rounding, shares->output->worst.bound));
            for (size_t i = 0; i < std::min<size_t>(3, e.shadow->lines.size()); ++i) {
              const ShadowLine& line = e.shadow->lines[i];
              d.evidence.push_back(fmt::format("{:.1f} % of all rounding errors from {} ({})", line.share,
                                               line_place(line), line.instruction));
            }
            return d;
          }};
}

}  // namespace assay
