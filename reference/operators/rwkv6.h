// RWKV-6: per-channel decay, exclusive readout, and a bonus for the current token.
//
//   o_t = scale (S_{t-1} + diag(u) k_t v_t^T)^T r_t          S_t = diag(e^{w_t}) S_{t-1} + k_t v_t^T
//
// t = 1..T. One slice: one sequence n, one head h. r_t, k_t, w_t, u in R^K, v_t, o_t in R^V, S_t in R^{K x
// V}; S_0 is the initial state or 0, S_T the final state. w is a natural-log decay; the pair (j, t), j < t,
// has the weight e^{w_{j+1} + ... + w_{t-1}}: that of the last token reaches only S_T. u is shared by all
// sequences and tokens. Domain: r, k, v, u, S_0 finite; -1e4 <= w <= 0; scale finite.
//
// Its bounds are those of every operator with a `form`: reference/bound.h for the outputs,
// reference/bound_adjoint.h for the gradients, from what a kernel declares.
//
// Source: B. Peng et al., "Eagle and Finch: RWKV with Matrix-Valued States and Dynamic Recurrence",
// arXiv:2404.05892.
#pragma once
#include <cmath>

#include "reference/operator_traits.h"
#include "reference/state_history.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

struct Rwkv6 {
  static constexpr std::string_view name = "rwkv6";
  static constexpr std::string_view summary =
      "one decay per key channel, readout before the write, a bonus for the current token";
  static constexpr std::string_view formula =
      "o_t = scale (S_{t-1} + diag(u) k_t v_t^T)^T r_t;  S_t = diag(exp(w_t)) S_{t-1} + k_t v_t^T";
  static constexpr std::string_view citation = "Peng et al., Eagle and Finch, arXiv:2404.05892";
  static std::vector<ArgumentSpec> inputs() {
    return {
        {"r", {"B", "T", "H", "K"}, Role::value}, {"k", {"B", "T", "H", "K"}, Role::value},
        {"v", {"B", "T", "H", "V"}, Role::value}, {"w", {"B", "T", "H", "K"}, Role::log_decay},
        {"u", {"H", "K"}, Role::value},           {"initial_state", {"N", "H", "K", "V"}, Role::state, true}};
  }
  static std::vector<ArgumentSpec> outputs() {
    return {{"o", {"B", "T", "H", "V"}, Role::output}, {"final_state", {"N", "H", "K", "V"}, Role::state}};
  }
  static GatedForm form() { return {.q = "r", .gate = "w", .bonus = "u"}; }
  static double default_scale(const Sizes& sizes) { return 1 / std::sqrt(static_cast<double>(sizes.K)); }
  static constexpr OperatorTraits traits{.default_scale = &default_scale, .form = &form};

  /// One slice. Rows are tokens: r, k, w are T x K, v is T x V, u is 1 x K, S0 is K x V.
  template <typename Real>
  struct Inputs {
    Matrix<Real> r, k, v, w, u, S0;
    Real scale{1};

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("r", x.r), visit("k", x.k), visit("v", x.v), visit("w", x.w), visit("u", x.u);
      visit("initial_state", x.S0);
    }
    void take(const SliceProblem&) {}
  };
  template <typename Real>
  struct Outputs {
    Matrix<Real> o, S;  ///< T x V; S_T, K x V

    template <typename Self, typename Visit>
    static void each(Self& y, const Visit& visit) {
      visit("o", y.o), visit("final_state", y.S);
    }
  };

  template <typename Real>
  static Vector<Real> decay(const Inputs<Real>& x, Eigen::Index t) {
    return x.w.row(t).transpose().unaryExpr([](const Real& w) -> Real {
      using std::exp;
      return exp(w);
    });
  }

  template <typename Real>
  static void step(const Inputs<Real>& x, Eigen::Index t, Matrix<Real>& S) {
    S = (decay(x, t).asDiagonal() * S + x.k.row(t).transpose() * x.v.row(t)).eval();
  }

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    Outputs<Real> y{Matrix<Real>(x.v.rows(), x.v.cols()), x.S0};
    for (Eigen::Index t = 0; t < x.r.rows(); ++t) {
      const Vector<Real> bonus = x.u.row(0).transpose().cwiseProduct(x.k.row(t).transpose());
      const Matrix<Real> read = y.S + bonus * x.v.row(t);
      y.o.row(t) = (read.transpose() * x.r.row(t).transpose() * x.scale).transpose();
      step(x, t, y.S);
    }
    return y;
  }

  /// Reverse time, G = dL/dS_t from the tokens after t; starts at dS_T. With c_t = v_t . do_t, for t = T..1:
  ///   dr_t = scale S_{t-1} do_t + scale c_t u (.) k_t
  ///   dk_t = G v_t + scale c_t r_t (.) u
  ///   dv_t = G^T k_t + scale (sum_c r_tc u_c k_tc) do_t
  ///   du  += scale c_t r_t (.) k_t
  ///   dw_t = e^{w_t} (.) rowsum(S_{t-1} (.) G)      (product form: no difference of large terms)
  ///   G <- diag(e^{w_t}) G + scale r_t do_t^T
  /// and dS_0 = G at the end. The u of several sequences is one: their du add up.
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    const Eigen::Index T = x.r.rows();
    Inputs<Real> y{x.r, x.k, x.v, x.w, Matrix<Real>::Constant(1, x.u.cols(), Real(0)), d.S};
    Matrix<Real>& G = y.S0;
    StateHistory<Matrix<Real>> S(x.S0, T, [&](int64_t t, Matrix<Real>& state) { step(x, t - 1, state); });
    for (Eigen::Index t = T; t >= 1; --t) {
      const Vector<Real> r = x.r.row(t - 1).transpose(), k = x.k.row(t - 1).transpose();
      const Vector<Real> v = x.v.row(t - 1).transpose(), u = x.u.row(0).transpose();
      const Vector<Real> d_o = d.o.row(t - 1).transpose() * x.scale;
      const Real c = v.cwiseProduct(d_o).sum();
      y.r.row(t - 1) = (S.at(t - 1) * d_o + u.cwiseProduct(k) * c).transpose();
      y.k.row(t - 1) = (G * v + r.cwiseProduct(u) * c).transpose();
      y.v.row(t - 1) = (G.transpose() * k + d_o * r.cwiseProduct(u).cwiseProduct(k).sum()).transpose();
      y.u += (r.cwiseProduct(k) * c).transpose();
      const Vector<Real> a = decay(x, t - 1);
      y.w.row(t - 1) = a.cwiseProduct(S.at(t - 1).cwiseProduct(G).rowwise().sum()).transpose();
      G = (a.asDiagonal() * G + r * d_o.transpose()).eval();
    }
    return y;
  }
};

}  // namespace assay
