// Enclosures of rwkv7: its transcription at growing precision, each run a point; how far it can be from the
// exact values follows from the norm-wise bound of the same precision's arithmetic. Balls would grow with |D
// + b a^T|.
#include <mpfr.h>

#include <type_traits>

#include "reference/literal_slice.h"
#include "reference/operators/rwkv7.h"

namespace assay {
namespace {

/// Every operation of the transcription has a relative error of at most `u`, the exponential 2^7 u.
Arithmetic transcribed(double u, const SliceProblem& x) {
  const auto K = static_cast<double>(x.inputs[Rwkv7::In::r].columns),
             V = static_cast<double>(x.inputs[Rwkv7::In::v].columns);
  Arithmetic a;
  a.decay = 130 * u, a.write = 3 * u, a.step = 3 * u, a.removal = (K + 6) * u, a.readout = (K + V + 6) * u;
  return a;
}

double nearest(DoubleDouble x, double& rest) {
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
void clear_rounded() {
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

/// The slice's problem with the arithmetic of precision `u` declared.
struct Declared {
  Problem problem;
  SliceProblem slice;

  Declared(const SliceProblem& x, double u) : problem(*x.problem), slice(x) {
    problem.arithmetic = transcribed(u, x);
    AdjointArithmetic& d = problem.adjoint;
    d = {};
    d.state = d.adjoint = problem.arithmetic;
    d.value_readout = d.gate_readout = d.inner = problem.arithmetic.readout;
    slice.problem = &problem;
  }
  Declared(const Declared&) = delete;
};

template <typename Real>
SliceBalls forward_at(const SliceProblem& x, double u) {
  const Declared declared(x, u);
  clear_rounded();
  const auto values = forward_over<Rwkv7, Real>(x);
  const bool rounded = has_rounded<Real>();
  return around(values, Rwkv7::forward_bound(declared.slice), rounded);
}
template <typename Real>
SliceBalls adjoint_at(const SliceProblem& x, double u) {
  const Declared declared(x, u);
  clear_rounded();
  const auto values = adjoint_over<Rwkv7, Real>(x);
  const bool rounded = has_rounded<Real>();
  return around(values, Rwkv7::adjoint_bound(declared.slice), rounded);
}

/// Digits of MPFR's precisions here, and their roundoffs: 2^-(3.32 digits), less two bits.
constexpr unsigned kDigits = 60, kMoreDigits = 240;
constexpr double kRoundoff = 0x1p-197, kMoreRoundoff = 0x1p-790;

}  // namespace

bool Rwkv7::enclose_forward(const SliceProblem& x, int level, SliceBalls& y) {
  switch (level) {
    case 0:
      return y = forward_at<DoubleDouble>(x, kDoubleDoubleRoundoff), true;
    case 1:
      return y = forward_at<Mpfr<kDigits>>(x, kRoundoff), true;
    case 2:
      return y = forward_at<Mpfr<kMoreDigits>>(x, kMoreRoundoff), true;
    default:
      return false;
  }
}

bool Rwkv7::enclose_adjoint(const SliceProblem& x, int level, SliceBalls& y) {
  switch (level) {
    case 0:
      return y = adjoint_at<DoubleDouble>(x, kDoubleDoubleRoundoff), true;
    case 1:
      return y = adjoint_at<Mpfr<kDigits>>(x, kRoundoff), true;
    case 2:
      return y = adjoint_at<Mpfr<kMoreDigits>>(x, kMoreRoundoff), true;
    default:
      return false;
  }
}

}  // namespace assay
