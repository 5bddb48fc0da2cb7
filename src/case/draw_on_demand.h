// Parts of what a case draws: single elements, what may lie outside a domain, shapes alone.
#pragma once
#include "src/case/resolved_case.h"

namespace assay {

/// One input of draw_inputs, its elements made when they are asked for. Overrides are not in it.
Tensor draw_on_demand(const SizedArgument&, const ResolvedCase&);

/// Those of draw_inputs that may lie outside an operator's domain or a kernel's limits: log decays and rates;
/// all where single elements are changed.
TensorMap draw_limited_inputs(const ResolvedCase&);

/// The inputs that are there without their values: plans ask for no more.
TensorMap inputs_without_values(const ResolvedCase&);

}  // namespace assay
