// The gradients of simple_gla.fused_recurrent: launches and declared arithmetic.
#pragma once
#include "kernels/scalar/scalar_plan.h"

namespace assay::scalar {

void add_recurrent_gradients(ScalarPlan&);
AdjointArithmetic scalar_recurrent_adjoint_arithmetic(const ResolvedCase&);

}  // namespace assay::scalar
