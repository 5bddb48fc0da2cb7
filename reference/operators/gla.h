// Gated linear attention, vector gate over the key channels.
//
//   S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T          o_t = scale S_t^T q_t          t = 1..T
//
// One slice: one sequence n, one head h. q_t, k_t, g_t in R^K, v_t, o_t in R^V, S_t in R^{K x V}; S_0 is the
// initial state or 0, S_T the final state. g is a natural-log decay: e^{g_t} scales the rows of the old state
// before token t is written, so the pair (j, t) has the weight e^{g_{j+1} + ... + g_t} and a token's own
// weight is 1. An absent g is g = 0. Domain: q, k, v, S_0 finite; -1e4 <= g <= 0; scale finite.
//
// Its bounds are those of every operator with a `form`: reference/bound.h for the outputs,
// reference/bound_adjoint.h for the gradients, from what a kernel declares.
//
// Source: S. Yang, B. Wang, Y. Shen, R. Panda, Y. Kim, "Gated Linear Attention Transformers with
// Hardware-Efficient Training", ICML 2024, arXiv:2312.06635, section 4; there alpha_t = e^{g_t} and scale
// = 1.
#pragma once
#include <cmath>

#include "reference/operator_traits.h"
#include "reference/state_history.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

struct Gla {
  static constexpr std::string_view name = "gla";
  static constexpr std::string_view summary = "gated linear attention, one decay per key channel";
  static constexpr std::string_view formula =
      "S_t = diag(exp(g_t)) S_{t-1} + k_t v_t^T;  o_t = scale S_t^T q_t";
  static constexpr std::string_view citation =
      "Yang et al., Gated Linear Attention, arXiv:2312.06635, section 4";
  static std::vector<ArgumentSpec> inputs() {
    return {{"q", {"B", "T", "H", "K"}, Role::value},
            {"k", {"B", "T", "H", "K"}, Role::value},
            {"v", {"B", "T", "H", "V"}, Role::value},
            {"g", {"B", "T", "H", "K"}, Role::log_decay, true},
            {"initial_state", {"N", "H", "K", "V"}, Role::state, true}};
  }
  static std::vector<ArgumentSpec> outputs() {
    return {{"o", {"B", "T", "H", "V"}, Role::output}, {"final_state", {"N", "H", "K", "V"}, Role::state}};
  }
  static GatedForm form() { return {.gate = "g"}; }
  static double default_scale(const Sizes& sizes) { return 1 / std::sqrt(static_cast<double>(sizes.K)); }
  static constexpr OperatorTraits traits{.default_scale = &default_scale, .form = &form};

  /// One slice. Rows are tokens: q, k, g are T x K, v is T x V, S0 is K x V.
  template <typename Real>
  struct Inputs {
    Matrix<Real> q, k, v, g, S0;
    Real scale{1};

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("q", x.q), visit("k", x.k), visit("v", x.v), visit("g", x.g), visit("initial_state", x.S0);
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
    return x.g.row(t).transpose().unaryExpr([](const Real& g) -> Real {
      using std::exp;
      return exp(g);
    });
  }

  template <typename Real>
  static void step(const Inputs<Real>& x, Eigen::Index t, Matrix<Real>& S) {
    S = (decay(x, t).asDiagonal() * S + x.k.row(t).transpose() * x.v.row(t)).eval();
  }

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    Outputs<Real> y{Matrix<Real>(x.v.rows(), x.v.cols()), x.S0};
    for (Eigen::Index t = 0; t < x.q.rows(); ++t) {
      step(x, t, y.S);
      y.o.row(t) = (y.S.transpose() * x.q.row(t).transpose() * x.scale).transpose();
    }
    return y;
  }

  /// Reverse time, G = dL/dS_t, readout at t included; starts at dS_T. For t = T..1:
  ///   G <- G + scale q_t do_t^T
  ///   dq_t = scale S_t do_t      dk_t = G v_t      dv_t = G^T k_t
  ///   dg_t = e^{g_t} (.) rowsum(S_{t-1} (.) G)      (product form: no difference of large terms)
  ///   G <- diag(e^{g_t}) G
  /// and dS_0 = G at the end. d: dL/do and dL/dS_T of a loss L; returned: dL/d of every input.
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    const Eigen::Index T = x.q.rows();
    Inputs<Real> y{x.q, x.k, x.v, x.g, d.S};
    Matrix<Real>& G = y.S0;
    StateHistory<Matrix<Real>> S(x.S0, T, [&](int64_t t, Matrix<Real>& state) { step(x, t - 1, state); });
    for (Eigen::Index t = T; t >= 1; --t) {
      const Vector<Real> q = x.q.row(t - 1).transpose(), k = x.k.row(t - 1).transpose();
      const Vector<Real> v = x.v.row(t - 1).transpose(), d_o = d.o.row(t - 1).transpose() * x.scale;
      G = (G + q * d_o.transpose()).eval();
      y.q.row(t - 1) = (S.at(t) * d_o).transpose();
      y.k.row(t - 1) = (G * v).transpose();
      y.v.row(t - 1) = (G.transpose() * k).transpose();
      const Vector<Real> a = decay(x, t - 1);
      y.g.row(t - 1) = a.cwiseProduct(S.at(t - 1).cwiseProduct(G).rowwise().sum()).transpose();
      G = (a.asDiagonal() * G).eval();
    }
    return y;
  }
};

}  // namespace assay
