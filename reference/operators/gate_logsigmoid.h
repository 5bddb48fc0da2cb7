// A log decay by the logarithm of the logistic function.
//
//   g = scale log sigmoid(x),   scale = 1 / normaliser
//
// elementwise over [B,T,H,K]; g <= 0 for scale >= 0. Domain: x finite.
//
// Source: S. Yang, B. Wang, Y. Shen, R. Panda, Y. Kim, "Gated Linear Attention Transformers with
// Hardware-Efficient Training", ICML 2024, arXiv:2312.06635 (there alpha = sigmoid(x)^{1/16}).
#pragma once
#include "reference/operator_traits.h"
#include "reference/operators/logistic.h"
#include "reference/operators/rows_of_x.h"
#include "reference/slice_problem.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

struct GateLogsigmoid {
  static constexpr std::string_view name = "gate_logsigmoid";
  static constexpr std::string_view summary =
      "log decay scale log sigmoid(x), scale = 1 / normaliser, elementwise";
  static constexpr std::string_view formula = "g = scale log(sigmoid(x)),  scale = 1 / normaliser";
  static constexpr std::string_view citation = "Yang et al., Gated Linear Attention, arXiv:2312.06635";
  static std::vector<ArgumentSpec> inputs() { return {{"x", {"B", "T", "H", "K"}, Role::value}}; }
  static std::vector<ArgumentSpec> outputs() { return {{"g", {"B", "T", "H", "K"}, Role::log_decay}}; }
  static SliceBounds forward_bound(const SliceProblem&);
  static SliceBounds adjoint_bound(const SliceProblem&);
  static double default_scale(const Sizes&) { return 0.0625; }
  static constexpr OperatorTraits traits{.inexact = true,
                                         .default_scale = &default_scale,
                                         .forward_bound = &forward_bound,
                                         .adjoint_bound = &adjoint_bound};

  template <typename Real>
  using Inputs = RowsOfX<Real>;
  template <typename Real>
  struct Outputs {
    Matrix<Real> g;

    template <typename Self, typename Visit>
    static void each(Self& y, const Visit& visit) {
      visit("g", y.g);
    }
  };

  /// log sigmoid(x) = -softplus(-x).
  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    return {x.x.unaryExpr([&](const Real& z) -> Real { return -(softplus(Real(-z)) * x.scale); })};
  }

  /// dx = dg scale sigmoid(-x).
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    return {x.x.binaryExpr(
        d.g, [&](const Real& z, const Real& dg) -> Real { return dg * sigmoid(Real(-z)) * x.scale; })};
  }
};

}  // namespace assay
