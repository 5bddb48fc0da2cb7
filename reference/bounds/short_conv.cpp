// The bounds of short_conv: inner products of declared relative error, o `readout`, dx and dS_0 the
// adjoint's, dweight `value_readout` and `total`. The final state is a copy.
#include "reference/operators/short_conv.h"

#include "reference/bounds/storage.h"

namespace assay {
namespace {

using In = ShortConv::In;
using Out = ShortConv::Out;

/// A sum of products: its value, its terms' absolute values, and what underflow meets.
struct Sum {
  double value = 0, companion = 0, spread = 0;
  int64_t terms = 0;

  void add(double a, double b) {
    value += a * b, companion += std::fabs(a * b), spread += (1 + std::fabs(a)) * (1 + std::fabs(b));
    ++terms;
  }
};

/// One sequence, read as in short_conv.h.
struct Window {
  const SliceMatrix &x, &weight, &S0;
  int64_t T, D, K;

  explicit Window(const SliceProblem& p)
      : x(p.inputs[In::x]),
        weight(p.inputs[In::weight]),
        S0(p.inputs[In::initial_state]),
        T(x.rows),
        D(x.columns),
        K(weight.columns) {}
  static double at(const SliceMatrix& m, int64_t r, int64_t c) {
    return m.values[static_cast<size_t>(r * m.columns + c)];
  }
  /// Column i of the history.
  double history(int64_t i, int64_t d) const { return i < K ? at(S0, d, i) : at(x, i - K, d); }
  /// Its gradient.
  Sum history_gradient(const SliceMatrix& d_o, const SliceMatrix& dS, int64_t i, int64_t d) const {
    Sum sum;
    if (i >= T) sum.add(at(dS, d, i - T), 1);
    for (int64_t t = std::max<int64_t>(1, i - K + 1); t <= std::min(i, T); ++t)
      sum.add(at(weight, d, i - t), at(d_o, t - 1, d));
    return sum;
  }
};

ElementBound element(const Sum& y, double relative, double underflow, const Storage& storage) {
  const double lost = kUnderflowEvents * underflow * (1 + relative) * y.spread;
  return storage.element(y.value, y.companion, relative * y.companion, unless_over(y.spread, lost),
                         static_cast<double>(y.terms) + 16);
}

ElementBound copied(double value) {
  return {std::fabs(value), 0, 0};
}

}  // namespace

SliceBounds ShortConv::forward_bound(const SliceProblem& p) {
  const Arithmetic& a = p.problem->arithmetic;
  const Window f(p);
  const Storage storage(a.output_roundoff, dtype_of(p, {"x"}));
  const double underflow = underflow_of(a, claims_exact(a));
  SliceBounds y(Out::count);
  for (int64_t t = 1; t <= f.T; ++t)
    for (int64_t d = 0; d < f.D; ++d) {
      Sum sum;
      for (int64_t j = 0; j < f.K; ++j) sum.add(Window::at(f.weight, d, j), f.history(t + j, d));
      y[Out::o].push_back(element(sum, a.readout, underflow, storage));
    }
  for (int64_t d = 0; d < f.D; ++d)
    for (int64_t j = 0; j < f.K; ++j) y[Out::final_state].push_back(copied(f.history(f.T + j, d)));
  return y;
}

SliceBounds ShortConv::adjoint_bound(const SliceProblem& p) {
  const AdjointArithmetic& a = p.problem->adjoint;
  const Window f(p);
  const SliceMatrix &d_o = p.cotangents[Out::o], &dS = p.cotangents[Out::final_state];
  const Storage storage(a.state.output_roundoff, dtype_of(p, {"x"})), of_state(0, Dtype::fp32);
  const double relative = a.value_readout + (1 + a.value_readout) * a.total;
  const double underflow = underflow_of(a.adjoint, claims_exact(a.adjoint) && relative == 0);
  SliceBounds y(In::count);
  const auto gradient = [&](int64_t i, int64_t d, const Storage& of) {
    return element(f.history_gradient(d_o, dS, i, d), a.adjoint.readout, underflow, of);
  };
  for (int64_t t = 0; t < f.T; ++t)
    for (int64_t d = 0; d < f.D; ++d) y[In::x].push_back(gradient(f.K + t, d, storage));
  for (int64_t d = 0; d < f.D; ++d)
    for (int64_t j = 0; j < f.K; ++j) {
      Sum sum;
      for (int64_t t = 1; t <= f.T; ++t) sum.add(Window::at(d_o, t - 1, d), f.history(t + j, d));
      y[In::weight].push_back(element(sum, relative, underflow, storage));
      y[In::initial_state].push_back(gradient(j, d, of_state));
    }
  return y;
}

}  // namespace assay
