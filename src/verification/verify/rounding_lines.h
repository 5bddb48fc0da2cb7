// Where no formula is wrong: which source lines round too much.
#pragma once
#include <vector>

#include "kernels/claim.h"
#include "src/base/program/program.h"
#include "src/result/suspect_line.h"
#include "src/verification/verify/verify.h"

namespace assay {

/// The lines whose roundings make most of the errors, of the program and of the same compiled without
/// optimisation in turn: where a value is rounded twice the optimised one may stand at the later place alone.
std::vector<SuspectLine> lines_of_rounding(const Kernel&, const Program&, const TensorMap& inputs,
                                           const VerifyOptions&, const Verification&);

}  // namespace assay
