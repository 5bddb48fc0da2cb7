// Findings of an earlier run, which a later one knows already.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/result/fuzz_run.h"
#include "src/result/verification.h"

namespace assay {

struct Baseline {
  std::string source;  ///< the file it was read from
  std::vector<Verification> findings;
};

/// The findings of a result (a fuzz run, or one verification). Throws BadInput where it is neither.
Baseline baseline_of(std::string source, const nlohmann::json& result);

/// Marks as known each finding whose symptom the baseline has: its kernel and cause, whatever was diagnosed.
/// One that is not is never put together with one that is (one_per_defect.h), so that a known defect hides no
/// new one.
void mark_familiar(const Baseline&, std::vector<Verification>&);

/// Marks the run's findings that the baseline has too (identity.h), and lists what the baseline has of the
/// run's kernels and the run has not.
void compare_with_baseline(const Baseline&, FuzzRun&);

}  // namespace assay
