#include "src/verification/compare/judge.h"

#include <cmath>
#include <limits>

namespace assay {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ElementJudgement judge_finite(double got, double mid, double rad, double bound) {
  const double error = std::fabs(got - mid);
  const double ratio = error == 0 ? 0 : error / bound;
  // The subtraction rounds by at most 2^-53 of its result; 2^-52 covers that and the additions below.
  const double slack = error * 0x1p-52;
  if (error - slack - rad > bound) return {ElementVerdict::violation, error, ratio};
  const bool narrow = rad <= kNarrowEnclosure * bound;
  if (narrow && error + slack + rad <= bound) return {ElementVerdict::ok, error, ratio};
  return {ElementVerdict::undecided, error, ratio};
}

}  // namespace

double overflow_threshold(Dtype dtype) {
  const Format& f = format(dtype);
  return max_finite(dtype) + std::ldexp(1.0, f.max_exponent - f.precision);
}

ElementJudgement judge(Dtype dtype, double got, double mid, double rad, double bound) {
  return judge_beside(overflow_threshold(dtype), got, mid, rad, bound);
}

ElementJudgement judge_beside(double threshold, double got, double mid, double rad, double bound) {
  if (!std::isfinite(mid) || !(rad >= 0) || !(bound >= 0) || std::isinf(rad) || std::isinf(bound)) {
    return {ElementVerdict::undecided, kInfinity, kInfinity};
  }
  const bool must_overflow = std::fabs(mid) - rad - bound >= threshold;
  if (std::isnan(got)) return {ElementVerdict::nonfinite, kInfinity, kInfinity};
  if (std::isinf(got)) {
    // Either infinity is right where the bound reaches beyond the format on its side, whatever the sign of
    // mid.
    const bool reached = (got > 0 ? mid : -mid) + rad + bound >= threshold;
    if (!reached)
      return {must_overflow ? ElementVerdict::wrong_class : ElementVerdict::nonfinite, kInfinity, kInfinity};
    if (must_overflow || rad <= kNarrowEnclosure * bound) return {ElementVerdict::ok, 0, 0};
    return {ElementVerdict::undecided, kInfinity, kInfinity};
  }
  if (must_overflow) return {ElementVerdict::wrong_class, kInfinity, kInfinity};
  return judge_finite(got, mid, rad, bound);
}

}  // namespace assay
