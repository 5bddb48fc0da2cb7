// Without rounding the kernel would agree; it rounds more than its declared arithmetic says.
#include <fmt/format.h>

#include <algorithm>

#include "src/verification/diagnosis/causes/error_shares.h"

namespace assay {

Cause rounding_beyond_declared() {
  return {"rounding-beyond-declared",
          "the formula is right; the roundings are more than the declared arithmetic allows",
          [](const Evidence& e) {
            Diagnosis d;
            const auto shares = error_shares(e);
            if (!shares) return d;
            if (!is_formula_right(e, *shares) && shares->formula > shares->output->worst.bound) return d;
            d.score = is_formula_right(e, *shares)
                          ? 0.7
                          : 0.7 * shares->rounding / std::max(shares->formula + shares->rounding, 1e-300);
            d.explanation =
                "round later or in a wider format on the lines named, or declare the arithmetic as it is";
            d.evidence.push_back(fmt::format(
                "{}: of an error of {:.3g} the roundings made {:.3g}, bound {:.3g}",
                shares->output->worst.element, shares->whole, shares->rounding, shares->output->worst.bound));
            for (size_t i = 0; i < std::min<size_t>(3, e.shadow->lines.size()); ++i) {
              const ShadowLine& line = e.shadow->lines[i];
              const std::string at = line.where.line > 0
                                         ? fmt::format("{}:{}", line.where.file, line.where.line)
                                         : fmt::format("PTX line {}", line.where.ptx_line);
              d.evidence.push_back(fmt::format("{:.1f} % of all rounding errors from {} ({})", line.share, at,
                                               line.instruction));
            }
            return d;
          }};
}

}  // namespace assay
