// A log decay by softplus, with a rate per head and a bias per channel.
//
//   g = -e^{A_h} softplus(x + bias_hk)
//
// elementwise over [B,T,H,K]; A [H], bias [H,K], both optional (then 0). With K = 1 the gate of one decay per
// head. Domain: x, bias, A finite.
//
// Source: A. Gu, T. Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", arXiv:2312.00752
// (dt = softplus(x + bias), A = -e^{A_log}, decay e^{dt A}).
#pragma once
#include "reference/operator_traits.h"
#include "reference/operators/logistic.h"
#include "reference/slice_problem.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

struct GateSoftplus {
  static constexpr std::string_view name = "gate_softplus";
  static constexpr std::string_view summary = "log decay -exp(A) softplus(x + bias), elementwise";
  static constexpr std::string_view formula = "g = -exp(A_h) log(1 + exp(x + bias_hk))";
  static constexpr std::string_view citation = "Gu, Dao, Mamba, arXiv:2312.00752";
  /// Places in inputs() and outputs().
  struct In {
    enum : size_t { x, A, bias, count };
  };
  struct Out {
    enum : size_t { g, count };
  };
  static std::vector<ArgumentSpec> inputs() {
    return {{"x", {"B", "T", "H", "K"}, Role::value},
            {"A", {"H"}, Role::value, true},
            {"bias", {"H", "K"}, Role::value, true}};
  }
  static std::vector<ArgumentSpec> outputs() { return {{"g", {"B", "T", "H", "K"}, Role::log_decay}}; }
  static SliceBounds forward_bound(const SliceProblem&);
  static SliceBounds adjoint_bound(const SliceProblem&);
  static constexpr OperatorTraits traits{
      .inexact = true, .forward_bound = &forward_bound, .adjoint_bound = &adjoint_bound};

  /// x T x K, A 1 x 1, bias 1 x K.
  template <typename Real>
  struct Inputs {
    Matrix<Real> x, A, bias;
    Real scale{1};

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("x", x.x), visit("A", x.A), visit("bias", x.bias);
    }
    void take(const SliceProblem&) {}
  };
  template <typename Real>
  struct Outputs {
    Matrix<Real> g;  ///< T x K

    template <typename Self, typename Visit>
    static void each(Self& y, const Visit& visit) {
      visit("g", y.g);
    }
  };

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    using std::exp;
    const Real rate = exp(x.A(0, 0));
    Matrix<Real> g(x.x.rows(), x.x.cols());
    for (Eigen::Index t = 0; t < g.rows(); ++t)
      for (Eigen::Index c = 0; c < g.cols(); ++c)
        g(t, c) = -(rate * softplus(Real(x.x(t, c) + x.bias(0, c))));
    return {g};
  }

  /// dx = -e^A sigmoid(x + bias) dg,   dbias_c = sum_t dx_tc,   dA = sum_tc g dg.
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    using std::exp;
    const Real rate = exp(x.A(0, 0));
    Inputs<Real> y{x.x, Matrix<Real>::Constant(1, 1, Real(0)),
                   Matrix<Real>::Constant(1, x.x.cols(), Real(0))};
    for (Eigen::Index t = 0; t < x.x.rows(); ++t)
      for (Eigen::Index c = 0; c < x.x.cols(); ++c) {
        const Real z = x.x(t, c) + x.bias(0, c);
        y.x(t, c) = -(rate * sigmoid(z) * d.g(t, c));
        y.bias(0, c) += y.x(t, c);
        y.A(0, 0) += -(rate * softplus(z) * d.g(t, c));
      }
    return y;
  }
};

}  // namespace assay
