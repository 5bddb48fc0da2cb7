#include "src/verification/diagnosis/causes/error_shares.h"

#include <cmath>

namespace assay {

std::optional<ErrorShares> error_shares(const Evidence& e) {
  if (!e.shadow || !e.shadow->element || !e.outputs) return std::nullopt;
  const ShadowElement& own = *e.shadow->element;
  for (const OutputComparison& o : *e.outputs)
    if (o.violation > 0 && o.worst.element == own.element && std::isfinite(o.worst.got))
      return ErrorShares{&o, o.worst.absolute, std::fabs(own.value - own.exact),
                         std::fabs(own.exact - o.worst.expected)};
  return std::nullopt;
}

bool is_formula_right(const Evidence& e, const ErrorShares& shares) {
  const FormulaOutput* judged = e.formula ? e.formula->output(shares.output->name) : nullptr;
  return judged && judged->judged == judged->elements && !e.formula->violated();
}

}  // namespace assay
