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
#include "reference/operator_traits.h"
#include "reference/operators/state_recurrence.h"
#include "reference/slice_problem.h"

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
  using Out = StatePlaces;
  static std::vector<ArgumentSpec> inputs() {
    return {{"r", {"B", "T", "H", "K"}, Role::value},
            {"w", {"B", "T", "H", "K"}, Role::log_decay},
            {"k", {"B", "T", "H", "K"}, Role::value},
            {"v", {"B", "T", "H", "V"}, Role::value},
            {"a", {"B", "T", "H", "K"}, Role::unit},
            {"b", {"B", "T", "H", "K"}, Role::opposed},
            {"initial_state", {"N", "H", "K", "V"}, Role::state, true}};
  }
  static std::vector<ArgumentSpec> outputs() { return state_outputs(); }
  static double default_scale(const Sizes&) { return 1; }
  static SliceBounds forward_bound(const SliceProblem&);
  static SliceBounds adjoint_bound(const SliceProblem&);
  static bool enclose_forward(const SliceProblem&, int level, SliceBalls&);
  static bool enclose_adjoint(const SliceProblem&, int level, SliceBalls&);
  static constexpr OperatorTraits traits =
      norm_traits(&default_scale, &forward_bound, &adjoint_bound, &enclose_forward, &enclose_adjoint);

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
  using Outputs = StateOutputs<Real>;

  template <typename Real>
  struct Correction {
    const Inputs<Real>& x;
    ChannelDecay<Real> decay{x.w};

    void step(Eigen::Index t, Matrix<Real>& S) const {
      const Matrix<Real> read = x.a.row(t) * S;  // a_t^T S_{t-1}, 1 x V
      S = (decay.times(t, S) + x.b.row(t).transpose() * read + x.k.row(t).transpose() * x.v.row(t)).eval();
    }
    /// With beta = G^T b_t:
    ///   dk_t = G v_t      dv_t = G^T k_t      dw_t of the decay
    ///   da_t = S_{t-1} beta      db_t = G (S_{t-1}^T a_t)
    ///   G <- diag(e^{w_t}) G + a_t beta^T
    void back(Eigen::Index t, const Matrix<Real>& before, Matrix<Real>& G, Inputs<Real>& y,
              Matrix<Real>& dw) const {
      const Vector<Real> a = x.a.row(t).transpose(), beta = G.transpose() * x.b.row(t).transpose();
      y.k.row(t) = (G * x.v.row(t).transpose()).transpose();
      y.v.row(t) = (G.transpose() * x.k.row(t).transpose()).transpose();
      y.a.row(t) = (before * beta).transpose();
      y.b.row(t) = (G * (before.transpose() * a)).transpose();
      decay.gradient(t, before, G, dw);
      G = (decay.times(t, G) + a * beta.transpose()).eval();
    }
  };

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    return state_forward(x, x.r, Correction<Real>{x});
  }
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    Inputs<Real> y = x;
    state_adjoint(x, x.r, Correction<Real>{x}, d, y, y.r, y.w);
    return y;
  }
};

}  // namespace assay
