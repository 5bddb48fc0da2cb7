// Single elements of an input that a case draws.
#pragma once
#include "src/case/resolved_case.h"

namespace assay {

/// One input of draw_inputs, its elements made when they are asked for. Overrides are not in it.
Tensor draw_on_demand(const SizedArgument&, const ResolvedCase&);

}  // namespace assay
