// Retention: linear attention with a fixed decay per head.
//
//   S_t = (1 - 2^{-5-h}) S_{t-1} + k_t v_t^T          o_t = scale S_t^T q_t          t = 1..T
//
// One slice: one sequence n, one head h = 0..H-1. q_t, k_t in R^K, v_t, o_t in R^V, S_t in R^{K x V}; S_0 is
// the initial state or 0, S_T the final state. Domain: everything finite.
//
// Its bounds are those of every operator with a `form`: reference/bound.h for the outputs,
// reference/bound_adjoint.h for the gradients, from what a kernel declares.
//
// Source: Y. Sun et al., "Retentive Network: A Successor to Transformer for Large Language Models",
// arXiv:2307.08621 (gamma = 1 - 2^{-5-h}; rotations and group norm are outside of the operator).
#pragma once
#include <cmath>

#include "reference/operator_traits.h"
#include "reference/operators/state_recurrence.h"
#include "reference/slice_problem.h"

namespace assay {

struct Retention {
  static constexpr std::string_view name = "retention";
  static constexpr std::string_view summary = "linear attention, decay 1 - 2^(-5-h) of head h";
  static constexpr std::string_view formula =
      "S_t = (1 - 2^(-5-h)) S_{t-1} + k_t v_t^T;  o_t = scale S_t^T q_t";
  static constexpr std::string_view citation = "Sun et al., Retentive Network, arXiv:2307.08621";
  static std::vector<ArgumentSpec> inputs() { return ungated_inputs(); }
  static std::vector<ArgumentSpec> outputs() { return state_outputs(); }
  /// 1 - 2^-n needs n bits: a double-double holds it exactly.
  static FixedDecay fixed_decay(const Problem&, int64_t head) {
    const double lost = std::ldexp(1.0, static_cast<int>(-5 - head));
    return {two_sum(1, -lost), std::log1p(-lost)};
  }
  static GatedForm form() { return {.fixed = &fixed_decay}; }
  static constexpr OperatorTraits traits{.inexact = true,
                                         .heads_differ = true,
                                         .with_gates = "simple_gla",
                                         .default_scale = &root_scale,
                                         .form = &form};

  template <typename Real>
  struct Inputs : UngatedInputs<Real> {
    int64_t head = 0;

    void take(const SliceProblem& x) { head = x.slice.h; }
  };
  template <typename Real>
  using Outputs = StateOutputs<Real>;

  /// 1 - 2^{-5-h} for every token.
  template <typename Real>
  static HeadDecay<Real> decay(const Inputs<Real>& x) {
    const Real lost(std::ldexp(1.0, static_cast<int>(-5 - x.head)));
    const Vector<Real> a = Vector<Real>::Constant(x.q.rows(), Real(1) - lost);
    return HeadDecay<Real>(a);
  }

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    return state_forward(x, x.q, Write{x, decay(x)});
  }
  /// The decay is no input and has no gradient.
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    Inputs<Real> y = x;
    Matrix<Real> of_decay(x.q.rows(), 1);
    state_adjoint(x, x.q, Write{x, decay(x)}, d, y, y.q, of_decay);
    return y;
  }
};

}  // namespace assay
