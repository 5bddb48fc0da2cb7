// A case of an operator made of the caller's tensors: sizes are read from their shapes.
#pragma once
#include "kernels/kernel.h"
#include "src/binding/operations.h"
#include "src/case/given_inputs.h"
#include "src/verification/verify/verify.h"

namespace assay::binding {

struct CaseOfTensors {
  const Operator* op = nullptr;
  const Kernel* kernel = nullptr;  ///< where "name" is one
  GivenInputs given;               ///< its notes say what was rounded, too
};

/// Of {"name", "direction", "scale", "parameters", "layout", "heads", "dtype", "gate_dtype"} and the arrays.
/// fp64 is rounded to fp32, or to what "dtype" and "gate_dtype" ask for, and that is noted. Throws BadInput.
CaseOfTensors case_of_tensors(const Request&);

/// The kernel whose arithmetic is declared: "arithmetic" is a kernel's name, a preset, or an object of
/// numbers and expressions of reference/arithmetic.def; absent: the case's own kernel, or the operator's
/// first that takes it.
Kernel declaring_kernel(const Request&, const CaseOfTensors&);

/// No kernel but its declared arithmetic: of a kernel's name, a preset, or an object of numbers and
/// expressions, in which "backward" may hold those of gradients; null: of the operator's first kernel. Throws
/// BadInput.
Kernel declared_kernel(const nlohmann::json& arithmetic, const Operator&);

/// What every verification asks for, as `assay verify` does; "arch" and "threads" as the request has them.
VerifyOptions verify_options(const Request&);
vm::MachineOptions machine_options(const Request&);

}  // namespace assay::binding
