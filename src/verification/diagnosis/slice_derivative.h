// How the value of an instance moves with what it takes.
#pragma once
#include <vector>

#include "src/base/vm/value_slice.h"

namespace assay {

/// By operand of the slice: the derivative of the instance that takes it. What moves bits has the derivative
/// 1 (a packed register, whose halves travel together, that of their sum); factors of an exact 0 have 0, and
/// so have halves that repeat an operand and what has no finite derivative.
std::vector<double> operand_slopes(const vm::ValueSlice&);

}  // namespace assay
