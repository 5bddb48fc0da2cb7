// Findings kept to be replayed: one line each, "TOKEN CAUSE DIGEST", lines with # are prose.
#pragma once
#include <string>
#include <vector>

#include "src/cli/defect_trial.h"

namespace assay::cli {

struct StoredFinding {
  std::string token, cause, digest;  ///< as in TokenReplay

  /// It fails again, for the same cause and with the same bits, and passes on the clean kernel.
  bool repeated_by(const TokenReplay& replay) const {
    return replay.holds() && replay.cause == cause && replay.digest == digest;
  }
};

/// Throws BadInput naming the file and a line that is not of this form.
std::vector<StoredFinding> read_findings(const std::string& path);
void write_findings(const std::string& path, const std::vector<StoredFinding>&);

}  // namespace assay::cli
