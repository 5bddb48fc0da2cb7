// One output in exact arithmetic against its reference.
#pragma once
#include "reference/operator.h"
#include "src/base/tensor/tensor.h"
#include "src/base/vm/exact_run.h"
#include "src/result/formula.h"

namespace assay {

/// `like`: the program's output, for its axes and names.
FormulaOutput compare_formula(const Tensor& like, const vm::ExactOutput&, const ReferenceOutput&);

}  // namespace assay
