// The arithmetic that a stranger's plan declares: a named preset, numbers of
// reference/arithmetic.def, or both.
#pragma once
#include "kernels/plan_document.h"
#include "reference/operator.h"
#include "src/base/document/expression.h"

namespace assay {

/// Preset first, then the fields written beside it. Throws BadInput for an unknown preset or field, a
/// negative or infinite value.
Arithmetic declared_arithmetic(const PlanDocument&, const ExpressionScope&);

/// Of gradients: what is not written mirrors the forward numbers, S and dL/dS alike, each readout as that of
/// o.
AdjointArithmetic declared_adjoint_arithmetic(const PlanDocument&, const ExpressionScope&);

}  // namespace assay
