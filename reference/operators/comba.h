// Comba: the gated delta rule that reads with a vector of its own, before the decay.
//
//   r_t = v_t - S_{t-1}^T p_t      u_t = beta_t r_t      S_t = e^{g_t} S_{t-1} + k_t u_t^T
//   o_t = scale S_t^T q_t          t = 1..T
//
// One slice: one sequence n, one value head. q_t, k_t, p_t in R^K, v_t, o_t in R^V, S_t in R^{K x V}; S_0 is
// the initial state or 0, S_T the final state. Value head h has the queries, keys and p of head h H / HV. g_t
// is one number, a natural-log decay of the old state, which is read before it; beta_t one number, absent 1.
// The transition e^{g_t} - beta_t k_t p_t^T never lengthens a state where p_t is along k_t and
// beta_t k_t . p_t <= 1, as with p_t = d k_t, 0 <= d <= 1, |k_t| = 1, beta_t <= 1.
// Domain: everything finite; -1e4 <= g <= 0; 0 <= beta <= 2.
//
// Source: J. Hu et al., "Comba: Improving Bilinear RNNs with Closed-loop Control", arXiv:2506.02475 (there
// the state is the transpose, and what corrects the output is part of q).
#pragma once
#include "reference/operator_traits.h"
#include "reference/operators/state_recurrence.h"
#include "reference/slice_problem.h"

namespace assay {

struct Comba {
  static constexpr std::string_view name = "comba";
  static constexpr std::string_view summary = "delta rule that reads another key, before a decay per head";
  static constexpr std::string_view formula =
      "S_t = exp(g_t) S_{t-1} + k_t (beta_t (v_t - S_{t-1}^T p_t))^T;  o_t = scale S_t^T q_t";
  static constexpr std::string_view citation = "Hu et al., Comba, arXiv:2506.02475";
  /// Places in inputs() and outputs().
  struct In {
    enum : size_t { q, k, v, p, g, beta, initial_state, count };
  };
  using Out = StatePlaces;
  static std::vector<ArgumentSpec> inputs() {
    return {{"q", {"B", "T", "H", "K"}, Role::value},
            {"k", {"B", "T", "H", "K"}, Role::unit},
            {"v", {"B", "T", "HV", "V"}, Role::value},
            {"p", {"B", "T", "H", "K"}, Role::along},
            {"g", {"B", "T", "HV"}, Role::log_decay},
            {"beta", {"B", "T", "HV"}, Role::rate, true},
            {"initial_state", {"N", "HV", "K", "V"}, Role::state, true}};
  }
  static std::vector<ArgumentSpec> outputs() { return state_outputs("HV"); }
  static SliceBounds forward_bound(const SliceProblem&);
  static SliceBounds adjoint_bound(const SliceProblem&);
  static bool enclose_forward(const SliceProblem&, int level, SliceBalls&);
  static bool enclose_adjoint(const SliceProblem&, int level, SliceBalls&);
  static constexpr OperatorTraits traits =
      norm_traits(&root_scale, &forward_bound, &adjoint_bound, &enclose_forward, &enclose_adjoint);

  /// One slice. Rows are tokens: q, k, p are T x K, v is T x V, g and beta T x 1, S0 is K x V.
  template <typename Real>
  struct Inputs {
    Matrix<Real> q, k, v, p, g, beta, S0;
    Real scale{1};

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("q", x.q), visit("k", x.k), visit("v", x.v), visit("p", x.p), visit("g", x.g);
      visit("beta", x.beta), visit("initial_state", x.S0);
    }
    /// Rates that are absent are 1.
    void take(const SliceProblem& problem) {
      if (!problem.inputs[In::beta].present) beta.setConstant(Real(1));
    }
  };
  template <typename Real>
  using Outputs = StateOutputs<Real>;

  template <typename Real>
  struct Replacement {
    const Inputs<Real>& x;
    HeadDecay<Real> decay{x.g};

    /// r_t, 1 x V.
    Matrix<Real> residual(Eigen::Index t, const Matrix<Real>& S) const { return x.v.row(t) - x.p.row(t) * S; }

    void step(Eigen::Index t, Matrix<Real>& S) const {
      const Matrix<Real> u = residual(t, S) * x.beta(t, 0);
      S = (decay.times(t, S) + x.k.row(t).transpose() * u).eval();
    }
    ///   du = G^T k_t      dr = beta_t du      dbeta_t = du . r_t
    ///   dk_t = G u_t      dv_t = dr           dp_t = -S_{t-1} dr      dg_t of the decay
    ///   G <- e^{g_t} G - p_t dr^T
    void back(Eigen::Index t, const Matrix<Real>& before, Matrix<Real>& G, Inputs<Real>& y,
              Matrix<Real>& dg) const {
      const Matrix<Real> r = residual(t, before), u = r * x.beta(t, 0);
      const Matrix<Real> du = x.k.row(t) * G, dr = du * x.beta(t, 0);
      y.beta(t, 0) = du.cwiseProduct(r).sum();
      y.k.row(t) = (G * u.transpose()).transpose();
      y.v.row(t) = dr;
      y.p.row(t) = -(before * dr.transpose()).transpose();
      decay.gradient(t, before, G, dg);
      G = (decay.times(t, G) - x.p.row(t).transpose() * dr).eval();
    }
  };

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    return state_forward(x, x.q, Replacement<Real>{x});
  }
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    Inputs<Real> y = x;
    state_adjoint(x, x.q, Replacement<Real>{x}, d, y, y.q, y.g);
    return y;
  }
};

}  // namespace assay
