// What a sweep has shown, in sentences computed from its cells alone.
#pragma once
#include <string>
#include <vector>

#include "reports/sweep_result.h"

namespace assay {

struct Answer {
  std::string question;  ///< "Which gates are safe?"
  std::vector<std::string> sentences;
};

/// Safe gates; up to which length the error stays within the tolerance; which kernel is more precise where;
/// where error and bound part. A question that the sweep cannot answer (one kernel, one length) is left out.
std::vector<Answer> answers(const Sweep&);

/// Tolerance of an output's largest error relative to its root mean square: the sweep's own, else 8 units
/// roundoff of bf16 and fp16, and 64 of fp32, whose outputs are the accumulators themselves.
double tolerance_of(const Sweep&, Dtype);

/// Least-squares slope of log2(y) against log2(x), for "grows as T^slope". Needs two positive points with
/// different x; NaN otherwise.
double growth(const std::vector<double>& x, const std::vector<double>& y);

/// A ratio estimated from paired runs: geometric mean and its 95 % confidence interval (Student's t on the
/// logarithms).
struct PairedRatio {
  double mean = 1, low = 1, high = 1;
  size_t pairs = 0;
  /// Both ends of the interval lie beyond a tenth on the same side of 1.
  bool differs() const { return pairs > 1 && (low > 1.1 || high < 1 / 1.1); }
};
PairedRatio paired_ratio(const std::vector<double>& numerators, const std::vector<double>& denominators);

}  // namespace assay
