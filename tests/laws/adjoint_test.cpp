// <w, J d> = <J^T w, d> for every operator: the adjoint against dual numbers carried through the forward
// transcription.
#include <gtest/gtest.h>

#include <random>

#include "reference/operator.h"
#include "reference/operators/gla.h"
#include "src/numerics/multiprecision.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace {

using Real = Mpfr<60>;
using D = Dual<Real>;

struct Shape {
  Eigen::Index T, K, V;
};

Matrix<Real> draw(Eigen::Index rows, Eigen::Index columns, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Matrix<Real> m(rows, columns);
  for (Eigen::Index r = 0; r < rows; ++r)
    for (Eigen::Index c = 0; c < columns; ++c) m(r, c) = Real(normal(random));
  return m;
}

Matrix<D> along(const Matrix<Real>& x, const Matrix<Real>& d) {
  Matrix<D> m(x.rows(), x.cols());
  for (Eigen::Index r = 0; r < x.rows(); ++r)
    for (Eigen::Index c = 0; c < x.cols(); ++c) m(r, c) = D(x(r, c), d(r, c));
  return m;
}

Real inner(const Matrix<Real>& a, const Matrix<Real>& b) {
  Real sum = 0;
  for (Eigen::Index r = 0; r < a.rows(); ++r)
    for (Eigen::Index c = 0; c < a.cols(); ++c) sum += a(r, c) * b(r, c);
  return sum;
}

Real tangent_inner(const Matrix<D>& a, const Matrix<Real>& w) {
  Real sum = 0;
  for (Eigen::Index r = 0; r < a.rows(); ++r)
    for (Eigen::Index c = 0; c < a.cols(); ++c) sum += a(r, c).tangent * w(r, c);
  return sum;
}

/// Largest |<w, J d> - <J^T w, d>| relative to the sum of absolute terms, over shapes and decays; each input
/// alone and all.
template <typename Op>
void check_adjoint(const char* decay, Shape s, uint64_t seed) {
  std::mt19937_64 random(seed);
  typename Op::template Inputs<Real> x{draw(s.T, s.K, random), draw(s.T, s.K, random), draw(s.T, s.V, random),
                                       Matrix<Real>(s.T, s.K), draw(s.K, s.V, random), Real(0.5)};
  for (Eigen::Index t = 0; t < s.T; ++t)
    for (Eigen::Index c = 0; c < s.K; ++c) x.g(t, c) = Real(draw_decay(decay, random));
  const typename Op::template Cotangents<Real> w{draw(s.T, s.V, random), draw(s.K, s.V, random)};
  const auto gradient = Op::adjoint(x, w);
  for (int moved = 0; moved < 6; ++moved) {
    const auto direction = [&](int which, Eigen::Index rows, Eigen::Index columns) {
      return moved == which || moved == 5 ? draw(rows, columns, random)
                                          : Matrix<Real>(Matrix<Real>::Constant(rows, columns, Real(0)));
    };
    const Matrix<Real> dq = direction(0, s.T, s.K), dk = direction(1, s.T, s.K), dv = direction(2, s.T, s.V),
                       dg = direction(3, s.T, s.K), dS = direction(4, s.K, s.V);
    const auto y = Op::forward(typename Op::template Inputs<D>{along(x.q, dq), along(x.k, dk), along(x.v, dv),
                                                               along(x.g, dg), along(x.S0, dS), D(x.scale)});
    const Real forward = tangent_inner(y.o, w.o) + tangent_inner(y.S, w.S);
    const Real backward = inner(gradient.q, dq) + inner(gradient.k, dk) + inner(gradient.v, dv) +
                          inner(gradient.g, dg) + inner(gradient.S0, dS);
    // 60 digits, fewer than 10^5 roundings, terms of at most 10^6.
    EXPECT_LE(abs(forward - backward), Real("1e-48"))
        << Op::name << " " << decay << " input " << moved << " seed " << seed << ": " << forward << " and "
        << backward;
    if (moved != 3) {
      EXPECT_NE(forward, 0) << Op::name << " " << decay << " input " << moved;
    }
  }
}

TEST(Adjoint, agrees_with_dual_numbers_for_every_operator_input_and_decay) {
  int checked = 0;
  uint64_t seed = 1;
  for (const char* decay : {"none", "near-one", "logsigmoid", "strong", "reset", "ladder", "extreme"})
    for (Shape shape : {Shape{1, 1, 1}, Shape{7, 3, 2}, Shape{20, 2, 5}}) {
#define ASSAY_GATED_OPERATOR(Op) check_adjoint<Op>(decay, shape, seed++), ++checked;
#include "reference/operators.def"
#undef ASSAY_GATED_OPERATOR
    }
  EXPECT_EQ(checked, 21 * static_cast<int>(operators().size()));
}

}  // namespace
}  // namespace assay
