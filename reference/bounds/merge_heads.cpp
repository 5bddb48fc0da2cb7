// The bounds of merge_heads: inner products of declared relative error, y `readout`, dx the adjoint's, dW
// `value_readout` and `total`.
#include "reference/operators/merge_heads.h"

#include "reference/bounds/storage.h"

namespace assay {
namespace {

using In = MergeHeads::In;
using Out = MergeHeads::Out;

/// Sum over i of a_ri b_ic for every r, c; of |a_ri b_ic|, and of (1 + |a|)(1 + |b|): the companion, and what
/// underflow meets.
struct Products {
  double value = 0, companion = 0, spread = 0;
};
template <typename A, typename B>
Products products(int64_t count, const A& a, const B& b) {
  Products y;
  for (int64_t i = 0; i < count; ++i) {
    const double x = a(i), z = b(i);
    y.value += x * z, y.companion += std::fabs(x * z), y.spread += (1 + std::fabs(x)) * (1 + std::fabs(z));
  }
  return y;
}

ElementBound element(const Products& y, double relative, const Arithmetic& a, const Storage& storage,
                     int64_t count) {
  const double lost = kUnderflowEvents * underflow_of(a, claims_exact(a)) * (1 + relative) * y.spread;
  return storage.element(y.value, y.companion, relative * y.companion, unless_over(y.spread, lost),
                         static_cast<double>(count) + 16);
}

double at(const SliceMatrix& m, int64_t r, int64_t c) {
  return m.values[static_cast<size_t>(r * m.columns + c)];
}

}  // namespace

SliceBounds MergeHeads::forward_bound(const SliceProblem& p) {
  const Arithmetic& a = p.problem->arithmetic;
  const SliceMatrix &x = p.inputs[In::x], &W = p.inputs[In::weight];
  const Storage storage(a.output_roundoff, dtype_of(p, {"x"}));
  SliceBounds y(Out::count);
  for (int64_t t = 0; t < x.rows; ++t)
    for (int64_t c = 0; c < W.columns; ++c)
      y[Out::y].push_back(
          element(products(
                      W.rows, [&](int64_t i) { return at(x, t, i); }, [&](int64_t i) { return at(W, i, c); }),
                  a.readout, a, storage, W.rows));
  return y;
}

SliceBounds MergeHeads::adjoint_bound(const SliceProblem& p) {
  const AdjointArithmetic& a = p.problem->adjoint;
  const SliceMatrix &x = p.inputs[In::x], &W = p.inputs[In::weight], &d = p.cotangents[Out::y];
  const Storage storage(a.state.output_roundoff, dtype_of(p, {"x"}));
  SliceBounds y(In::count);
  for (int64_t t = 0; t < x.rows; ++t)
    for (int64_t i = 0; i < W.rows; ++i)
      y[In::x].push_back(element(
          products(
              W.columns, [&](int64_t c) { return at(d, t, c); }, [&](int64_t c) { return at(W, i, c); }),
          a.adjoint.readout, a.adjoint, storage, W.columns));
  const double relative = a.value_readout + (1 + a.value_readout) * a.total;
  for (int64_t i = 0; i < W.rows; ++i)
    for (int64_t c = 0; c < W.columns; ++c)
      y[In::weight].push_back(
          element(products(
                      x.rows, [&](int64_t t) { return at(x, t, i); }, [&](int64_t t) { return at(d, t, c); }),
                  relative, a.adjoint, storage, x.rows));
  return y;
}

}  // namespace assay
