// What is said of the lines that explain what is wrong, and of those beside them.
#pragma once
#include <string>
#include <vector>

#include "src/verification/diagnosis/slice_lines.h"
#include "src/verification/diagnosis/suspect_lines.h"

namespace assay {

/// "its values taken for 0 make all wrong elements right".
std::string reason_of(const ExplainedLine&);

/// `order`, once each, as far as lines are named, and what stands beside the first of them.
void name_lines(const std::vector<const ExplainedLine*>& order, const SliceLines&, const SourceText&,
                SuspectLines&);

}  // namespace assay
