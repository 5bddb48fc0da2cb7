// What the operators with one decay factor a_t per head and token share: the recurrence
//
//   S_t = a_t S_{t-1} + k_t v_t^T          o_t = scale S_t^T q_t          t = 1..T
//
// and its reverse. Where the a_t come from is the operator's own.
#pragma once
#include "reference/state_history.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

/// q, k: T x K; v: T x V; a: T; S: S_0 on entry, S_T on exit. Returns o, T x V.
template <typename Real>
Matrix<Real> scalar_decay_forward(const Matrix<Real>& q, const Matrix<Real>& k, const Matrix<Real>& v,
                                  const Vector<Real>& a, const Real& scale, Matrix<Real>& S) {
  Matrix<Real> o(v.rows(), v.cols());
  for (Eigen::Index t = 0; t < q.rows(); ++t) {
    S = (S * a(t) + k.row(t).transpose() * v.row(t)).eval();
    o.row(t) = (S.transpose() * q.row(t).transpose() * scale).transpose();
  }
  return o;
}

template <typename Real>
struct ScalarDecayGradients {
  Matrix<Real> q, k, v;
  Vector<Real> log_a;  ///< dL/d(log a_t)
  Matrix<Real> S0;
};

/// Reverse time, G = dL/dS_t, readout at t included; starts at dS_T. For t = T..1:
///   G <- G + scale q_t do_t^T
///   dq_t = scale S_t do_t      dk_t = G v_t      dv_t = G^T k_t
///   dlog a_t = a_t <S_{t-1}, G>      (product form: no difference of large terms)
///   G <- a_t G
/// and dS_0 = G at the end.
template <typename Real>
ScalarDecayGradients<Real> scalar_decay_adjoint(const Matrix<Real>& q, const Matrix<Real>& k,
                                                const Matrix<Real>& v, const Vector<Real>& a,
                                                const Real& scale, const Matrix<Real>& S0,
                                                const Matrix<Real>& d_o, const Matrix<Real>& dS) {
  const Eigen::Index T = q.rows();
  ScalarDecayGradients<Real> y{q, k, v, a, dS};
  Matrix<Real>& G = y.S0;
  StateHistory<Matrix<Real>> S(S0, T, [&](int64_t t, Matrix<Real>& state) {
    state = (state * a(t - 1) + k.row(t - 1).transpose() * v.row(t - 1)).eval();
  });
  for (Eigen::Index t = T; t >= 1; --t) {
    const Vector<Real> readout = d_o.row(t - 1).transpose() * scale;
    G = (G + q.row(t - 1).transpose() * readout.transpose()).eval();
    y.q.row(t - 1) = (S.at(t) * readout).transpose();
    y.k.row(t - 1) = (G * v.row(t - 1).transpose()).transpose();
    y.v.row(t - 1) = (G.transpose() * k.row(t - 1).transpose()).transpose();
    y.log_a(t - 1) = a(t - 1) * S.at(t - 1).cwiseProduct(G).sum();
    G = (G * a(t - 1)).eval();
  }
  return y;
}

}  // namespace assay
