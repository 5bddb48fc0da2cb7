// A campaign over known defects: each is fuzzed without a hint; or their recorded findings are replayed.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/campaign/defects/defect_trial.h"
#include "src/campaign/defects/recorded_findings.h"

namespace assay {

struct DefectsOptions {
  DefectTrialOptions each;
  int together = 1;                           ///< defects at once
  std::map<std::string, std::string> tokens;  ///< by defect: explained in place of a search
  /// Trials are appended here and read back when the same campaign is asked for again; empty: not kept.
  std::filesystem::path journal;
};

/// The trial of this defect with the patch that it has now; null: there is none.
const DefectTrial* trial_of(const Defect&, const std::vector<DefectTrial>&);

/// Tries the defects that `trials` holds no trial of. Each trial takes the place of one of another patch;
/// then `tried` is called, one call at a time. Interrupted: those that were done are there.
void try_defects(const std::vector<const Defect*>&, const DefectsOptions&, std::vector<DefectTrial>& trials,
                 const std::function<void(const DefectTrial&)>& tried);

/// In the order of the findings; of those that an interruption left out an empty one. `replayed` is called
/// one call at a time, in any order.
std::vector<TokenReplay> replay_findings(
    const std::vector<RecordedFinding>&, const DefectsOptions&,
    const std::function<void(const RecordedFinding&, const TokenReplay&)>& replayed);

}  // namespace assay
