#include "src/verification/compare/power.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/slices.h"

namespace assay {
namespace {

/// The smallest error that some verdict would have seen, and which.
struct Smallest {
  double error = HUGE_VAL;
  const char* by = "";

  void take(double seen, const char* verdict) {
    if (seen < error) error = seen, by = verdict;
  }
};

/// Of some elements: the bound's share, and their largest magnitude.
struct Elements {
  double smallest = HUGE_VAL, largest = 0;
  bool any = false;  ///< an exact value that is not zero, nor lost by underflow

  void take(double x, double bound, double lost) {
    if (!std::isfinite(x) || x <= lost) return;
    any = true;
    const double share = bound / x;
    largest = x > largest ? x : largest, smallest = share < smallest ? share : smallest;
  }
};

Smallest smallest_of(const Elements& elements, const std::vector<PartStatistics>& parts, bool late_only,
                     double formula) {
  Smallest y;
  y.take(elements.smallest, "bound");
  for (const PartStatistics& part : parts)
    if (part.late || !late_only) y.take(part.smallest, "statistic");
  if (elements.largest > 0) y.take(formula / elements.largest, "formula");
  return y;
}

}  // namespace

PowerOutput power_of(const Tensor& got, const ReferenceOutput& reference, const OutputBlocks& blocks,
                     const std::vector<PartStatistics>& parts, const FormulaOutput* formula) {
  PowerOutput y;
  y.name = reference.name;
  Elements all, late;
  double errors = 0, squares = 0;
  int64_t finite = 0;
  std::vector<double> row(static_cast<size_t>(blocks.columns()));
  for (const OutputBlock& b : blocks.blocks())
    for (int64_t r = 0; r < b.rows; ++r) {
      const bool in_last_quarter = blocks.of_tokens() && 4 * (b.first + r) >= 3 * b.of;
      const int64_t first = blocks.row(b, r);
      decode_run(got, first, blocks.columns(), row.data());
      for (int64_t flat = first; flat < first + blocks.columns(); ++flat) {
        const auto i = static_cast<size_t>(flat);
        const double x = std::fabs(reference.mid[i]),
                     e = row[static_cast<size_t>(flat - first)] - reference.mid[i],
                     lost = (reference.underflow.empty() ? 0 : reference.underflow[i]) + reference.rad[i];
        all.take(x, reference.bound[i], lost);
        if (in_last_quarter) late.take(x, reference.bound[i], lost);
        if (std::isfinite(x)) squares += x * x, ++finite;
        if (std::isfinite(e)) errors += e * e;
      }
    }
  // What the formula allows anywhere, absolute.
  const double size = finite > 0 ? std::sqrt(squares / static_cast<double>(finite)) : 0;
  const bool formula_judged = formula && formula->judged == formula->elements && formula->judged > 0;
  const double allowed = formula_judged ? formula->max_allowed * size : HUGE_VAL;
  const Smallest whole = smallest_of(all, parts, false, allowed);
  Smallest last = smallest_of(late, parts, true, allowed);
  if (!late.any) last = whole;
  y.smallest = whole.error, y.by = whole.by, y.smallest_late = last.error, y.by_late = last.by;
  y.error = squares > 0 ? std::sqrt(errors / squares) : 0;
  y.zeros = all.any && whole.error >= 1, y.flipped = all.any && whole.error >= 2;
  y.inconclusive = all.any && (whole.error >= 1 || last.error >= 1);
  return y;
}

}  // namespace assay
