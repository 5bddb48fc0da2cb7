// The upper rungs of the forward evaluation.
#pragma once
#include <cstdint>
#include <vector>

#include "reference/forward_problem.h"

namespace assay {

/// Evaluates the columns v0 + wide[i] of a slice in double-double, then where that is not enough literally
/// over intervals of growing precision; enclosures that come out narrower replace the old ones.
void climb_ladder(const ForwardProblem&, const Slice&, int64_t v0, const std::vector<int64_t>& wide);

}  // namespace assay
