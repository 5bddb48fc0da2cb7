// The verdict on one element.
#pragma once
#include "src/verification/compare/compare.h"

namespace assay {

/// One stored value against its enclosure [mid - rad, mid + rad] and the bound around it.
struct ElementJudgement {
  ElementVerdict verdict;
  double error;  ///< |got - mid|; infinite where either is not finite
  double ratio;  ///< error / bound; 0 for an exact element, infinite for a wrong class
};

/// A verdict `ok` needs a radius of at most 2^-10 of the bound (0 where the bound is 0), so that the
/// enclosure decides nothing. An exact value that overflows the output's format asks for an infinity of its
/// sign.
inline constexpr double kNarrowEnclosure = 0x1p-10;
ElementJudgement judge(Dtype dtype, double got, double mid, double rad, double bound);
/// The same of a format whose overflow_threshold is given.
ElementJudgement judge_beside(double threshold, double got, double mid, double rad, double bound);
/// Smallest magnitude that rounds to infinity: half a unit beyond the largest finite number.
double overflow_threshold(Dtype dtype);

}  // namespace assay
