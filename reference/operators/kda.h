// Kimi Delta Attention: the delta rule after a decay of the state, one per key channel and token.
//
//   S'_t = diag(e^{g_t}) S_{t-1}   S_t = S'_t + k_t (beta_t (.) (v_t - S'_t^T k_t))^T   o_t = scale S_t^T q_t
//
// t = 1..T. One slice: one sequence n, one value head. q_t, k_t, g_t in R^K, v_t, o_t in R^V, S_t in R^{K x
// V}; S_0 is the initial state or 0, S_T the final state. Value head h has the queries and keys of head
// h H / HV. g is a natural-log decay of the old state, which is read after it; absent, it is 0. beta_t, keys
// and their lengths are as in delta_rule.h. Domain: q, k, v, S_0 finite; -1e4 <= g <= 0; 0 <= beta <= 2;
// scale finite.
//
// Source: Kimi Team, "Kimi Linear: An Expressive, Efficient Attention Architecture", arXiv:2510.26692 (Kimi
// Delta Attention; there alpha_t = e^{g_t}).
#pragma once
#include <cmath>

#include "reference/operator_traits.h"
#include "reference/operators/delta_transition.h"

namespace assay {

struct Kda {
  static constexpr std::string_view name = "kda";
  static constexpr std::string_view summary = "delta rule after decays, one per key channel";
  static constexpr std::string_view formula =
      "S'_t = diag(exp(g_t)) S_{t-1};  S_t = S'_t + k_t (beta_t (.) (v_t - S'_t^T k_t))^T;  o_t = scale "
      "S_t^T q_t";
  static constexpr std::string_view citation = "Kimi Team, Kimi Linear, arXiv:2510.26692";
  /// Places in inputs() and outputs().
  struct In {
    enum : size_t { q, k, v, g, beta, beta_v, initial_state, count };
  };
  struct Out {
    enum : size_t { o, final_state, count };
  };
  static std::vector<ArgumentSpec> inputs() {
    return {{"q", {"B", "T", "H", "K"}, Role::value},
            {"k", {"B", "T", "H", "K"}, Role::unit},
            {"v", {"B", "T", "HV", "V"}, Role::value},
            {"g", {"B", "T", "HV", "K"}, Role::log_decay, true},
            {"beta", {"B", "T", "HV"}, Role::rate, true},
            {"beta_v", {"B", "T", "HV", "V"}, Role::rate, true, "beta"},
            {"initial_state", {"N", "HV", "K", "V"}, Role::state, true}};
  }
  static std::vector<ArgumentSpec> outputs() {
    return {{"o", {"B", "T", "HV", "V"}, Role::output}, {"final_state", {"N", "HV", "K", "V"}, Role::state}};
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

  /// One slice. Rows are tokens: q, k, g are T x K, v, beta_v T x V, beta T x 1, S0 is K x V.
  template <typename Real>
  struct Inputs {
    Matrix<Real> q, k, v, g, beta, beta_v, S0;
    Real scale{1};

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("q", x.q), visit("k", x.k), visit("v", x.v), visit("g", x.g), visit("beta", x.beta);
      visit("beta_v", x.beta_v), visit("initial_state", x.S0);
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
  static auto decay(const Inputs<Real>& x) {
    return [&x](Eigen::Index t, const Matrix<Real>& S) -> Matrix<Real> {
      const Vector<Real> e = x.g.row(t).transpose().unaryExpr([](const Real& g) -> Real {
        using std::exp;
        return exp(g);
      });
      return e.asDiagonal() * S;
    };
  }

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    Outputs<Real> y{{}, x.S0};
    y.o = delta_forward(x, decay(x), y.S);
    return y;
  }

  /// delta_transition.h, and dg_t = rowsum(S'_t (.) G') (product form: no difference of large terms). d:
  /// dL/do and dL/dS_T.
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    Inputs<Real> y = x;
    y.S0 = d.S;
    delta_adjoint(
        x, d.o, decay(x),
        [&](Eigen::Index t, const Matrix<Real>& S, const Matrix<Real>& G) {
          y.g.row(t) = S.cwiseProduct(G).rowwise().sum().transpose();
        },
        y);
    return y;
  }
};

}  // namespace assay
