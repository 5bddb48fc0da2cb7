// One defect shows in many ways: those of one run are put together.
#pragma once
#include <string>
#include <vector>

#include "src/result/verification.h"

namespace assay {

/// Findings of one kernel that name the same place for the same reason (a check's finding, a trap, the origin
/// of a non-finite value, a named cause with a line) become one: the one that says most of the cause, the
/// others in its `also`; a known one and a new one stay apart. The order is that in which the first of each
/// was found.
std::vector<Verification> one_per_defect(std::vector<Verification>);

/// Of the finding and of what it was put together from.
std::vector<std::string> identities_of(const Verification&);

}  // namespace assay
