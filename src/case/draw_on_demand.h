// Single elements of an input that a case draws.
#pragma once
#include "src/case/case.h"

namespace assay {

/// One input of draw_inputs, which need not be present, its elements made when they are asked for. Overrides are
/// not in it.
Tensor draw_on_demand(const ArgumentSpec&, const Case&, const Operator&);

}  // namespace assay
