// One output in exact arithmetic against its reference. Allowed between them are
//   the reference's radius,
//   the exact run's slack (src/base/vm/exact_run.cpp: the shadow's own rounding, constants, series that end),
//   what underflows: fp32's smallest normal number, and the declared underflow as it reaches the output.
#pragma once
#include "reference/operator.h"
#include "src/base/tensor/tensor.h"
#include "src/base/vm/exact_run.h"
#include "src/result/formula.h"

namespace assay {

/// All of that for one element.
double allowed_difference(const Tensor& like, const vm::ExactOutput&, const ReferenceOutput&, size_t element);

/// `like`: the program's output, for its axes and names.
FormulaOutput compare_formula(const Tensor& like, const vm::ExactOutput&, const ReferenceOutput&);

}  // namespace assay
