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
#include "reference/operator_traits.h"
#include "reference/operators/state_recurrence.h"

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
  static std::vector<ArgumentSpec> outputs() { return state_outputs(); }
  static GatedForm form() { return {.gate = "g"}; }
  static constexpr OperatorTraits traits{.default_scale = &root_scale, .form = &form};

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
  using Outputs = StateOutputs<Real>;

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    return state_forward(x, x.q, Write{x, ChannelDecay(x.g)});
  }
  /// As Write has it; G = dL/dS_t:
  ///   dk_t = G v_t      dv_t = G^T k_t      dg_t = e^{g_t} (.) rowsum(S_{t-1} (.) G)
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    Inputs<Real> y = x;
    state_adjoint(x, x.q, Write{x, ChannelDecay(x.g)}, d, y, y.q, y.g);
    return y;
  }
};

}  // namespace assay
