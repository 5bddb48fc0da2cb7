// The gated delta rule: the delta rule after a decay of the state, one per head and token.
//
//   S'_t = e^{g_t} S_{t-1}      S_t = S'_t + k_t (beta_t (.) (v_t - S'_t^T k_t))^T      o_t = scale S_t^T q_t
//
// g_t is one number, a natural-log decay of the old state, which is read after it; absent, it is 0. The rest
// in delta_transition.h, with D_t = e^{g_t}.
//
// Source: S. Yang, J. Kautz, A. Hatamizadeh, "Gated Delta Networks: Improving Mamba2 with Delta Rule", ICLR
// 2025, arXiv:2412.06464 (there alpha_t = e^{g_t} and the state is the transpose).
#pragma once
#include "reference/operator_traits.h"
#include "reference/operators/delta_transition.h"

namespace assay {

struct GatedDeltaRule : DeltaOperator<HeadDecay> {
  static constexpr std::string_view name = "gated_delta_rule";
  static constexpr std::string_view summary = "delta rule after a decay, one per head";
  static constexpr std::string_view formula =
      "S'_t = exp(g_t) S_{t-1};  S_t = S'_t + k_t (beta_t (.) (v_t - S'_t^T k_t))^T;  o_t = scale S_t^T q_t";
  static constexpr std::string_view citation = "Yang et al., Gated Delta Networks, arXiv:2412.06464";
  static std::vector<ArgumentSpec> inputs() { return arguments({"B", "T", "HV"}); }
  static SliceBounds forward_bound(const SliceProblem&);
  static SliceBounds adjoint_bound(const SliceProblem&);
  static bool enclose_forward(const SliceProblem&, int level, SliceBalls&);
  static bool enclose_adjoint(const SliceProblem&, int level, SliceBalls&);
  static constexpr OperatorTraits traits =
      norm_traits(&root_scale, &forward_bound, &adjoint_bound, &enclose_forward, &enclose_adjoint);
};

}  // namespace assay
