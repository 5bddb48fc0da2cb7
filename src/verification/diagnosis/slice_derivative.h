// How an output element moves with the values of the instances behind it: derivatives carried back through a
// slice.
#pragma once
#include <vector>

#include "src/base/vm/value_slice.h"

namespace assay {

/// By instance. What moves bits has the derivative 1 (a packed register, whose halves travel together, that
/// of their sum); factors of an exact 0 have 0.
std::vector<double> derivatives_of(const vm::ValueSlice&);

}  // namespace assay
