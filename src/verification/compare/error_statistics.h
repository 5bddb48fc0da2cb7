// Distribution of the errors of one output over its elements: what a sweep plots.
#pragma once
#include "reference/operator.h"
#include "src/base/tensor/tensor.h"
#include "src/result/comparison.h"

namespace assay {

/// Axes must agree.
ErrorStatistics error_statistics(const Tensor& got, const ReferenceOutput& reference);

}  // namespace assay
