// Rung 1 of the forward evaluation: double-double.
#pragma once
#include <vector>

#include "reference/gated_forward.h"
#include "reference/gated_kernels.h"

namespace assay {

/// At most kForwardColumns columns at once. As in rung 0 the radius is gamma_n times the companion; the
/// exponential counts as error / roundoff = 128 of the n roundings.
std::vector<ColumnOutputs> precise_columns(const KeyInputs&, const std::vector<ColumnInputs>&);

}  // namespace assay
