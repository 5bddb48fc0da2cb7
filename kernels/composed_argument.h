// Arguments of a stranger's plan that are more than a scalar or a pointer: structs, bytes and tensor maps, as
// launch files write them (src/capsule/launch_arguments.h), over the tensors of one case.
#pragma once
#include "kernels/foreign_plan.h"

namespace assay {

/// The argument of a launch for this case. Throws BadInput naming file and place.
Argument composed_argument(const ForeignKernel&, const ArgumentEntry&, const ResolvedCase&,
                           const ExpressionScope&);

}  // namespace assay
