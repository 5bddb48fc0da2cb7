// The delta rule: what a key is bound to is replaced, not added to.
//
//   r_t = v_t - S_{t-1}^T k_t          S_t = S_{t-1} + k_t (beta_t (.) r_t)^T          o_t = scale S_t^T q_t
//
// One slice: one sequence n, one head h; the rest in delta_transition.h, with D_t = 1.
//
// Source: S. Yang, B. Wang, Y. Zhang, Y. Shen, Y. Kim, "Parallelizing Linear Transformers with the Delta Rule
// over Sequence Length", NeurIPS 2024, arXiv:2406.06484 (there the state is the transpose).
#pragma once
#include "reference/operator_traits.h"
#include "reference/operators/delta_transition.h"

namespace assay {

struct DeltaRule : DeltaOperator<NoDecay> {
  static constexpr std::string_view name = "delta_rule";
  static constexpr std::string_view summary = "delta rule: what a key is bound to is replaced";
  static constexpr std::string_view formula =
      "S_t = S_{t-1} + k_t (beta_t (.) (v_t - S_{t-1}^T k_t))^T;  o_t = scale S_t^T q_t";
  static constexpr std::string_view citation = "Yang et al., DeltaNet, arXiv:2406.06484";
  static std::vector<ArgumentSpec> inputs() { return arguments({}); }
  static SliceBounds forward_bound(const SliceProblem&);
  static SliceBounds adjoint_bound(const SliceProblem&);
  static bool enclose_forward(const SliceProblem&, int level, SliceBalls&);
  static bool enclose_adjoint(const SliceProblem&, int level, SliceBalls&);
  static constexpr OperatorTraits traits =
      norm_traits(&root_scale, &forward_bound, &adjoint_bound, &enclose_forward, &enclose_adjoint);
};

}  // namespace assay
