// Rung 0 of the forward evaluation: plain double, with the bound.
#pragma once
#include <cstdint>
#include <vector>

#include "reference/forward_problem.h"

namespace assay {

/// Value columns that share one pass over a slice's q, k and g.
inline constexpr int64_t kColumnsPerTask = 32;

/// Fills mid, rad, bound, companion and underflow of the columns v0 .. v0 + kColumnsPerTask of a slice;
/// returns the columns (relative to v0) whose radius is too wide and which more precision may help.
std::vector<int64_t> evaluate_columns(const ForwardProblem&, const Slice&, int64_t v0);

}  // namespace assay
