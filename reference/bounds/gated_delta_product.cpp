// The bounds of the gated delta product: it is the gated delta rule on T M tokens, of which the first of each
// token's M has its decay and the last its query and cotangent, the others neither. So are its bounds, of the
// same declared arithmetic: what a kernel does at a write is what it does there at a token. The rule's o and
// dq at the last of M tokens are the product's, dg at the first; dk, dv and dbeta at all.
#include "reference/operators/gated_delta_product.h"

#include <algorithm>

#include "reference/bounds/enclosed_by_precision.h"
#include "reference/operators/gated_delta_rule.h"

namespace assay {
namespace {

using In = GatedDeltaProduct::In;
using Rule = GatedDeltaRule::In;
constexpr size_t kO = GatedDeltaProduct::Out::o;
static_assert(kO == GatedDeltaRule::Out::o);
static_assert(GatedDeltaProduct::Out::final_state == GatedDeltaRule::Out::final_state);

/// The slice as the gated delta rule has it. Gates are looked up by the same name there.
struct AsRule {
  SliceProblem slice;
  int64_t writes;

  explicit AsRule(const SliceProblem& x) : slice(x), writes(x.inputs[In::beta].columns) {
    slice.slice.tokens *= writes;
    const SliceMatrix &S0 = x.inputs[In::initial_state], &v = x.inputs[In::v];
    const SliceMatrix no_rates{v.rows * writes, S0.columns,
                               std::vector<double>(static_cast<size_t>(v.rows * writes * S0.columns)), false};
    slice.inputs.assign(Rule::count, {});
    slice.inputs[Rule::q] = spread(x.inputs[In::q], writes - 1);
    slice.inputs[Rule::k] = each_write(x.inputs[In::k]);
    slice.inputs[Rule::v] = each_write(v);
    slice.inputs[Rule::g] = spread(x.inputs[In::g], 0);
    slice.inputs[Rule::beta] = each_write(x.inputs[In::beta]);
    slice.inputs[Rule::beta_v] = no_rates;
    slice.inputs[Rule::initial_state] = S0;
    if (!x.cotangents.empty()) slice.cotangents[kO] = spread(x.cotangents[kO], writes - 1);
  }

  /// Rows of a token's writes lie one behind the other.
  SliceMatrix each_write(SliceMatrix m) const {
    m.rows *= writes, m.columns /= writes;
    return m;
  }
  /// Each row at that place of its token's writes, zeros at the others.
  SliceMatrix spread(const SliceMatrix& m, int64_t place) const {
    SliceMatrix y{m.rows * writes, m.columns, {}, m.present};
    y.values.assign(static_cast<size_t>(y.rows * y.columns), 0);
    for (int64_t t = 0; t < m.rows; ++t)
      std::copy_n(m.values.begin() + t * m.columns, m.columns,
                  y.values.begin() + (t * writes + place) * m.columns);
    return y;
  }
  /// The rows, of so many columns, at that place of each token's writes.
  std::vector<ElementBound> gathered(const std::vector<ElementBound>& y, int64_t columns,
                                     int64_t place) const {
    std::vector<ElementBound> rows;
    for (int64_t t = 0; t < slice.slice.tokens / writes; ++t) {
      const auto first = y.begin() + (t * writes + place) * columns;
      rows.insert(rows.end(), first, first + columns);
    }
    return rows;
  }
};

/// Every operation of the transcription has a relative error of at most `u`, the exponential 2^7 u.
Arithmetic transcribed(double u, const SliceProblem& x) {
  const SliceMatrix& S0 = x.inputs[In::initial_state];
  const auto K = static_cast<double>(S0.rows), V = static_cast<double>(S0.columns);
  Arithmetic a;
  a.decay = 130 * u, a.write = 5 * u, a.step = 3 * u, a.removal = (K + 8) * u;
  a.readout = (K * V + K + V + 8) * u;
  return a;
}

}  // namespace

SliceBounds GatedDeltaProduct::forward_bound(const SliceProblem& x) {
  const AsRule rule(x);
  SliceBounds y = GatedDeltaRule::forward_bound(rule.slice);
  y[kO] = rule.gathered(y[kO], x.inputs[In::initial_state].columns, rule.writes - 1);
  return y;
}
SliceBounds GatedDeltaProduct::adjoint_bound(const SliceProblem& x) {
  const AsRule rule(x);
  SliceBounds d = GatedDeltaRule::adjoint_bound(rule.slice), y(In::count);
  y[In::q] = rule.gathered(d[Rule::q], x.inputs[In::q].columns, rule.writes - 1);
  y[In::k] = std::move(d[Rule::k]), y[In::v] = std::move(d[Rule::v]);
  y[In::g] = rule.gathered(d[Rule::g], 1, 0);
  y[In::beta] = std::move(d[Rule::beta]), y[In::initial_state] = std::move(d[Rule::initial_state]);
  return y;
}
bool GatedDeltaProduct::enclose_forward(const SliceProblem& x, int level, SliceBalls& y) {
  return forward_by_precision<GatedDeltaProduct>(x, level, &transcribed, y);
}
bool GatedDeltaProduct::enclose_adjoint(const SliceProblem& x, int level, SliceBalls& y) {
  return adjoint_by_precision<GatedDeltaProduct>(x, level, &transcribed, y);
}

}  // namespace assay
