// What some values would have to be for others to be right.
#pragma once
#include <optional>
#include <vector>

namespace assay {

/// By how much each value would have to change, its column saying how all elements move with it, for the
/// elements to move by `lacking`: least squares. None where the columns depend on one another.
std::optional<std::vector<double>> changes_needed(const std::vector<const std::vector<double>*>& columns,
                                                  const std::vector<double>& lacking);

/// Is each value, changed so, one of the pool, to the digits that derivatives at floats have, and neither 0
/// nor what it was? A pool of n values holds any number by chance about once in 2^13 / n: not said of so few
/// values that all may be.
bool become_others(const std::vector<double>& values, const std::vector<double>& changes,
                   std::vector<double> pool);

}  // namespace assay
