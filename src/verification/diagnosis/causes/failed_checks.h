// Causes that a trap, a finding of the checking machine or a property that fails names by itself.
#pragma once
#include <vector>

#include "src/verification/diagnosis/diagnose.h"

namespace assay {

/// data-race, index-wrap, out-of-bounds, ...: one per kind. Some bear the name of a meaning or of
/// another cause, which says the same from other evidence.
std::vector<Cause> failed_checks();

}  // namespace assay
