// One output in exact arithmetic against its reference. Allowed between them are
//   the reference's radius,
//   the exact run's slack (src/base/vm/exact_run.cpp: the shadow's own rounding, constants, series that end),
//   what both were computed by: doubles, whose roundings repeat and add up where tokens or keys repeat each
//     other; 2^-44 of the output's root mean square, or of a larger element, is some hundred of them in one
//     direction,
//   what underflows: fp32's smallest normal number, and the declared underflow as it reaches the output.
#pragma once
#include "reference/operator.h"
#include "src/base/tensor/tensor.h"
#include "src/base/vm/exact_run.h"
#include "src/result/formula.h"

namespace assay {

/// The root mean square of an output's finite elements.
double size_of(const ReferenceOutput&);
/// All of that for one element of an output of that size.
double allowed_difference(const Tensor& like, const vm::ExactOutput&, const ReferenceOutput&, double size,
                          size_t element);

/// `like`: the program's output, for its axes and names.
FormulaOutput compare_formula(const Tensor& like, const vm::ExactOutput&, const ReferenceOutput&);

}  // namespace assay
