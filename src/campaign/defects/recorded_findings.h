// Findings kept to be replayed: one line each, "TOKEN CAUSE DIGEST", lines with # are prose.
#pragma once
#include <string>
#include <vector>

#include "src/campaign/defects/defect_trial.h"

namespace assay {

/// A cause without the number of the source line that it ends with: lines move where a source is edited.
std::string without_line(const std::string& cause);

struct RecordedFinding {
  std::string token, cause, digest;  ///< as in TokenReplay, the cause without its line

  /// It fails again, for the same cause and with the same bits, and passes on the clean kernel.
  bool repeated_by(const TokenReplay& replay) const {
    return replay.holds() && without_line(replay.cause) == cause && replay.digest == digest;
  }
};

/// Throws BadInput naming the file and a line that is not of this form.
std::vector<RecordedFinding> read_findings(const std::string& path);
void write_findings(const std::string& path, const std::vector<RecordedFinding>&);

}  // namespace assay
