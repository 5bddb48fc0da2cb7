// Outputs of which the right values are there, at other places: they are made rightly and stored wrongly.
#pragma once
#include <vector>

#include "src/verification/verify/telling_case.h"

namespace assay {

/// The statement that stores such an output, and what says where.
std::vector<SuspectLine> lines_of_misplaced(const TellingCase&, const vm::MachineOptions&);

}  // namespace assay
