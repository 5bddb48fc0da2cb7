#include "src/numerics/error_measures.h"

#include <cmath>

namespace assay {

ErrorMeasures measure_error(Dtype dtype, double got, double expected) {
  if (std::isnan(got) || std::isnan(expected)) return {NAN, NAN, NAN};
  if (got == expected) return {};
  if (std::isinf(got) || std::isinf(expected)) return {HUGE_VAL, HUGE_VAL, HUGE_VAL};
  const double absolute = std::fabs(got - expected);
  return {absolute, expected == 0 ? HUGE_VAL : absolute / std::fabs(expected),
          absolute / ulp(dtype, round_to(dtype, expected))};
}

double distance_to_enclosure(double got, double mid, double rad) {
  const double distance = std::fabs(got - mid) - rad;
  return std::isnan(distance) ? distance : std::fmax(0.0, distance);
}

}  // namespace assay
