// Undecided elements that are no verdict on the kernel, because of what its inputs are.
#pragma once
#include "src/case/resolved_case.h"
#include "src/verification/verify/judgement.h"

namespace assay {

/// Where the inputs leave the operator's domain by what they make states grow (reference/domain.h). Only
/// where elements are undecided, and each of them uses a state or an adjoint of its own sequence and head
/// that grew so by then, and holds a number where the right value is one. What was decided stays as it was.
void excuse_growth(const ResolvedCase&, const ProgramRun&, const Judgement&, const TensorMap& inputs,
                   Verification&);

/// Where roundings that the kernel declares may lose the state of these very inputs
/// (reference/safe_range.h): no bound could be narrower than the values. Only where every undecided element
/// holds a finite value, lacks nothing but a bound, belongs to an output whose formula is right, and uses a
/// state or an adjoint of its own sequence and head that may be lost there. A NaN, a wrong formula, one that
/// nobody judged, and what happens elsewhere stay undecided.
void excuse_lost_states(const ResolvedCase&, const ProgramRun&, const Judgement&, const TensorMap& inputs,
                        Verification&);

}  // namespace assay
