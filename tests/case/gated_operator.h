// An operator row with the arguments of a gated recurrence and no mathematics, for tests of what happens
// around it.
#pragma once
#include <cmath>

#include "reference/operator.h"

namespace assay {

inline Operator gated_operator() {
  Operator op;
  op.name = "gated";
  op.summary = "arguments of a gated recurrence";
  op.formula = "o_t = scale S_t^T q_t";
  op.inputs = {{"q", {"B", "T", "H", "K"}, Role::value},
               {"k", {"B", "T", "H", "K"}, Role::value},
               {"v", {"B", "T", "H", "V"}, Role::value},
               {"g", {"B", "T", "H", "K"}, Role::log_decay, true},
               {"initial_state", {"N", "H", "K", "V"}, Role::state, true}};
  op.outputs = {{"o", {"B", "T", "H", "V"}, Role::output},
                {"final_state", {"N", "H", "K", "V"}, Role::state}};
  op.default_scale = [](const Sizes& s) { return 1 / std::sqrt(static_cast<double>(s.K)); };
  return op;
}

}  // namespace assay
