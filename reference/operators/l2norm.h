// Rows of queries or keys as long as one: what delta rules take (their domain is the unit sphere).
//
//   y_t = x_t / sqrt(|x_t|^2 + eps),    eps = 10^-6 as fp32 has it
//
// per token and head, over the channels [B,T,H,K]; y = 0 at x = 0. Domain: x finite; |x|^2 below the largest
// number of fp32, beyond which kernels in fp32 have no reciprocal.
//
// Source: S. Yang et al., "Parallelizing Linear Transformers with the Delta Rule over Sequence Length",
// NeurIPS 2024, arXiv:2406.06484 (L2 normalisation of keys and queries).
#pragma once
#include "reference/operator_traits.h"
#include "reference/operators/rows_of_x.h"
#include "reference/slice_problem.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

struct L2Norm {
  static constexpr std::string_view name = "l2norm";
  static constexpr std::string_view summary = "queries or keys divided by their Euclidean length, per head";
  static constexpr std::string_view formula = "y_t = x_t / sqrt(|x_t|^2 + 1e-6)";
  static constexpr std::string_view citation = "Yang et al., DeltaNet, arXiv:2406.06484";
  static constexpr double epsilon = 0x1.0c6f7ap-20;
  /// Places in inputs() and outputs().
  struct In {
    enum : size_t { x, count };
  };
  struct Out {
    enum : size_t { y, count };
  };
  static std::vector<ArgumentSpec> inputs() { return {{"x", {"B", "T", "H", "K"}, Role::value}}; }
  static std::vector<ArgumentSpec> outputs() { return {{"y", {"B", "T", "H", "K"}, Role::output}}; }
  static SliceBounds forward_bound(const SliceProblem&);
  static SliceBounds adjoint_bound(const SliceProblem&);
  static constexpr OperatorTraits traits{
      .inexact = true, .forward_bound = &forward_bound, .adjoint_bound = &adjoint_bound};

  template <typename Real>
  using Inputs = RowsOfX<Real>;
  template <typename Real>
  struct Outputs {
    Matrix<Real> y;

    template <typename Self, typename Visit>
    static void each(Self& y, const Visit& visit) {
      visit("y", y.y);
    }
  };

  /// r_t = (|x_t|^2 + eps)^{-1/2}.
  template <typename Real>
  static Real inverse_length(const Matrix<Real>& x, Eigen::Index t) {
    using std::exp;
    using std::log;
    const Real square = x.row(t).squaredNorm();
    return exp(Real(-(log(Real(square + Real(epsilon))) / Real(2))));
  }

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    Matrix<Real> y = x.x;
    for (Eigen::Index t = 0; t < y.rows(); ++t) y.row(t) *= inverse_length(x.x, t);
    return {y};
  }

  /// dx = r (dy - y (y . dy)).
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    Matrix<Real> dx = forward(x).y;
    for (Eigen::Index t = 0; t < dx.rows(); ++t) {
      const Real along = dx.row(t).dot(d.y.row(t)), r = inverse_length(x.x, t);
      dx.row(t) = (d.y.row(t) - dx.row(t) * along) * r;
    }
    return {dx};
  }
};

}  // namespace assay
