// Distribution of the errors of one output over its elements: what a sweep plots.
#pragma once
#include <cstdint>
#include <string>

#include "reference/operator.h"
#include "src/base/tensor/tensor.h"

namespace assay {

/// Errors are |got - mid|, absolute and in the unit of the output. Elements where the kernel or the reference
/// is not finite take no part; the counts of the comparison say how many those are. An exact element has
/// ratio 0. p99: the smallest value that 99 % of the elements do not exceed.
struct ErrorStatistics {
  std::string output;
  int64_t elements = 0;  ///< that take part
  double max_error = 0, p99_error = 0;
  double max_bound = 0, p99_bound = 0;  ///< of finite bounds
  double max_ratio = 0, p99_ratio = 0;  ///< error / bound
  double max_ulp = 0, p99_ulp = 0;      ///< error in units in the last place of the exact value rounded
  double rms_error = 0, rms_exact = 0;
  double bias = 0;       ///< mean of got - mid: 0 where roundings cancel
  double shrinkage = 0;  ///< mean of (got - mid) * sign(mid): negative where results come out too small
};

/// Axes must agree.
ErrorStatistics error_statistics(const Tensor& got, const ReferenceOutput& reference);

}  // namespace assay
