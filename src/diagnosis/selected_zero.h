// Whether the zero of a 0 * Inf was put there by a select: a lane that was to count for nothing.
#pragma once
#include <cstdint>
#include <string>

#include "src/plan/plan.h"
#include "src/tensor/tensor.h"
#include "src/vm/machine.h"
#include "src/vm/recording.h"

namespace assay {

/// Follows the zero that met an infinity in `event`, which stands behind element `flat` of `output`, back through
/// copies, conversions, memory and products, by a replay that keeps finite values too. True where it ends at a select
/// that chose a literal.
bool is_selected_zero(const Plan&, const TensorMap& inputs, const vm::MachineOptions&, const std::string& output,
                      int64_t flat, const vm::Event& event);

}  // namespace assay
