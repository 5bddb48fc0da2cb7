// Gated linear attention with one scalar decay per head: per token (g), constant (g_gamma), or none.
//
//   S_t = e^{g_t} S_{t-1} + k_t v_t^T          o_t = scale S_t^T q_t          t = 1..T
//
// One slice: one sequence n, one head h. q_t, k_t in R^K, v_t, o_t in R^V, S_t in R^{K x V}; S_0 is the
// initial state or 0, S_T the final state. g is a natural-log decay of the old state, before token t is
// written; with g_gamma it is the head's gamma at every token; with neither it is 0. At most one of the two
// is given. Domain: q, k, v, S_0 finite; -1e4 <= g, gamma <= 0; scale finite.
//
// Its bounds are those of every operator with a `form`: reference/bound.h for the outputs,
// reference/bound_adjoint.h for the gradients, from what a kernel declares.
//
// Source: T. Dao, A. Gu, "Transformers are SSMs: Generalized Models and Efficient Algorithms Through
// Structured State Space Duality", ICML 2024, arXiv:2405.21060 (the scalar-identity case; there a_t =
// e^{g_t}).
#pragma once
#include <cmath>

#include "reference/operator_traits.h"
#include "reference/operators/state_recurrence.h"

namespace assay {

struct SimpleGla {
  static constexpr std::string_view name = "simple_gla";
  static constexpr std::string_view summary =
      "gated linear attention, one decay per head: per token, constant, or none";
  static constexpr std::string_view formula =
      "S_t = exp(g_t) S_{t-1} + k_t v_t^T;  o_t = scale S_t^T q_t;  g_t = g_gamma at every t where that is "
      "given";
  static constexpr std::string_view citation = "Dao, Gu, Transformers are SSMs, arXiv:2405.21060";
  static std::vector<ArgumentSpec> inputs() {
    return {{"q", {"B", "T", "H", "K"}, Role::value},
            {"k", {"B", "T", "H", "K"}, Role::value},
            {"v", {"B", "T", "H", "V"}, Role::value},
            {"g", {"B", "T", "H"}, Role::log_decay, true},
            {"g_gamma", {"H"}, Role::log_decay, true, "g"},
            {"initial_state", {"N", "H", "K", "V"}, Role::state, true}};
  }
  static std::vector<ArgumentSpec> outputs() { return state_outputs(); }
  static GatedForm form() { return {.gate = "g", .per_channel = false, .head_gate = "g_gamma"}; }
  static constexpr OperatorTraits traits{
      .with_gates = "simple_gla", .default_scale = &root_scale, .form = &form};

  /// One slice. Rows are tokens: q, k are T x K, v is T x V, g is T x 1, gamma 1 x 1, S0 K x V.
  template <typename Real>
  struct Inputs {
    Matrix<Real> q, k, v, g, gamma, S0;
    Real scale{1};

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("q", x.q), visit("k", x.k), visit("v", x.v), visit("g", x.g), visit("g_gamma", x.gamma);
      visit("initial_state", x.S0);
    }
    void take(const SliceProblem&) {}
  };
  template <typename Real>
  using Outputs = StateOutputs<Real>;

  /// a_t = e^{g_t + gamma}; the absent ones are 0.
  template <typename Real>
  static HeadDecay<Real> decay(const Inputs<Real>& x) {
    Vector<Real> a(x.g.rows());
    for (Eigen::Index t = 0; t < a.size(); ++t) {
      using std::exp;
      a(t) = exp(Real(x.g(t, 0) + x.gamma(0, 0)));
    }
    return HeadDecay<Real>(a);
  }

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    return state_forward(x, x.q, Write{x, decay(x)});
  }
  /// As Write has it; G = dL/dS_t: dg_t = a_t <S_{t-1}, G>, dgamma = sum_t dg_t.
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    Inputs<Real> y = x;
    state_adjoint(x, x.q, Write{x, decay(x)}, d, y, y.q, y.g);
    y.gamma.setConstant(Real(0));
    for (Eigen::Index t = 0; t < y.g.rows(); ++t) y.gamma(0, 0) += y.g(t, 0);
    return y;
  }
};

}  // namespace assay
