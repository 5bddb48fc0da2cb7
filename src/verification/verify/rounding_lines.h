// Where no formula is wrong: which source lines round too much.
#pragma once
#include <vector>

#include "kernels/claim.h"
#include "src/base/program/program.h"
#include "src/result/suspect_line.h"
#include "src/verification/verify/verify.h"

namespace assay {

/// The lines whose roundings make most of the errors, and behind those of the program, where they are few,
/// those of the same without optimisation: a value that is rounded twice may stand at the later place alone.
std::vector<SuspectLine> lines_of_rounding(const Kernel&, const Program&, const TensorMap& inputs,
                                           const VerifyOptions&, const Verification&);

}  // namespace assay
