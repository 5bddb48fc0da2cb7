// What an operator's type says of itself beside its text and its mathematics, as its member `traits`: one
// aggregate with names, so that a misspelt one does not compile. operator_row.h makes the row of it.
#pragma once
#include <concepts>
#include <string_view>
#include <vector>

#include "reference/gated_form.h"
#include "reference/literal_evaluation.h"
#include "reference/operator.h"
#include "reference/slice_bounds.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

/// Null pointers and defaults: it has none, or it is as most are. Of what Operator has too, see there.
struct OperatorTraits {
  /// One slice per sequence and head; otherwise heads are part of a slice's matrices.
  bool per_head = true;
  bool inexact = false, heads_differ = false, proportional_to_scale = true, absent_gate_is_zero = true;
  std::string_view with_gates = "";
  BoundShape bound_shape = BoundShape::sums;
  std::vector<ParameterSpec> (*parameters)() = nullptr;
  double (*default_scale)(const Sizes&) = nullptr;

  /// How it is the recurrence that the gated family shares: then it is evaluated in blocks, with its
  /// transcription as the last rung, and bounded as bound.h and, in its gradients, bound_adjoint.h say.
  GatedForm (*form)() = nullptr;

  /// Otherwise it is evaluated from its transcription alone, and these are its bounds.
  SliceBounds (*forward_bound)(const SliceProblem&) = nullptr;
  SliceBounds (*adjoint_bound)(const SliceProblem&) = nullptr;
  /// Its own way to enclosures, where balls do not serve.
  bool (*enclose_forward)(const SliceProblem&, int level, SliceBalls&) = nullptr;
  bool (*enclose_adjoint)(const SliceProblem&, int level, SliceBalls&) = nullptr;

  /// Samples of what roundings do (rounding_noise.h), where it has no `form` to have them from.
  void (*forward_noise)(const Problem&, const Slice&, const NoiseVisit&) = nullptr;
  void (*adjoint_noise)(const Problem&, const Slice&, const NoiseVisit&) = nullptr;

  /// Exactly one of the two ways.
  constexpr bool evaluated_one_way() const {
    const bool own = forward_bound && adjoint_bound, any = forward_bound || adjoint_bound;
    return form ? !any && !enclose_forward && !enclose_adjoint : own && !enclose_forward == !enclose_adjoint;
  }
};

/// Bounds norm by norm, and enclosures by two precisions.
constexpr OperatorTraits norm_traits(double (*default_scale)(const Sizes&),
                                     SliceBounds (*forward)(const SliceProblem&),
                                     SliceBounds (*adjoint)(const SliceProblem&),
                                     bool (*enclose_forward)(const SliceProblem&, int, SliceBalls&),
                                     bool (*enclose_adjoint)(const SliceProblem&, int, SliceBalls&)) {
  return {.bound_shape = BoundShape::norms,
          .default_scale = default_scale,
          .forward_bound = forward,
          .adjoint_bound = adjoint,
          .enclose_forward = enclose_forward,
          .enclose_adjoint = enclose_adjoint};
}

/// What a row of operators.def names.
template <typename Op>
concept OperatorType = requires(typename Op::template Inputs<double>& x, const SliceProblem& p,
                                const typename Op::template Outputs<double>& d) {
  { Op::name } -> std::convertible_to<std::string_view>;
  { Op::summary } -> std::convertible_to<std::string_view>;
  { Op::formula } -> std::convertible_to<std::string_view>;
  { Op::citation } -> std::convertible_to<std::string_view>;
  { Op::inputs() } -> std::same_as<std::vector<ArgumentSpec>>;
  { Op::outputs() } -> std::same_as<std::vector<ArgumentSpec>>;
  { Op::traits } -> std::same_as<const OperatorTraits&>;
  /// What it takes from a problem beside its tensors: the head, parameters, which gate is there.
  { x.take(p) } -> std::same_as<void>;
  { Op::forward(x) } -> std::same_as<typename Op::template Outputs<double>>;
  { Op::adjoint(x, d) } -> std::same_as<typename Op::template Inputs<double>>;
}
&&Op::traits.evaluated_one_way();

}  // namespace assay
