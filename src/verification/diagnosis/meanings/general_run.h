// The general delta rule (rwkv7), which reads with a before its decay and writes b times that, evaluated tile
// by tile in doubles with a step of it changed: updates u_i = S_{i-1}^T a_i of a tile are (1 + N) u = y,
// N_ij = -a_i^T e^.. b_j below the diagonal, y what is read without them; backwards z_i = G_i^T b_i likewise.
#pragma once
#include <optional>

#include "src/verification/diagnosis/meanings/rule_change.h"

namespace assay {

/// Is it such a rule, and small enough (rule_change.h)?
bool is_general_rule(const FailingRun&);
/// Of the change `taken`, `written` and `read_before_decay` have no meaning here.
std::optional<Prediction> evaluate_general(const FailingRun&, const RuleChange&);

}  // namespace assay
