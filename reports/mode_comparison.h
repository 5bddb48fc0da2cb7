// Which of two kernels of a sweep is the more precise, and where.
#pragma once
#include <string>
#include <vector>

#include "reports/sweep_answers.h"

namespace assay {

/// A ratio estimated from paired runs: geometric mean and its 95 % confidence interval (Student's t on the
/// logarithms).
struct PairedRatio {
  double mean = 1, low = 1, high = 1;
  size_t pairs = 0;
  /// Both ends of the interval lie beyond a tenth on the same side of 1.
  bool differs() const { return pairs > 1 && (low > 1.1 || high < 1 / 1.1); }
};
PairedRatio paired_ratio(const std::vector<double>& numerators, const std::vector<double>& denominators);

/// Which kernel has the smaller root mean square error, at the shortest and at the longest length: a sentence
/// per format that names the winners by decay, and a table with the factors. The first kernel is compared
/// with each other one; without another there is nothing.
Answer which_kernel_is_more_precise(const Sweep&);

}  // namespace assay
