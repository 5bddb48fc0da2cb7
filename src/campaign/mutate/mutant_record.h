// What became of one mutant as JSON, for the journal of a mutation run.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "src/campaign/mutate/trial_of_mutant.h"

namespace assay {

nlohmann::json to_json(const MutantResult&);
/// Throws BadInput for what to_json does not write.
MutantResult mutant_result_from_json(const nlohmann::json&);

}  // namespace assay
