// An operator's transcription over any number type, for one slice. Heavy: include in sources only.
#pragma once
#include <algorithm>

#include "reference/literal_evaluation.h"
#include "reference/operator_traits.h"
#include "src/base/numerics/eigen_traits.h"
#include "src/base/numerics/multiprecision.h"

namespace assay {

inline Ball<double> to_ball(const Ball<double>& x) {
  return x;
}
inline Ball<double> to_ball(const Ball<DoubleDouble>& x) {
  return {x.mid.hi, Ball<double>::raised(x.rad + std::fabs(x.mid.lo))};
}
template <unsigned Digits>
Ball<double> to_ball(const Interval<Digits>& x) {
  return enclose<Digits>(x);
}

template <typename Real>
Matrix<Real> to_matrix(const double* x, int64_t rows, int64_t columns) {
  Matrix<Real> m(rows, columns);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) m(r, c) = Real(x[r * columns + c]);
  return m;
}

/// Row by row into `out`, which grows.
template <typename Real>
void append_balls(const Matrix<Real>& m, std::vector<Ball<double>>& out) {
  for (Eigen::Index r = 0; r < m.rows(); ++r)
    for (Eigen::Index c = 0; c < m.cols(); ++c) out.push_back(to_ball(m(r, c)));
}

/// The scale, and what an operator's inputs take from a problem beside tensors (OperatorType).
template <typename Inputs>
void take_settings(const SliceProblem& x, Inputs& in) {
  using Real = decltype(in.scale);
  in.scale = Real(x.scale);
  in.take(x);
}

template <typename Op, typename Real>
typename Op::template Inputs<Real> slice_inputs(const SliceProblem& x) {
  using Inputs = typename Op::template Inputs<Real>;
  Inputs in;
  size_t i = 0;
  Inputs::each(in, [&](std::string_view, Matrix<Real>& m) {
    m = to_matrix<Real>(x.inputs[i].values.data(), x.inputs[i].rows, x.inputs[i].columns);
    ++i;
  });
  take_settings(x, in);
  return in;
}

template <typename Op, typename Real>
typename Op::template Outputs<Real> slice_cotangents(const SliceProblem& x) {
  using Outputs = typename Op::template Outputs<Real>;
  Outputs d;
  size_t i = 0;
  Outputs::each(d, [&](std::string_view, Matrix<Real>& m) {
    m = to_matrix<Real>(x.cotangents[i].values.data(), x.cotangents[i].rows, x.cotangents[i].columns);
    ++i;
  });
  return d;
}

template <typename Op, typename Real>
auto forward_over(const SliceProblem& x) {
  return Op::forward(slice_inputs<Op, Real>(x));
}
template <typename Op, typename Real>
auto adjoint_over(const SliceProblem& x) {
  return Op::adjoint(slice_inputs<Op, Real>(x), slice_cotangents<Op, Real>(x));
}

template <typename Values>
SliceBalls balls_of(const Values& values) {
  SliceBalls balls;
  Values::each(values, [&](std::string_view, const auto& m) {
    balls.emplace_back();
    append_balls(m, balls.back());
  });
  return balls;
}

template <typename Op>
bool literal_slice_forward(const SliceProblem& x, int level, SliceBalls& y) {
  switch (level) {
    case 0:
      return y = balls_of(forward_over<Op, Ball<double>>(x)), true;
    case 1:
      return y = balls_of(forward_over<Op, Ball<DoubleDouble>>(x)), true;
    case 2:
      return y = balls_of(forward_over<Op, Interval<40>>(x)), true;
    case 3:
      return y = balls_of(forward_over<Op, Interval<160>>(x)), true;
    default:
      return false;
  }
}

template <typename Op>
bool literal_slice_adjoint(const SliceProblem& x, int level, SliceBalls& y) {
  switch (level) {
    case 0:
      return y = balls_of(adjoint_over<Op, Ball<double>>(x)), true;
    case 1:
      return y = balls_of(adjoint_over<Op, Ball<DoubleDouble>>(x)), true;
    case 2:
      return y = balls_of(adjoint_over<Op, Interval<40>>(x)), true;
    case 3:
      return y = balls_of(adjoint_over<Op, Interval<160>>(x)), true;
    default:
      return false;
  }
}

/// From its transcription, where the operator has no way of its own to enclosures.
template <typename Op>
LiteralRow literal_row() {
  const OperatorTraits& traits = Op::traits;
  if constexpr (Op::traits.enclose_forward != nullptr)
    return {traits.enclose_forward, traits.enclose_adjoint, traits.forward_bound, traits.adjoint_bound,
            traits.per_head};
  else
    return {&literal_slice_forward<Op>, &literal_slice_adjoint<Op>, traits.forward_bound,
            traits.adjoint_bound, traits.per_head};
}

}  // namespace assay
