// MPFR numbers and MPFI intervals. Heavy: include in sources, not in headers.
#pragma once
#include <boost/multiprecision/eigen.hpp>
#include <boost/multiprecision/mpfi.hpp>
#include <boost/multiprecision/mpfr.hpp>

#include "src/base/numerics/ball.h"

namespace assay {

/// Fixed precision, so that threads share no state; Digits decimal digits (256 bits: 77). Expression
/// templates are off: Eigen and the operators' templates want plain values.
template <unsigned Digits>
using Mpfr = boost::multiprecision::number<boost::multiprecision::mpfr_float_backend<Digits>,
                                           boost::multiprecision::et_off>;

/// Every operation rounds outwards: the exact value stays inside.
template <unsigned Digits>
using Interval = boost::multiprecision::number<boost::multiprecision::mpfi_float_backend<Digits>,
                                               boost::multiprecision::et_off>;

/// Smallest [mid - rad, mid + rad] with double mid and rad around an interval; rad = inf for NaN.
template <unsigned Digits>
Ball<double> enclose(const Interval<Digits>& x) {
  mpfr_t difference;
  mpfr_init2(difference, mpfi_get_prec(x.backend().data()));
  Ball<double> ball;
  ball.mid = mpfi_get_d(x.backend().data());
  mpfr_sub_d(difference, &x.backend().data()->right, ball.mid, MPFR_RNDU);
  const double above = mpfr_get_d(difference, MPFR_RNDU);
  mpfr_sub_d(difference, &x.backend().data()->left, ball.mid, MPFR_RNDD);
  const double below = -mpfr_get_d(difference, MPFR_RNDD);
  mpfr_clear(difference);
  ball.rad = above > below ? above : below;
  if (!(ball.rad >= 0)) ball.rad = __builtin_inf();
  return ball;
}

}  // namespace assay
