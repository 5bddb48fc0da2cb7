// Lightning attention: linear attention with a fixed decay per head and layer.
//
//   S_t = e^{gamma_h} S_{t-1} + k_t v_t^T          o_t = scale S_t^T q_t          t = 1..T
//   gamma_h = -(8 / H) (1 - layer_idx / num_layers) h
//
// One slice: one sequence n, one head h = 0..H-1; head 0 never decays. q_t, k_t in R^K, v_t, o_t in R^V, S_t
// in R^{K x V}; S_0 is the initial state or 0, S_T the final state. Domain: everything finite; 0 <= layer_idx
// <= num_layers.
//
// Its bounds are those of every operator with a `form`: reference/bound.h for the outputs,
// reference/bound_adjoint.h for the gradients, from what a kernel declares.
//
// Source: Z. Qin et al., "Lightning Attention-2: A Free Lunch for Handling Unlimited Sequence Lengths in
// Large Language Models", arXiv:2401.04658; the slopes as in Z. Qin et al., "TransNormerLLM",
// arXiv:2307.14995.
#pragma once
#include <cmath>

#include "reference/operator_traits.h"
#include "reference/operators/state_recurrence.h"
#include "reference/slice_problem.h"

namespace assay {

struct LightningAttn {
  static constexpr std::string_view name = "lightning_attn";
  static constexpr std::string_view summary = "linear attention, a fixed decay of each head and layer";
  static constexpr std::string_view formula =
      "S_t = exp(-(8/H)(1 - layer_idx/num_layers) h) S_{t-1} + k_t v_t^T;  o_t = scale S_t^T q_t";
  static constexpr std::string_view citation = "Qin et al., Lightning Attention-2, arXiv:2401.04658";
  static std::vector<ArgumentSpec> inputs() { return ungated_inputs(); }
  static std::vector<ArgumentSpec> outputs() { return state_outputs(); }
  static std::vector<ParameterSpec> parameters() {
    return {{"layer_idx", 0, "index of the layer, from 0", 0, HUGE_VAL, true, "num_layers"},
            {"num_layers", 1, "number of layers", 1, HUGE_VAL, true}};
  }
  static FixedDecay fixed_decay(const Problem& p, int64_t head) {
    SliceProblem settings;
    const std::vector<ParameterSpec> specs = parameters();
    settings.parameters = &specs, settings.problem = &p;
    const double layer = settings.parameter("layer_idx"), layers = settings.parameter("num_layers");
    const DoubleDouble weight = decay<DoubleDouble>(head, p.sizes.H, layer, layers);
    return {weight, log_decay<double>(head, p.sizes.H, layer, layers)};
  }
  static GatedForm form() { return {.fixed = &fixed_decay}; }
  static constexpr OperatorTraits traits{.inexact = true,
                                         .heads_differ = true,
                                         .with_gates = "simple_gla",
                                         .parameters = &parameters,
                                         .default_scale = &root_scale,
                                         .form = &form};

  template <typename Real>
  struct Inputs : UngatedInputs<Real> {
    int64_t head = 0, heads = 1;
    double layer = 0, layers = 1;

    void take(const SliceProblem& x) {
      head = x.slice.h, heads = x.heads;
      layer = x.parameter("layer_idx"), layers = x.parameter("num_layers");
    }
  };
  template <typename Real>
  using Outputs = StateOutputs<Real>;

  /// gamma_h = -8 h (num_layers - layer_idx) / (H num_layers): both products are exact integers.
  template <typename Real>
  static Real log_decay(int64_t head, int64_t heads, double layer, double layers) {
    return Real(-8 * static_cast<double>(head) * (layers - layer)) /
           Real(static_cast<double>(heads) * layers);
  }
  template <typename Real>
  static Real decay(int64_t head, int64_t heads, double layer, double layers) {
    using std::exp;
    if (head == 0 || layer == layers) return Real(1);
    return exp(log_decay<Real>(head, heads, layer, layers));
  }
  template <typename Real>
  static HeadDecay<Real> decays(const Inputs<Real>& x) {
    const Real one = decay<Real>(x.head, x.heads, x.layer, x.layers);
    const Vector<Real> a = Vector<Real>::Constant(x.q.rows(), one);
    return HeadDecay<Real>(a);
  }

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    return state_forward(x, x.q, Write{x, decays(x)});
  }
  /// The decay is no input and has no gradient.
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    Inputs<Real> y = x;
    Matrix<Real> of_decay(x.q.rows(), 1);
    state_adjoint(x, x.q, Write{x, decays(x)}, d, y, y.q, of_decay);
    return y;
  }
};

}  // namespace assay
