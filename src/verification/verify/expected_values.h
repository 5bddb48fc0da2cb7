// Outputs of a program held against values that somebody says are right.
#pragma once
#include "src/result/verification.h"

namespace assay {

/// Into Verification::outputs, one comparison per tensor of `expected`: an element may be off by `tolerance`
/// times (|expected| + the root mean square of the finite expected values); 0: every bit must agree. NaN
/// agrees with NaN, an infinity with the same one. Throws BadInput for a tensor that the run does not write
/// or that has another number of elements.
void hold_against_expected(const TensorMap& written, const TensorMap& expected, double tolerance,
                           Verification&);

}  // namespace assay
