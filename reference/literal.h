// The upper rungs of the ladder: an operator's literal transcription over balls and intervals. Heavy: include
// in sources only.
#pragma once
#include <algorithm>

#include "reference/gated_adjoint.h"
#include "reference/gated_forward.h"
#include "reference/literal_slice.h"
#include "src/base/numerics/eigen_traits.h"
#include "src/base/numerics/multiprecision.h"

namespace assay {

/// Fills an operator's inputs from a slice in the parts of its form: `q`, `k`, `g` are `tokens` rows from
/// `first` on, K wide.
template <typename Op, typename Real>
typename Op::template Inputs<Real> form_inputs(const GatedForm& form, int64_t first, int64_t tokens,
                                               int64_t K, const std::vector<double>& q,
                                               const std::vector<double>& k, const std::vector<double>& g,
                                               const std::vector<double>& bonus,
                                               const SliceProblem& settings) {
  using Inputs = typename Op::template Inputs<Real>;
  Inputs in;
  const auto rows = [&](const std::vector<double>& x) {
    return to_matrix<Real>(x.data() + first * K, tokens, K);
  };
  const Real zero(0);
  Inputs::each(in, [&](std::string_view name, Matrix<Real>& m) {
    if (name == form.q) m = rows(q);
    if (name == form.k) m = rows(k);
    if (name == form.bonus) m = to_matrix<Real>(bonus.data(), 1, K);
    if (name == form.head_gate) m = Matrix<Real>::Constant(1, 1, zero);  // its decay is in g
    if (name != form.gate) return;
    m = g.empty() ? Matrix<Real>(Matrix<Real>::Constant(tokens, K, zero)) : rows(g);
    if (!form.per_channel) m = m.leftCols(1).eval();
  });
  take_settings(settings, in);
  return in;
}

/// In runs of tokens, each resumed from the state of the one before: the memory of one run.
template <typename Op, typename Real>
void literal_column_over(const KeyInputs& x, const ColumnInputs& column, ColumnOutputs& y) {
  constexpr int64_t run = 256;
  const GatedForm form = Op::form();
  Matrix<Real> S = to_matrix<Real>(column.S0.data(), x.K, 1);
  y = {};
  for (int64_t t = 0; t < x.tokens; t += run) {
    const int64_t n = std::min(run, x.tokens - t);
    auto in = form_inputs<Op, Real>(form, t, n, x.K, x.q, x.k, x.g, x.bonus, x.settings);
    decltype(in)::each(in, [&](std::string_view name, Matrix<Real>& m) {
      if (name == form.v) m = to_matrix<Real>(column.v.data() + t, n, 1);
      if (name == form.state) m = S;
    });
    const auto out = Op::forward(in);
    append_balls(out.o, y.o);
    S = out.S;
  }
  append_balls(S, y.S);
}

/// Intervals of 40 and 160 decimal digits.
template <typename Op>
bool literal_column(const KeyInputs& x, const ColumnInputs& column, int level, ColumnOutputs& y) {
  switch (level) {
    case 0:
      return literal_column_over<Op, Interval<40>>(x, column, y), true;
    case 1:
      return literal_column_over<Op, Interval<160>>(x, column, y), true;
    default:
      return false;
  }
}

template <typename Op, typename Real>
void literal_adjoint_over(const SliceInputs& x, SliceGradients& y) {
  const GatedForm form = Op::form();
  auto in = form_inputs<Op, Real>(form, 0, x.tokens, x.K, x.q, x.k, x.g, x.bonus, x.settings);
  using Inputs = decltype(in);
  Inputs::each(in, [&](std::string_view name, Matrix<Real>& m) {
    if (name == form.v) m = to_matrix<Real>(x.v.data(), x.tokens, x.V);
    if (name == form.state) m = to_matrix<Real>(x.S0.data(), x.K, x.V);
  });
  typename Op::template Outputs<Real> cotangents;
  cotangents.o = to_matrix<Real>(x.d_o.data(), x.tokens, x.V);
  cotangents.S = to_matrix<Real>(x.dS.data(), x.K, x.V);
  const Inputs out = Op::adjoint(in, cotangents);
  y = {};
  Inputs::each(out, [&](std::string_view name, const Matrix<Real>& m) {
    if (name == form.q) append_balls(m, y.q);
    if (name == form.k) append_balls(m, y.k);
    if (name == form.v) append_balls(m, y.v);
    if (name == form.gate) append_balls(m, y.g);
    if (name == form.state) append_balls(m, y.S0);
    if (name == form.bonus) append_balls(m, y.bonus);
  });
}

/// Balls over double-double, then intervals of 40 and 160 decimal digits.
template <typename Op>
bool literal_adjoint_slice(const SliceInputs& x, int level, SliceGradients& y) {
  switch (level) {
    case 0:
      return literal_adjoint_over<Op, Ball<DoubleDouble>>(x, y), true;
    case 1:
      return literal_adjoint_over<Op, Interval<40>>(x, y), true;
    case 2:
      return literal_adjoint_over<Op, Interval<160>>(x, y), true;
    default:
      return false;
  }
}

}  // namespace assay
