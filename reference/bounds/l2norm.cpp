// The bounds of l2norm: y has the relative error `readout`, as no term of |x|^2 + eps cancels; dx the
// adjoint's, of r |dy_k| + r |y_k| sum_j |y_j dy_j|. A square that underflows is lost beside eps: K times it
// over eps is what it costs, relative. r is at most eps^-1/2. Where |x|^2 may overflow there is no bound.
#include "reference/operators/l2norm.h"

#include "reference/bounds/storage.h"

namespace assay {
namespace {

constexpr double kMostInverse = 0x1p10;  ///< above eps^-1/2

/// Of one token.
struct Row {
  const double* x;
  int64_t K;
  double square, inverse;

  Row(const SliceMatrix& m, int64_t t) : x(m.values.data() + t * m.columns), K(m.columns), square(0) {
    for (int64_t c = 0; c < K; ++c) square += x[c] * x[c];
    inverse = 1 / std::sqrt(square + L2Norm::epsilon);
  }
  double y(int64_t c) const { return x[c] * inverse; }
  double roundings() const { return 4 * static_cast<double>(K) + 16; }
  /// With what it meets of `reach`, a magnitude.
  double lost(const Arithmetic& a, double reach) const {
    const double squares = static_cast<double>(K) * kMostInverse * kMostInverse;
    return unless_over(square * (1 + 0x1p-20),
                       kUnderflowEvents * underflow_of(a, claims_exact(a)) * squares * reach);
  }
};

}  // namespace

SliceBounds L2Norm::forward_bound(const SliceProblem& p) {
  const Arithmetic& a = p.problem->arithmetic;
  const SliceMatrix& x = p.inputs[In::x];
  const Storage storage(a.output_roundoff, dtype_of(p, {"x"}));
  SliceBounds y(Out::count);
  for (int64_t t = 0; t < x.rows; ++t) {
    const Row row(x, t);
    for (int64_t c = 0; c < row.K; ++c) {
      const double size = std::fabs(row.y(c));
      y[Out::y].push_back(storage.element(row.y(c), size, a.readout * size, row.lost(a, 1), row.roundings()));
    }
  }
  return y;
}

SliceBounds L2Norm::adjoint_bound(const SliceProblem& p) {
  const AdjointArithmetic& a = p.problem->adjoint;
  const SliceMatrix &x = p.inputs[In::x], &d = p.cotangents[Out::y];
  const Storage storage(a.state.output_roundoff, dtype_of(p, {"x"}));
  SliceBounds y(In::count);
  for (int64_t t = 0; t < x.rows; ++t) {
    const Row row(x, t);
    const double* dy = d.values.data() + t * d.columns;
    double along = 0, terms = 0, reach = 1, product = 0;
    for (int64_t c = 0; c < row.K; ++c) {
      along += row.y(c) * dy[c], terms += std::fabs(row.y(c) * dy[c]);
      reach += std::fabs(dy[c]), product += std::fabs(row.x[c] * dy[c]);
    }
    // x . dy is summed before it is divided.
    const double most = std::fmax(product, reach) * kMostInverse;
    const double lost = row.lost(a.adjoint, unless_over(most, reach * kMostInverse));
    for (int64_t c = 0; c < row.K; ++c) {
      const double value = row.inverse * (dy[c] - row.y(c) * along),
                   size = row.inverse * (std::fabs(dy[c]) + std::fabs(row.y(c)) * terms);
      y[In::x].push_back(storage.element(value, size, a.adjoint.readout * size, lost, row.roundings()));
    }
  }
  return y;
}

}  // namespace assay
