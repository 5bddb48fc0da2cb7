#include "src/base/vm/real_trigonometric.h"

#include <mpfr.h>

#include <cmath>

namespace assay::vm {
namespace {

using Function = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

/// f(x) - d by MPFR.
double precise_minus(Function f, double x, double d) {
  mpfr_t y;
  mpfr_init2(y, 128);
  mpfr_set_d(y, x, MPFR_RNDN);
  f(y, y, MPFR_RNDN);
  mpfr_sub_d(y, y, d, MPFR_RNDN);
  const double difference = mpfr_get_d(y, MPFR_RNDN);
  mpfr_clear(y);
  return difference;
}

/// sin(h) / h.
double cardinal_sine(double h) {
  return h == 0 ? 1 : std::sin(h) / h;
}

}  // namespace

double sine_minus(double x, double d) {
  return precise_minus(mpfr_sin, x, d);
}
// sin(x + e) - sin(x) = 2 cos(x + h) sin(h), h = e / 2; cos(x + h) expanded, since x + h would be rounded.
double sine_slope(double x, double e) {
  const double h = e / 2;
  return (std::cos(x) * std::cos(h) - std::sin(x) * std::sin(h)) * cardinal_sine(h);
}

double cosine_minus(double x, double d) {
  return precise_minus(mpfr_cos, x, d);
}
double cosine_slope(double x, double e) {
  const double h = e / 2;
  return -(std::sin(x) * std::cos(h) + std::cos(x) * std::sin(h)) * cardinal_sine(h);
}

double hyperbolic_tangent_minus(double x, double d) {
  return precise_minus(mpfr_tanh, x, d);
}
// tanh(x + e) - tanh(x) = sinh(e) / (cosh(x) cosh(x + e)); beyond |e| = 1 the plain difference loses nothing
// and overflows nowhere.
double hyperbolic_tangent_slope(double x, double e) {
  if (std::fabs(e) > 1) return (std::tanh(x + e) - std::tanh(x)) / e;
  return (e == 0 ? 1 : std::sinh(e) / e) / std::cosh(x) / std::cosh(x + e);
}

}  // namespace assay::vm
