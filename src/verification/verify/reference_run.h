// The reference of one case: the operator evaluated over its inputs, with the bounds of the kernel's arithmetic.
#pragma once
#include "kernels/kernel.h"
#include "reference/operator.h"
#include "src/case/case.h"

namespace assay {

/// What the kernel declares of its arithmetic, over the case's inputs; threads <= 0: all cores.
Problem declared_problem(const Case&, const Kernel&, const Operator&, const TensorMap& inputs, int threads);

/// Outputs and gradients, as the case's direction asks. An exact case asks for equality bit for bit: no operation
/// rounds, so the arithmetic declares no error but the storing of dg, which may need more bits than its format
/// has.
ReferenceResult evaluate_reference(const Case&, const Operator&, const Problem& declared);

}  // namespace assay
