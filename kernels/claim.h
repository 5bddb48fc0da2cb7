// A kernel for one case: a program, and what it claims that this program computes.
#pragma once
#include "kernels/kernel.h"

namespace assay {

/// What is right, and how wrong it may be. Nothing here is needed to run, check, trace, shadow or mutate the
/// program.
struct Claim {
  const ResolvedCase* of = nullptr;    ///< operator, direction, shapes and layouts of its arguments
  Arithmetic arithmetic;               ///< declared; of a run that goes forward
  AdjointArithmetic adjoint;           ///< and of one that goes backward
  bool exponents_nonpositive = false;  ///< Kernel::exponents_nonpositive
};

/// The case outlives the claim.
Claim claim_of(const Kernel&, const ResolvedCase&);

/// The launches for the case, what the kernel does not read in place copied before them. Throws BadInput
/// where the kernel's plan writes what the operator does not have.
Program program_of(const Kernel&, const ResolvedCase&, const TensorMap& inputs);

}  // namespace assay
