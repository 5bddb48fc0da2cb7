// A delta rule that reads after its decay, evaluated tile by tile in doubles with a step of it changed: what
// the operator itself, on changed inputs, cannot say.
#pragma once
#include <optional>

#include "src/verification/diagnosis/meanings/rule_change.h"

namespace assay {

/// Is it such a rule, with one rate per head, and small enough?
bool is_delta_rule(const FailingRun&);
/// Of such a rule, or of the general one (general_run.h).
std::optional<Prediction> evaluate_rule(const FailingRun&, const RuleChange&);

}  // namespace assay
