// Makes an operator's row from its type: text, arguments and traits from its members, evaluation from
// its transcription. Heavy: include in sources only.
#pragma once
#include "reference/gated_adjoint.h"
#include "reference/gated_forward.h"
#include "reference/gated_noise.h"
#include "reference/literal.h"
#include "reference/literal_slice.h"
#include "reference/operator_traits.h"

namespace assay {

inline void take_traits(const OperatorTraits& traits, Operator& op) {
  if (traits.parameters) op.parameters = traits.parameters();
  op.inexact = traits.inexact, op.heads_differ = traits.heads_differ;
  op.proportional_to_scale = traits.proportional_to_scale;
  op.absent_gate_is_zero = traits.absent_gate_is_zero;
  op.with_gates = traits.with_gates, op.bound_shape = traits.bound_shape;
  op.takes_scale = traits.default_scale != nullptr;
  if (traits.default_scale) op.default_scale = traits.default_scale;
}

template <typename Op>
const Operator& operator_text() {
  static const Operator text = [] {
    Operator op;
    op.name = Op::name, op.summary = Op::summary, op.formula = Op::formula, op.citation = Op::citation;
    op.inputs = Op::inputs(), op.outputs = Op::outputs();
    take_traits(Op::traits, op);
    return op;
  }();
  return text;
}

/// Operators that are the shared recurrence (those whose traits have a `form`) are evaluated in blocks with
/// their transcription as the last rung; all others from their transcription alone.
template <OperatorType Op>
Operator make_operator() {
  Operator op = operator_text<Op>();
  if constexpr (Op::traits.form != nullptr) {
    op.evaluate = [](const Problem& p) {
      return gated_forward(p, {Op::form(), &operator_text<Op>().parameters, &literal_column<Op>});
    };
    op.evaluate_adjoint = [](const Problem& p) {
      return gated_adjoint(p, {Op::form(), &operator_text<Op>().parameters, &literal_adjoint_slice<Op>});
    };
    op.forward_noise = [](const Problem& p, const Slice& s, const NoiseVisit& visit) {
      gated_forward_noise(p, Op::form(), s, visit);
    };
    op.adjoint_noise = [](const Problem& p, const Slice& s, const NoiseVisit& visit) {
      gated_adjoint_noise(p, Op::form(), s, visit);
    };
  } else {
    op.evaluate = [](const Problem& p) { return literal_forward(p, operator_text<Op>(), literal_row<Op>()); };
    op.evaluate_adjoint = [](const Problem& p) {
      return literal_adjoint(p, operator_text<Op>(), literal_row<Op>());
    };
    op.forward_noise = Op::traits.forward_noise, op.adjoint_noise = Op::traits.adjoint_noise;
  }
  return op;
}

}  // namespace assay
