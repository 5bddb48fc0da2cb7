// What the chunked plans share: the same arithmetic, and for gradients the same launches.
#pragma once
#include "kernels/scalar/scalar_plan.h"

namespace assay::scalar {

Arithmetic scalar_chunk_arithmetic(const ResolvedCase&);
/// One line for a kernel's row.
extern const char* const scalar_chunk_arithmetic_text;

/// The outputs in chunks: a scan, then a launch of all chunks.
void add_chunk_forward(ScalarPlan&);
/// The gradients in chunks.
void add_chunk_gradients(ScalarPlan&);

/// A kernel of this arithmetic; the functions add what runs forward, and what makes gradients.
Kernel chunked_kernel(const Member&, const std::string& mode, const std::string& summary,
                      void (*add_forward)(ScalarPlan&),
                      void (*add_gradients)(ScalarPlan&) = add_chunk_gradients);

AdjointArithmetic scalar_chunk_adjoint_arithmetic(const ResolvedCase&);

}  // namespace assay::scalar
