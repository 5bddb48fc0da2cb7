// What the plans of the gates share that models make from their inputs.
#pragma once
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace assay::elementwise {

/// "<operator>.fused", with the module of its folder and the operator's outputs. Throws BadInput where the
/// case is outside the kernel's limits.
Program gate_plan(const std::string& operator_name, const ResolvedCase&);
/// So many threads per block; nothing where there are no blocks.
void add_launch(Program&, const std::string& function, int64_t blocks, int threads,
                std::vector<Argument> arguments);
/// One launch per direction of a map over all elements (each.cuh), functions called as the operator and
/// "<operator>_backward". `gate`: the output's name; `numbers`: scalars between the tensors and the count.
Program mapped_plan(const std::string& operator_name, const std::string& gate, const ResolvedCase&,
                    const std::vector<Argument>& numbers);

/// A row of kernels.def up to its plan and arithmetic.
Kernel gate_kernel(const std::string& operator_name);
/// Nothing flushes; the result is stored with one rounding more. `error`: of the gate, and of dx.
Arithmetic gate_arithmetic(const ResolvedCase&, double error);
AdjointArithmetic gate_adjoint_arithmetic(const ResolvedCase&, double error);

}  // namespace assay::elementwise
