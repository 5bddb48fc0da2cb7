// What the delta rules that read after the decay share: the recurrence
//
//   S'_t = D_t S_{t-1}      r_t = v_t - S'_t^T k_t      u_t = beta_t (.) r_t
//   S_t = S'_t + k_t u_t^T          o_t = scale S_t^T q_t          t = 1..T
//
// and its reverse. What D_t is, a diagonal matrix, is the operator's own.
#pragma once
#include "reference/slice_problem.h"
#include "reference/state_history.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

/// beta_t, 1 x V: that of the head times that of the value channel, of which one at most is given; what is
/// not given is 1.
template <typename Inputs>
auto delta_rates(const Inputs& x, Eigen::Index t) {
  return (x.beta_v.row(t) * x.beta(t, 0)).eval();
}
/// Ones for what is absent, of an operator whose places `In` has beta and beta_v.
template <typename In, typename Inputs>
void take_delta_rates(const SliceProblem& p, Inputs& x) {
  using Real = decltype(x.scale);
  if (!p.inputs[In::beta].present) x.beta = Matrix<Real>::Constant(x.beta.rows(), x.beta.cols(), Real(1));
  if (!p.inputs[In::beta_v].present)
    x.beta_v = Matrix<Real>::Constant(x.beta_v.rows(), x.beta_v.cols(), Real(1));
}

/// What a token finds and what it makes of it: S'_t, r_t and u_t (1 x V).
template <typename Real>
struct DeltaToken {
  Matrix<Real> S, r, u;
};
/// `decayed(t, X)`: D_t X.
template <typename Inputs, typename Decayed, typename Real>
DeltaToken<Real> delta_token(const Inputs& x, Eigen::Index t, const Decayed& decayed, const Matrix<Real>& S) {
  DeltaToken<Real> y{decayed(t, S), {}, {}};
  y.r = x.v.row(t) - x.k.row(t) * y.S;
  y.u = delta_rates(x, t).cwiseProduct(y.r);
  return y;
}
template <typename Inputs, typename Decayed, typename Real>
void delta_step(const Inputs& x, Eigen::Index t, const Decayed& decayed, Matrix<Real>& S) {
  const DeltaToken<Real> now = delta_token(x, t, decayed, S);
  S = (now.S + x.k.row(t).transpose() * now.u).eval();
}

/// S: S_0 on entry, S_T on exit. Returns o, T x V.
template <typename Inputs, typename Decayed, typename Real>
Matrix<Real> delta_forward(const Inputs& x, const Decayed& decayed, Matrix<Real>& S) {
  Matrix<Real> o(x.v.rows(), x.v.cols());
  for (Eigen::Index t = 0; t < x.q.rows(); ++t) {
    delta_step(x, t, decayed, S);
    o.row(t) = (S.transpose() * x.q.row(t).transpose() * x.scale).transpose();
  }
  return o;
}

/// Reverse time, G = dL/dS_t, readout at t included; starts at dS_T. For t = T..1:
///   G <- G + scale q_t do_t^T      dq_t = scale S_t do_t
///   du = G^T k_t      dr = beta_t (.) du      dbeta_t = du . r_t, of a value channel du (.) r_t
///   dk_t = G u_t - S'_t dr      dv_t = dr
///   G' = G - k_t dr^T      (the adjoint of S'_t: `gates(t, S'_t, G')` is told)      G <- D_t G'
/// and dS_0 = G at the end. `y`: the gradients, of the inputs' shapes; y.S0 = dS_T on entry.
template <typename Inputs, typename Decayed, typename Gates, typename Real>
void delta_adjoint(const Inputs& x, const Matrix<Real>& d_o, const Decayed& decayed, const Gates& gates,
                   Inputs& y) {
  const Eigen::Index T = x.q.rows();
  Matrix<Real>& G = y.S0;
  StateHistory<Matrix<Real>> S(x.S0, T,
                               [&](int64_t t, Matrix<Real>& state) { delta_step(x, t - 1, decayed, state); });
  for (Eigen::Index t = T - 1; t >= 0; --t) {
    const Vector<Real> q = x.q.row(t).transpose(), k = x.k.row(t).transpose();
    const Vector<Real> readout = d_o.row(t).transpose() * x.scale;
    G = (G + q * readout.transpose()).eval();
    y.q.row(t) = (S.at(t + 1) * readout).transpose();
    const DeltaToken<Real> now = delta_token(x, t, decayed, S.at(t));
    const Matrix<Real> du = x.k.row(t) * G, dr = delta_rates(x, t).cwiseProduct(du);
    const Matrix<Real> of_rates = du.cwiseProduct(now.r);
    y.beta(t, 0) = of_rates.cwiseProduct(x.beta_v.row(t)).sum();
    y.beta_v.row(t) = of_rates * x.beta(t, 0);
    y.k.row(t) = (G * now.u.transpose() - now.S * dr.transpose()).transpose();
    y.v.row(t) = dr;
    G = (G - k * dr).eval();
    gates(t, now.S, G);
    G = decayed(t, G);
  }
}

}  // namespace assay
