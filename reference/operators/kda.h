// Kimi Delta Attention: the delta rule after a decay of the state, one per key channel and token.
//
//   S'_t = diag(e^{g_t}) S_{t-1}   S_t = S'_t + k_t (beta_t (.) (v_t - S'_t^T k_t))^T   o_t = scale S_t^T q_t
//
// g_t in R^K is a natural-log decay of the old state, which is read after it; absent, it is 0. The rest in
// delta_transition.h, with D_t = diag(e^{g_t}).
//
// Source: Kimi Team, "Kimi Linear: An Expressive, Efficient Attention Architecture", arXiv:2510.26692 (Kimi
// Delta Attention; there alpha_t = e^{g_t}).
#pragma once
#include "reference/operator_traits.h"
#include "reference/operators/delta_transition.h"

namespace assay {

struct Kda : DeltaOperator<ChannelDecay> {
  static constexpr std::string_view name = "kda";
  static constexpr std::string_view summary = "delta rule after decays, one per key channel";
  static constexpr std::string_view formula =
      "S'_t = diag(exp(g_t)) S_{t-1};  S_t = S'_t + k_t (beta_t (.) (v_t - S'_t^T k_t))^T;  o_t = scale "
      "S_t^T q_t";
  static constexpr std::string_view citation = "Kimi Team, Kimi Linear, arXiv:2510.26692";
  static std::vector<ArgumentSpec> inputs() { return arguments({"B", "T", "HV", "K"}); }
  static SliceBounds forward_bound(const SliceProblem&);
  static SliceBounds adjoint_bound(const SliceProblem&);
  static bool enclose_forward(const SliceProblem&, int level, SliceBalls&);
  static bool enclose_adjoint(const SliceProblem&, int level, SliceBalls&);
  static constexpr OperatorTraits traits =
      norm_traits(&root_scale, &forward_bound, &adjoint_bound, &enclose_forward, &enclose_adjoint);
};

}  // namespace assay
