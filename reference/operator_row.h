// Makes an operator's row from its type: text, arguments and default scale from its members, evaluation from
// its transcription. Heavy: include in sources only.
#pragma once
#include "reference/gated_adjoint.h"
#include "reference/gated_forward.h"
#include "reference/literal.h"
#include "reference/literal_slice.h"

namespace assay {

template <typename Op>
const Operator& operator_text() {
  static const Operator text = [] {
    Operator op;
    op.name = Op::name, op.summary = Op::summary, op.formula = Op::formula, op.citation = Op::citation;
    op.inputs = Op::inputs(), op.outputs = Op::outputs();
    if constexpr (requires { Op::parameters(); }) op.parameters = Op::parameters();
    if constexpr (requires { Op::inexact; }) op.inexact = Op::inexact;
    if constexpr (requires { Op::heads_differ; }) op.heads_differ = Op::heads_differ;
    if constexpr (requires { Op::proportional_to_scale; })
      op.proportional_to_scale = Op::proportional_to_scale;
    if constexpr (requires { Op::absent_gate_is_zero; }) op.absent_gate_is_zero = Op::absent_gate_is_zero;
    op.takes_scale = requires { &Op::default_scale; };
    if constexpr (requires { &Op::default_scale; }) op.default_scale = &Op::default_scale;
    return op;
  }();
  return text;
}

/// The operator's own models of its kernels' arithmetic, where it has them.
template <typename Op>
LiteralRow row_with_models() {
  LiteralRow row = literal_row<Op>();
  if constexpr (requires { &Op::forward_bound; }) row.forward_model = &Op::forward_bound;
  if constexpr (requires { &Op::adjoint_bound; }) row.adjoint_model = &Op::adjoint_bound;
  // Its own way to enclosures, where balls do not serve.
  if constexpr (requires { &Op::enclose_forward; }) row.forward = &Op::enclose_forward;
  if constexpr (requires { &Op::enclose_adjoint; }) row.adjoint = &Op::enclose_adjoint;
  return row;
}

/// Operators that are the shared recurrence (those with a member `form`) are evaluated in blocks with their
/// transcription as the last rung; all others from their transcription alone.
template <typename Op>
Operator make_operator() {
  Operator op = operator_text<Op>();
  if constexpr (requires { Op::form(); }) {
    op.evaluate = [](const Problem& p) {
      return gated_forward(p, {Op::form(), &operator_text<Op>().parameters, &literal_column<Op>});
    };
    op.evaluate_adjoint = [](const Problem& p) {
      return gated_adjoint(p, {Op::form(), &operator_text<Op>().parameters, &literal_adjoint_slice<Op>});
    };
  } else {
    op.evaluate = [](const Problem& p) {
      return literal_forward(p, operator_text<Op>(), row_with_models<Op>());
    };
    op.evaluate_adjoint = [](const Problem& p) {
      return literal_adjoint(p, operator_text<Op>(), row_with_models<Op>());
    };
  }
  return op;
}

}  // namespace assay
