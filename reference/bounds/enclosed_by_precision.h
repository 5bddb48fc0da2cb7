// Enclosures from an operator's transcription at growing precision, each run a point; how far it can be from
// the exact values follows from the operator's own bound of the same precision's arithmetic. Where balls
// would grow with |D + b a^T|. Heavy: include in sources only.
#pragma once
#include <mpfr.h>

#include <type_traits>

#include "reference/literal_slice.h"

namespace assay::precision {

inline double nearest(DoubleDouble x, double& rest) {
  rest = std::fabs(x.lo);
  return x.hi;
}
template <unsigned Digits>
double nearest(const Mpfr<Digits>& x, double& rest) {
  const double y = static_cast<double>(x);
  rest = std::fabs(static_cast<double>(Mpfr<Digits>(x - y))) * (1 + 0x1p-50);
  return y;
}

/// Whether MPFR rounded anything since the last clear_rounded(): what it did not is exact.
inline void clear_rounded() {
  mpfr_clear_inexflag();
}
template <typename Real>
bool has_rounded() {
  return std::is_same_v<Real, DoubleDouble> || mpfr_inexflag_p() != 0;
}

template <typename Values>
SliceBalls around(const Values& values, const SliceBounds& errors, bool rounded) {
  SliceBalls balls;
  Values::each(values, [&](std::string_view, const auto& m) {
    const auto& error = errors[balls.size()];
    auto& list = balls.emplace_back();
    for (Eigen::Index r = 0; r < m.rows(); ++r)
      for (Eigen::Index c = 0; c < m.cols(); ++c) {
        double rest;
        const double mid = nearest(m(r, c), rest);
        list.push_back({mid, rounded ? Ball<double>::raised(rest + error[list.size()].bound) : rest});
      }
  });
  return balls;
}

/// The slice's problem with this arithmetic declared, forward and backward.
struct Declared {
  Problem problem;
  SliceProblem slice;

  Declared(const SliceProblem& x, const Arithmetic& a) : problem(*x.problem), slice(x) {
    problem.arithmetic = a;
    AdjointArithmetic& d = problem.adjoint;
    d = {};
    d.state = d.adjoint = problem.arithmetic;
    d.value_readout = d.gate_readout = d.inner = problem.arithmetic.readout;
    slice.problem = &problem;
  }
  Declared(const Declared&) = delete;
};

template <typename Op, typename Real>
SliceBalls forward_at(const SliceProblem& x, const Arithmetic& a) {
  const Declared declared(x, a);
  clear_rounded();
  const auto values = forward_over<Op, Real>(x);
  const bool rounded = has_rounded<Real>();
  return around(values, Op::forward_bound(declared.slice), rounded);
}
template <typename Op, typename Real>
SliceBalls adjoint_at(const SliceProblem& x, const Arithmetic& a) {
  const Declared declared(x, a);
  clear_rounded();
  const auto values = adjoint_over<Op, Real>(x);
  const bool rounded = has_rounded<Real>();
  return around(values, Op::adjoint_bound(declared.slice), rounded);
}

/// Digits of MPFR's precisions here, and their roundoffs: 2^-(3.32 digits), less two bits.
inline constexpr unsigned kDigits = 60, kMoreDigits = 240;
inline constexpr double kRoundoff = 0x1p-197, kMoreRoundoff = 0x1p-790;

}  // namespace assay::precision

namespace assay {

/// What the transcription rounds, every operation by a relative error of at most `u`.
using Transcribed = Arithmetic (*)(double u, const SliceProblem&);

template <typename Op>
bool forward_by_precision(const SliceProblem& x, int level, Transcribed transcribed, SliceBalls& y) {
  using namespace precision;
  switch (level) {
    case 0:
      return y = forward_at<Op, DoubleDouble>(x, transcribed(kDoubleDoubleRoundoff, x)), true;
    case 1:
      return y = forward_at<Op, Mpfr<kDigits>>(x, transcribed(kRoundoff, x)), true;
    case 2:
      return y = forward_at<Op, Mpfr<kMoreDigits>>(x, transcribed(kMoreRoundoff, x)), true;
    default:
      return false;
  }
}

template <typename Op>
bool adjoint_by_precision(const SliceProblem& x, int level, Transcribed transcribed, SliceBalls& y) {
  using namespace precision;
  switch (level) {
    case 0:
      return y = adjoint_at<Op, DoubleDouble>(x, transcribed(kDoubleDoubleRoundoff, x)), true;
    case 1:
      return y = adjoint_at<Op, Mpfr<kDigits>>(x, transcribed(kRoundoff, x)), true;
    case 2:
      return y = adjoint_at<Op, Mpfr<kMoreDigits>>(x, transcribed(kMoreRoundoff, x)), true;
    default:
      return false;
  }
}

}  // namespace assay
