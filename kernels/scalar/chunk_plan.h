// What the chunked plans share: the same arithmetic, and for gradients the same launches.
#pragma once
#include "kernels/scalar/scalar_plan.h"

namespace assay::scalar {

/// A kernel whose gradients are those in chunks; `add_forward` adds what runs forward.
Kernel chunked_kernel(const Member&, const std::string& mode, const std::string& summary,
                      void (*add_forward)(ScalarPlan&));

Arithmetic scalar_chunk_arithmetic(const ResolvedCase&);
/// One line for a kernel's row.
extern const char* const scalar_chunk_arithmetic_text;

/// The gradients in chunks.
void add_chunk_gradients(ScalarPlan&);
AdjointArithmetic scalar_chunk_adjoint_arithmetic(const ResolvedCase&);

}  // namespace assay::scalar
