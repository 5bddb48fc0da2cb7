// Linear attention without decay, not normalised. No feature map is applied: q and k are taken as they come.
//
//   S_t = S_{t-1} + k_t v_t^T          o_t = scale S_t^T q_t          t = 1..T
//
// One slice: one sequence n, one head h. q_t, k_t in R^K, v_t, o_t in R^V, S_t in R^{K x V}; S_0 is the
// initial state or 0, S_T the final state. Domain: everything finite.
//
// Its bounds are those of every operator with a `form`: reference/bound.h for the outputs,
// reference/bound_adjoint.h for the gradients, from what a kernel declares.
//
// Source: A. Katharopoulos, A. Vyas, N. Pappas, F. Fleuret, "Transformers are RNNs: Fast Autoregressive
// Transformers with Linear Attention", ICML 2020, arXiv:2006.16236.
#pragma once
#include "reference/operator_traits.h"
#include "reference/operators/state_recurrence.h"

namespace assay {

struct LinearAttn {
  static constexpr std::string_view name = "linear_attn";
  static constexpr std::string_view summary = "linear attention without decay";
  static constexpr std::string_view formula = "S_t = S_{t-1} + k_t v_t^T;  o_t = scale S_t^T q_t";
  static constexpr std::string_view citation =
      "Katharopoulos et al., Transformers are RNNs, arXiv:2006.16236";
  static std::vector<ArgumentSpec> inputs() { return ungated_inputs(); }
  static std::vector<ArgumentSpec> outputs() { return state_outputs(); }
  static GatedForm form() { return {}; }
  static constexpr OperatorTraits traits{
      .with_gates = "simple_gla", .default_scale = &root_scale, .form = &form};

  template <typename Real>
  using Inputs = UngatedInputs<Real>;
  template <typename Real>
  using Outputs = StateOutputs<Real>;

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    return state_forward(x, x.q, Write{x, NoDecay<Real>()});
  }
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    Inputs<Real> y = x;
    Matrix<Real> none;
    state_adjoint(x, x.q, Write{x, NoDecay<Real>()}, d, y, y.q, none);
    return y;
  }
};

}  // namespace assay
