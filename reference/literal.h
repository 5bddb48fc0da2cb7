// The upper rungs of the ladder: an operator's literal transcription over balls and intervals. Heavy: include
// in sources only.
#pragma once
#include <algorithm>

#include "reference/gated_adjoint.h"
#include "reference/gated_forward.h"
#include "src/numerics/eigen_traits.h"
#include "src/numerics/multiprecision.h"

namespace assay {

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

/// In runs of tokens, each resumed from the state of the one before: the memory of one run.
template <typename Op, typename Real>
void literal_column_over(const KeyInputs& x, const ColumnInputs& column, ColumnOutputs& y) {
  constexpr int64_t run = 256;
  Matrix<Real> S = to_matrix<Real>(column.S0.data(), x.K, 1);
  y = {};
  for (int64_t t = 0; t < x.tokens; t += run) {
    const int64_t n = std::min(run, x.tokens - t);
    typename Op::template Inputs<Real> in;
    in.q = to_matrix<Real>(x.q.data() + t * x.K, n, x.K);
    in.k = to_matrix<Real>(x.k.data() + t * x.K, n, x.K);
    in.v = to_matrix<Real>(column.v.data() + t, n, 1);
    in.g = x.g.empty() ? Matrix<Real>(Matrix<Real>::Constant(n, x.K, Real(0)))
                       : to_matrix<Real>(x.g.data() + t * x.K, n, x.K);
    in.S0 = S;
    in.scale = Real(x.scale);
    const auto out = Op::forward(in);
    append_balls(out.o, y.o);
    S = out.S;
  }
  append_balls(S, y.S);
}

/// Intervals of 40, 80 and 160 decimal digits.
template <typename Op>
bool literal_column(const KeyInputs& x, const ColumnInputs& column, int level, ColumnOutputs& y) {
  switch (level) {
    case 0:
      literal_column_over<Op, Interval<40>>(x, column, y);
      return true;
    case 1:
      literal_column_over<Op, Interval<80>>(x, column, y);
      return true;
    case 2:
      literal_column_over<Op, Interval<160>>(x, column, y);
      return true;
    default:
      return false;
  }
}

template <typename Op, typename Real>
void literal_adjoint_over(const SliceInputs& x, SliceGradients& y) {
  typename Op::template Inputs<Real> in;
  in.q = to_matrix<Real>(x.q.data(), x.tokens, x.K);
  in.k = to_matrix<Real>(x.k.data(), x.tokens, x.K);
  in.v = to_matrix<Real>(x.v.data(), x.tokens, x.V);
  in.g = x.g.empty() ? Matrix<Real>(Matrix<Real>::Constant(x.tokens, x.K, Real(0)))
                     : to_matrix<Real>(x.g.data(), x.tokens, x.K);
  in.S0 = to_matrix<Real>(x.S0.data(), x.K, x.V);
  in.scale = Real(x.scale);
  typename Op::template Cotangents<Real> cotangents{to_matrix<Real>(x.d_o.data(), x.tokens, x.V),
                                                    to_matrix<Real>(x.dS.data(), x.K, x.V)};
  const auto out = Op::adjoint(in, cotangents);
  y = {};
  append_balls(out.q, y.q);
  append_balls(out.k, y.k);
  append_balls(out.g, y.g);
  append_balls(out.v, y.v);
  append_balls(out.S0, y.S0);
}

/// Balls over double-double, then intervals of 40, 80 and 160 decimal digits.
template <typename Op>
bool literal_adjoint(const SliceInputs& x, int level, SliceGradients& y) {
  switch (level) {
    case 0:
      literal_adjoint_over<Op, Ball<DoubleDouble>>(x, y);
      return true;
    case 1:
      literal_adjoint_over<Op, Interval<40>>(x, y);
      return true;
    case 2:
      literal_adjoint_over<Op, Interval<80>>(x, y);
      return true;
    case 3:
      literal_adjoint_over<Op, Interval<160>>(x, y);
      return true;
    default:
      return false;
  }
}

}  // namespace assay
