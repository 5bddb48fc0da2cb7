// Outputs that anybody made for given inputs, judged as a kernel's are: reference, bound, statistics, named
// causes.
#pragma once
#include "kernels/kernel.h"
#include "src/verification/verify/verify.h"

namespace assay {

/// `declares`: whose arithmetic is declared; its limits and launches do not count. Outputs may have any
/// floating-point format: one coarser than the case's is allowed its rounding. Throws BadInput where the
/// kernel declares nothing of the case's direction.
Verification judge_outputs(const Case&, const Kernel& declares, const TensorMap& inputs,
                           const TensorMap& outputs, const VerifyOptions&);

}  // namespace assay
