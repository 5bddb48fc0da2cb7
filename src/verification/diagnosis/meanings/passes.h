// Gradients of gates, made of a forward scan of states and a reverse scan of their gradients, where one of
// the two scans is not what it should be.
#pragma once
#include <vector>

#include "src/verification/diagnosis/meaning.h"

namespace assay {

/// dg alone is wrong: the states that it is made of begin, in every chunk, with those of the chunk before.
std::vector<Variant> gate_gradients_of_stale_states(const FailingRun&);
/// They begin with zero; or the gradients end with zero in every chunk.
std::vector<Variant> gate_gradients_of_lost_states(const FailingRun&);

}  // namespace assay
