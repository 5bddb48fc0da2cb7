// The log decay of RWKV-7 from its logit.
//
//   w = -e^{-1/2} sigmoid(x)
//
// elementwise over [B,T,H,K]; w in (-0.6066, 0). The same as -exp(-softplus(-x) - 1/2). Domain: x finite.
//
// Source: B. Peng et al., "RWKV-7 Goose with Expressive Dynamic State Evolution", arXiv:2503.14456.
#pragma once
#include "reference/operator_traits.h"
#include "reference/operators/logistic.h"
#include "reference/operators/rows_of_x.h"
#include "reference/slice_problem.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

struct Rwkv7LogDecay {
  static constexpr std::string_view name = "rwkv7_log_decay";
  static constexpr std::string_view summary = "log decay of RWKV-7 from its logit, elementwise";
  static constexpr std::string_view formula = "w = -exp(-1/2) sigmoid(x)";
  static constexpr std::string_view citation = "Peng et al., RWKV-7 Goose, arXiv:2503.14456";
  static std::vector<ArgumentSpec> inputs() { return {{"x", {"B", "T", "H", "K"}, Role::value}}; }
  static std::vector<ArgumentSpec> outputs() { return {{"w", {"B", "T", "H", "K"}, Role::log_decay}}; }
  static SliceBounds forward_bound(const SliceProblem&);
  static SliceBounds adjoint_bound(const SliceProblem&);
  static constexpr OperatorTraits traits{
      .inexact = true, .forward_bound = &forward_bound, .adjoint_bound = &adjoint_bound};

  template <typename Real>
  using Inputs = RowsOfX<Real>;
  template <typename Real>
  struct Outputs {
    Matrix<Real> w;

    template <typename Self, typename Visit>
    static void each(Self& y, const Visit& visit) {
      visit("w", y.w);
    }
  };

  template <typename Real>
  static Real log_decay(const Real& x) {
    using std::exp;
    return -(exp(Real(-0.5)) * sigmoid(x));
  }

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    return {x.x.unaryExpr([](const Real& z) -> Real { return log_decay(z); })};
  }

  /// dx = dw w (1 - sigmoid(x)) = dw w sigmoid(-x).
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    return {x.x.binaryExpr(
        d.w, [](const Real& z, const Real& dw) -> Real { return dw * log_decay(z) * sigmoid(Real(-z)); })};
  }
};

}  // namespace assay
