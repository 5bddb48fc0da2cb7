// The delta rules that read after the decay: one operator, of which the decay is each one's own.
//
//   S'_t = D_t S_{t-1}      r_t = v_t - S'_t^T k_t      u_t = beta_t (.) r_t
//   S_t = S'_t + k_t u_t^T          o_t = scale S_t^T q_t          t = 1..T
//
// One slice: one sequence n, one value head. q_t, k_t in R^K, v_t, o_t in R^V, S_t in R^{K x V}; S_0 is the
// initial state or 0, S_T the final state. Where there is a decay, value head h has the queries and keys of
// head h H / HV. beta_t is one number per head (beta), one per value channel (beta_v), or 1 where neither is
// given. Keys are not normalised here: with |k_t| = 1 the transition I - beta k k^T never lengthens a state;
// otherwise it may by |1 - beta |k_t|^2| per token, and its bounds grow with that.
// Domain: q, k, v, S_0 finite; -1e4 <= g <= 0; 0 <= beta <= 2; scale finite.
#pragma once
#include <string_view>
#include <vector>

#include "reference/operators/state_recurrence.h"
#include "reference/slice_problem.h"

namespace assay {

/// Inputs is DeltaRule::Inputs below.
template <typename Inputs, typename Decay>
struct DeltaWrite {
  const Inputs& x;
  Decay decay;

  /// What a token finds and what it makes of it: S'_t, r_t and u_t (1 x V).
  template <typename Real>
  struct Token {
    Matrix<Real> S, r, u;
  };
  template <typename Real>
  Token<Real> token(Eigen::Index t, const Matrix<Real>& S) const {
    Token<Real> y{decay.times(t, S), {}, {}};
    y.r = x.v.row(t) - x.k.row(t) * y.S;
    y.u = rates(t).cwiseProduct(y.r);
    return y;
  }
  /// beta_t, 1 x V: that of the head times that of the value channel, of which one at most is given; what is
  /// not given is 1.
  auto rates(Eigen::Index t) const { return (x.beta_v.row(t) * x.beta(t, 0)).eval(); }

  template <typename Real>
  void step(Eigen::Index t, Matrix<Real>& S) const {
    const Token<Real> now = token(t, S);
    S = (now.S + x.k.row(t).transpose() * now.u).eval();
  }
  ///   du = G^T k_t      dr = beta_t (.) du      dbeta_t = du . r_t, of a value channel du (.) r_t
  ///   dk_t = G u_t - S'_t dr      dv_t = dr
  ///   G' = G - k_t dr^T      (the adjoint of S'_t)      dg_t of D_t      G <- D_t G'
  template <typename Real>
  void back(Eigen::Index t, const Matrix<Real>& before, Matrix<Real>& G, Inputs& y, Matrix<Real>& dg) const {
    const Token<Real> now = token(t, before);
    const Matrix<Real> du = x.k.row(t) * G, dr = rates(t).cwiseProduct(du);
    const Matrix<Real> of_rates = du.cwiseProduct(now.r);
    y.beta(t, 0) = of_rates.cwiseProduct(x.beta_v.row(t)).sum();
    y.beta_v.row(t) = of_rates * x.beta(t, 0);
    y.k.row(t) = (G * now.u.transpose() - now.S * dr.transpose()).transpose();
    y.v.row(t) = dr;
    G = (G - x.k.row(t).transpose() * dr).eval();
    decay.gradient(t, before, G, dg);
    G = decay.times(t, G);
  }
};
template <typename Inputs, typename Decay>
DeltaWrite(const Inputs&, Decay) -> DeltaWrite<Inputs, Decay>;

/// Places in inputs(), with a gate and without.
template <bool gated>
struct DeltaArguments {
  enum : size_t { q, k, v, g, beta, beta_v, initial_state, count };
};
template <>
struct DeltaArguments<false> {
  enum : size_t { q, k, v, beta, beta_v, initial_state, count };
};

/// What an operator's type has beside its text and its bounds. Decay<Real>: D_t, of state_recurrence.h.
template <template <typename> typename Decay>
struct DeltaOperator {
  static constexpr bool gated = Decay<double>::gated;
  using In = DeltaArguments<gated>;
  using Out = StatePlaces;

  /// `gate`: the axes of g, where there is one.
  static std::vector<ArgumentSpec> arguments(const std::vector<std::string_view>& gate) {
    const std::string_view heads = gated ? "HV" : "H";
    std::vector<ArgumentSpec> y = {{"q", {"B", "T", "H", "K"}, Role::value},
                                   {"k", {"B", "T", "H", "K"}, Role::unit},
                                   {"v", {"B", "T", heads, "V"}, Role::value}};
    if (gated) y.push_back({"g", gate, Role::log_decay, true});
    y.push_back({"beta", {"B", "T", heads}, Role::rate, true});
    y.push_back({"beta_v", {"B", "T", heads, "V"}, Role::rate, true, "beta"});
    y.push_back({"initial_state", {"N", heads, "K", "V"}, Role::state, true});
    return y;
  }
  static std::vector<ArgumentSpec> outputs() { return state_outputs(gated ? "HV" : "H"); }

  /// One slice. Rows are tokens: q, k are T x K, v, beta_v T x V, beta T x 1, S0 is K x V; g is the decay's.
  template <typename Real>
  struct Inputs {
    Matrix<Real> q, k, v, g, beta, beta_v, S0;
    Real scale{1};

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("q", x.q), visit("k", x.k), visit("v", x.v);
      if constexpr (gated) visit("g", x.g);
      visit("beta", x.beta), visit("beta_v", x.beta_v), visit("initial_state", x.S0);
    }
    /// Rates that are absent are 1.
    void take(const SliceProblem& p) {
      if (!p.inputs[In::beta].present) beta.setConstant(Real(1));
      if (!p.inputs[In::beta_v].present) beta_v.setConstant(Real(1));
    }
    auto term() const {
      if constexpr (gated)
        return DeltaWrite{*this, Decay<Real>(g)};
      else
        return DeltaWrite{*this, Decay<Real>()};
    }
  };
  template <typename Real>
  using Outputs = StateOutputs<Real>;

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    return state_forward(x, x.q, x.term());
  }
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    Inputs<Real> y = x;
    state_adjoint(x, x.q, x.term(), d, y, y.q, y.g);
    return y;
  }
};

}  // namespace assay
