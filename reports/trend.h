// How fuzz runs of one database follow each other: error over bound and findings, by commit.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "src/result/fuzz_run.h"

namespace assay {

/// A result of kind "trend": per run its counts and, per kernel and format, the largest error over bound; per
/// finding (by identity) the runs it was seen in. `runs` are the oldest first.
nlohmann::json trend_of(const std::vector<StoredRun>& runs);

}  // namespace assay
