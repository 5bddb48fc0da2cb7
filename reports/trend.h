// How fuzz runs of one database follow each other: error over bound and findings, by commit.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/result.h"

namespace assay {

/// A run as it was stored: by which commit of this program, and when it began (UTC, "2025-01-31 12:00:00").
struct StoredRun {
  std::string commit, started;
  FuzzRun run;
};

/// A result of kind "trend": per run its counts and, per kernel and format, the largest error over bound; per
/// finding (by identity) the runs it was seen in. `runs` are the oldest first.
nlohmann::json trend_of(const std::vector<StoredRun>& runs);

}  // namespace assay
