// RWKV-7: the generalised delta rule with a decay per key channel.
//
//   S_t = diag(e^{w_t}) S_{t-1} + b_t (a_t^T S_{t-1}) + k_t v_t^T          o_t = scale S_t^T r_t          t
//   = 1..T
//
// One slice: one sequence n, one head h. r_t, w_t, k_t, a_t, b_t in R^K, v_t, o_t in R^V, S_t in R^{K x V};
// S_0 is the initial state or 0, S_T the final state. w is a natural-log decay. a reads the state before this
// token's decay. Stable where a and b oppose each other: a_t = -kk_t, b_t = kk_t (.) alpha_t, |kk_t| = 1, 0
// <= alpha_t <= 1. Domain: everything finite; -1e4 <= w <= 0.
//
// Source: B. Peng et al., "RWKV-7 Goose with Expressive Dynamic State Evolution", arXiv:2503.14456 (there the
// state is the transpose).
#pragma once
#include <cmath>

#include "reference/operator_traits.h"
#include "reference/slice_problem.h"
#include "reference/state_history.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

struct Rwkv7 {
  static constexpr std::string_view name = "rwkv7";
  static constexpr std::string_view summary = "generalised delta rule, one decay per key channel";
  static constexpr std::string_view formula =
      "S_t = diag(exp(w_t)) S_{t-1} + b_t (a_t^T S_{t-1}) + k_t v_t^T;  o_t = scale S_t^T r_t";
  static constexpr std::string_view citation = "Peng et al., RWKV-7 Goose, arXiv:2503.14456";
  /// Places in inputs() and outputs().
  struct In {
    enum : size_t { r, w, k, v, a, b, initial_state, count };
  };
  struct Out {
    enum : size_t { o, final_state, count };
  };
  static std::vector<ArgumentSpec> inputs() {
    return {{"r", {"B", "T", "H", "K"}, Role::value},
            {"w", {"B", "T", "H", "K"}, Role::log_decay},
            {"k", {"B", "T", "H", "K"}, Role::value},
            {"v", {"B", "T", "H", "V"}, Role::value},
            {"a", {"B", "T", "H", "K"}, Role::unit},
            {"b", {"B", "T", "H", "K"}, Role::opposed},
            {"initial_state", {"N", "H", "K", "V"}, Role::state, true}};
  }
  static std::vector<ArgumentSpec> outputs() {
    return {{"o", {"B", "T", "H", "V"}, Role::output}, {"final_state", {"N", "H", "K", "V"}, Role::state}};
  }
  static double default_scale(const Sizes&) { return 1; }
  static SliceBounds forward_bound(const SliceProblem&);
  static SliceBounds adjoint_bound(const SliceProblem&);
  static bool enclose_forward(const SliceProblem&, int level, SliceBalls&);
  static bool enclose_adjoint(const SliceProblem&, int level, SliceBalls&);
  static constexpr OperatorTraits traits{.bound_shape = BoundShape::norms,
                                         .default_scale = &default_scale,
                                         .forward_bound = &forward_bound,
                                         .adjoint_bound = &adjoint_bound,
                                         .enclose_forward = &enclose_forward,
                                         .enclose_adjoint = &enclose_adjoint};

  /// One slice. Rows are tokens: r, w, k, a, b are T x K, v is T x V, S0 is K x V.
  template <typename Real>
  struct Inputs {
    Matrix<Real> r, w, k, v, a, b, S0;
    Real scale{1};

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("r", x.r), visit("w", x.w), visit("k", x.k), visit("v", x.v), visit("a", x.a), visit("b", x.b);
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
    const Matrix<Real> read = x.a.row(t) * S;  // a_t^T S_{t-1}, 1 x V
    S = (decay(x, t).asDiagonal() * S + x.b.row(t).transpose() * read + x.k.row(t).transpose() * x.v.row(t))
            .eval();
  }

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    Outputs<Real> y{Matrix<Real>(x.v.rows(), x.v.cols()), x.S0};
    for (Eigen::Index t = 0; t < x.r.rows(); ++t) {
      step(x, t, y.S);
      y.o.row(t) = (y.S.transpose() * x.r.row(t).transpose() * x.scale).transpose();
    }
    return y;
  }

  /// Reverse time, G = dL/dS_t, readout at t included; starts at dS_T. For t = T..1, with beta = G^T b_t:
  ///   G <- G + scale r_t do_t^T
  ///   dr_t = scale S_t do_t      dk_t = G v_t      dv_t = G^T k_t
  ///   da_t = S_{t-1} beta      db_t = G (S_{t-1}^T a_t)      dw_t = e^{w_t} (.) rowsum(S_{t-1} (.) G)
  ///   G <- diag(e^{w_t}) G + a_t beta^T
  /// and dS_0 = G at the end.
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    const Eigen::Index T = x.r.rows();
    Inputs<Real> y{x.r, x.w, x.k, x.v, x.a, x.b, d.S};
    Matrix<Real>& G = y.S0;
    StateHistory<Matrix<Real>> S(x.S0, T, [&](int64_t t, Matrix<Real>& state) { step(x, t - 1, state); });
    for (Eigen::Index t = T; t >= 1; --t) {
      const Vector<Real> r = x.r.row(t - 1).transpose(), k = x.k.row(t - 1).transpose();
      const Vector<Real> v = x.v.row(t - 1).transpose(), d_o = d.o.row(t - 1).transpose() * x.scale;
      const Vector<Real> a = x.a.row(t - 1).transpose(), b = x.b.row(t - 1).transpose();
      G = (G + r * d_o.transpose()).eval();
      y.r.row(t - 1) = (S.at(t) * d_o).transpose();
      y.k.row(t - 1) = (G * v).transpose();
      y.v.row(t - 1) = (G.transpose() * k).transpose();
      const Matrix<Real>& before = S.at(t - 1);
      const Vector<Real> beta = G.transpose() * b, e = decay(x, t - 1);
      y.a.row(t - 1) = (before * beta).transpose();
      y.b.row(t - 1) = (G * (before.transpose() * a)).transpose();
      y.w.row(t - 1) = e.cwiseProduct(before.cwiseProduct(G).rowwise().sum()).transpose();
      G = (e.asDiagonal() * G + a * beta.transpose()).eval();
    }
    return y;
  }
};

}  // namespace assay
