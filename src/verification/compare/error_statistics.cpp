#include "src/verification/compare/error_statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "src/verification/compare/judge.h"

namespace assay {
namespace {

/// (largest, 99th percentile by nearest rank); reorders.
std::pair<double, double> extremes(std::vector<double>& values) {
  if (values.empty()) return {0, 0};
  const size_t rank = (values.size() * 99 + 99) / 100 - 1;  // ceil(0.99 n) - 1
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), at, values.end());
  return {*std::max_element(at, values.end()), *at};
}

}  // namespace

ErrorStatistics error_statistics(const Tensor& got, const ReferenceOutput& reference) {
  assert(got.axes == reference.axes && static_cast<int64_t>(reference.mid.size()) == got.size());
  ErrorStatistics s;
  s.output = reference.name;
  std::vector<double> errors, bounds, ratios, ulps;
  double squares = 0, exact_squares = 0, sum = 0, towards = 0;
  for (int64_t flat = 0; flat < got.size(); ++flat) {
    const double value = got.value(flat), mid = reference.mid[flat], bound = reference.bound[flat];
    if (!std::isfinite(value) || !std::isfinite(mid)) continue;
    const ElementJudgement j = judge(got.dtype, value, mid, reference.rad[flat], bound);
    const double difference = value - mid, error = std::fabs(difference);
    errors.push_back(error);
    if (std::isfinite(bound)) bounds.push_back(bound);
    if (std::isfinite(j.ratio) || j.verdict != ElementVerdict::undecided) ratios.push_back(j.ratio);
    const double rounded = std::min(std::fabs(round_to(got.dtype, mid)), max_finite(got.dtype));
    ulps.push_back(error / ulp(got.dtype, rounded));
    squares += difference * difference;
    exact_squares += mid * mid;
    sum += difference;
    towards += mid < 0 ? -difference : difference;
  }
  s.elements = static_cast<int64_t>(errors.size());
  if (s.elements == 0) return s;
  const auto n = static_cast<double>(s.elements);
  s.rms_error = std::sqrt(squares / n);
  s.rms_exact = std::sqrt(exact_squares / n);
  s.bias = sum / n;
  s.shrinkage = towards / n;
  std::tie(s.max_error, s.p99_error) = extremes(errors);
  std::tie(s.max_bound, s.p99_bound) = extremes(bounds);
  std::tie(s.max_ratio, s.p99_ratio) = extremes(ratios);
  std::tie(s.max_ulp, s.p99_ulp) = extremes(ulps);
  return s;
}

}  // namespace assay
