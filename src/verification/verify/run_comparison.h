// Two runs of one plan, bit for bit.
#pragma once
#include <string>

#include "src/result/verification.h"

namespace assay {

/// Elements whose bits differ between two runs; each output with some adds a failure of `property`.
int64_t compare_runs(const Outcome& first, const Outcome& second, const std::string& property, Verification&);

}  // namespace assay
