// The delta rule: what a key is bound to is replaced, not added to.
//
//   r_t = v_t - S_{t-1}^T k_t          S_t = S_{t-1} + k_t (beta_t (.) r_t)^T          o_t = scale S_t^T q_t
//
// t = 1..T. One slice: one sequence n, one head h. q_t, k_t in R^K, v_t, o_t in R^V, S_t in R^{K x V}; S_0 is
// the initial state or 0, S_T the final state. beta_t is one number per head (beta), one per value channel
// (beta_v), or 1 where neither is given. Keys are not normalised here: with |k_t| = 1 the transition I - beta
// k k^T never lengthens a state; otherwise it may by |1 - beta |k_t|^2| per token, and its bounds grow with
// that. Domain: q, k, v, S_0 finite; 0 <= beta <= 2; scale finite.
//
// Source: S. Yang, B. Wang, Y. Zhang, Y. Shen, Y. Kim, "Parallelizing Linear Transformers with the Delta Rule
// over Sequence Length", NeurIPS 2024, arXiv:2406.06484 (there the state is the transpose).
#pragma once
#include <cmath>

#include "reference/operator_traits.h"
#include "reference/operators/delta_transition.h"

namespace assay {

struct DeltaRule {
  static constexpr std::string_view name = "delta_rule";
  static constexpr std::string_view summary = "delta rule: what a key is bound to is replaced";
  static constexpr std::string_view formula =
      "S_t = S_{t-1} + k_t (beta_t (.) (v_t - S_{t-1}^T k_t))^T;  o_t = scale S_t^T q_t";
  static constexpr std::string_view citation = "Yang et al., DeltaNet, arXiv:2406.06484";
  /// Places in inputs() and outputs().
  struct In {
    enum : size_t { q, k, v, beta, beta_v, initial_state, count };
  };
  struct Out {
    enum : size_t { o, final_state, count };
  };
  static std::vector<ArgumentSpec> inputs() {
    return {{"q", {"B", "T", "H", "K"}, Role::value},
            {"k", {"B", "T", "H", "K"}, Role::unit},
            {"v", {"B", "T", "H", "V"}, Role::value},
            {"beta", {"B", "T", "H"}, Role::rate, true},
            {"beta_v", {"B", "T", "H", "V"}, Role::rate, true, "beta"},
            {"initial_state", {"N", "H", "K", "V"}, Role::state, true}};
  }
  static std::vector<ArgumentSpec> outputs() {
    return {{"o", {"B", "T", "H", "V"}, Role::output}, {"final_state", {"N", "H", "K", "V"}, Role::state}};
  }
  static double default_scale(const Sizes& sizes) { return 1 / std::sqrt(static_cast<double>(sizes.K)); }
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

  /// One slice. Rows are tokens: q, k are T x K, v, beta_v T x V, beta T x 1, S0 is K x V.
  template <typename Real>
  struct Inputs {
    Matrix<Real> q, k, v, beta, beta_v, S0;
    Real scale{1};

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("q", x.q), visit("k", x.k), visit("v", x.v), visit("beta", x.beta), visit("beta_v", x.beta_v);
      visit("initial_state", x.S0);
    }
    void take(const SliceProblem& p) { take_delta_rates<In>(p, *this); }
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
  static Outputs<Real> forward(const Inputs<Real>& x) {
    Outputs<Real> y{{}, x.S0};
    y.o = delta_forward(
        x, [](Eigen::Index, const Matrix<Real>& S) { return S; }, y.S);
    return y;
  }

  /// delta_transition.h; d: dL/do and dL/dS_T.
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    Inputs<Real> y = x;
    y.S0 = d.S;
    delta_adjoint(
        x, d.o, [](Eigen::Index, const Matrix<Real>& S) { return S; },
        [](Eigen::Index, const Matrix<Real>&, const Matrix<Real>&) {}, y);
    return y;
  }
};

}  // namespace assay
