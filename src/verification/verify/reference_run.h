// The reference of one case: the operator evaluated over its inputs, with the bounds of the kernel's
// arithmetic.
#pragma once
#include "kernels/claim.h"

namespace assay {

/// The claim over these inputs: what the operator is asked, in the arithmetic that the kernel declares;
/// threads <= 0:
/// all cores.
Problem declared_problem(const Claim&, const TensorMap& inputs, int threads);

/// Outputs and gradients, as the case's direction asks. An exact case asks for equality bit for bit: no
/// operation rounds, so the arithmetic declares no error but the storing of dg, which may need more bits than
/// its format has.
ReferenceResult evaluate_reference(const ResolvedCase&, const Problem& declared);

}  // namespace assay
