// The kernel's own instructions, carried out without rounding, miss the reference by more than the bound: no
// rounding explains that.
#include <fmt/format.h>

#include <algorithm>

#include "src/verification/diagnosis/causes/error_shares.h"
#include "src/verification/diagnosis/thresholds.h"

namespace assay {

namespace {

/// Where no element was looked at beside exact arithmetic: those on real numbers that are not the
/// reference's.
Diagnosis of_report(const FormulaReport& report) {
  Diagnosis d;
  for (const FormulaOutput& o : report.outputs) {
    if (o.violation == 0) continue;
    d.score = thresholds::kFormulaOnly;
    d.explanation = "the kernel's own exact arithmetic differs: the formula differs, not the rounding";
    d.evidence.push_back(fmt::format(
        "{}: without any rounding the kernel's instructions give {:.9g}, the reference {:.9g}: {:.3g} "
        "apart, {:.3g} can be explained",
        o.worst.element, o.worst.exact, o.worst.expected, o.worst.difference, o.worst.allowed));
  }
  return d;
}

}  // namespace

Cause formula_differs() {
  return {
      "formula-differs", "the kernel computes something else, rounded well or badly", [](const Evidence& e) {
        Diagnosis d;
        const auto shares = error_shares(e);
        if (!shares && e.formula) return of_report(*e.formula);
        if (!shares || is_formula_right(e, *shares) || !(shares->formula > shares->output->worst.bound))
          return d;
        // It says that, not what: any cause that names the difference goes before.
        d.score =
            thresholds::kFormulaOnly * shares->formula / std::max(shares->formula + shares->rounding, 1e-300);
        d.explanation =
            "the kernel's own exact arithmetic also differs: the formula differs, not the rounding";
        d.evidence.push_back(
            fmt::format("{}: without any rounding the kernel's instructions give {:.9g}, the reference "
                        "{:.9g}: {:.3g} apart, "
                        "bound {:.3g}",
                        shares->output->worst.element, e.shadow->element->exact,
                        shares->output->worst.expected, shares->formula, shares->output->worst.bound));
        d.evidence.push_back(fmt::format("its roundings add {:.3g}", shares->rounding));
        return d;
      }};
}

}  // namespace assay
