// How far a value is from where it should be.
#pragma once
#include "src/numerics/format.h"

namespace assay {

struct ErrorMeasures {
  double absolute = 0;  ///< |got - expected|
  double relative = 0;  ///< absolute / |expected|; infinite where expected is 0 and got is not
  double ulps = 0;      ///< absolute / ulp(expected rounded to the format)
};

/// NaN where either is NaN; two infinities of one sign are equal; otherwise an infinity is infinitely far.
ErrorMeasures measure_error(Dtype dtype, double got, double expected);

/// What is left of |got - mid| for the kernel to answer for, once the enclosure [mid - rad, mid + rad] is
/// given the benefit of the doubt: max(0, |got - mid| - rad).
double distance_to_enclosure(double got, double mid, double rad);

}  // namespace assay
