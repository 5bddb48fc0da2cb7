#include "fuzz/bound_width.h"

#include <algorithm>
#include <cmath>

namespace assay {

BoundWidth bound_width(const ReferenceOutput& reference) {
  std::vector<double> bounds;
  double squares = 0, caught = HUGE_VAL;
  for (size_t i = 0; i < reference.mid.size(); ++i) {
    const double size = std::fabs(reference.mid[i]), bound = reference.bound[i];
    if (!std::isfinite(size) || !std::isfinite(bound)) continue;
    bounds.push_back(bound), squares += size * size;
    // (1 + d) size, rounded by at most roundoff (1 + d) size, is still farther off than the bound.
    const double left = size * (1 - reference.roundoff);
    if (left > 0) caught = std::fmin(caught, (bound + reference.rad[i] + size * reference.roundoff) / left);
  }
  if (bounds.empty()) return {};
  const auto middle = bounds.begin() + static_cast<std::ptrdiff_t>(bounds.size() / 2);
  std::nth_element(bounds.begin(), middle, bounds.end());
  const double rms = std::sqrt(squares / static_cast<double>(bounds.size()));
  return {*middle == 0 ? 0 : *middle / rms, caught};
}

}  // namespace assay
