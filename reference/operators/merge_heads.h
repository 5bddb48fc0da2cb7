// The heads' outputs side by side, and the projection after them.
//
//   y_bt = W^T [ x_bt1 ; x_bt2 ; .. ; x_btH ]
//
// x [B,T,H,V] is read as [B,T,H*V], heads outermost; W [H*V,K], y [B,T,K]: K is the width of the model here.
// Domain: everything finite.
//
// Source: A. Vaswani et al., "Attention Is All You Need", NeurIPS 2017, arXiv:1706.03762 (concatenation of
// the heads times W^O).
#pragma once
#include "reference/operator_traits.h"
#include "reference/slice_problem.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

struct MergeHeads {
  static constexpr std::string_view name = "merge_heads";
  static constexpr std::string_view summary = "heads merged, [B,T,H,V] as [B,T,H*V], and projected";
  static constexpr std::string_view formula = "y_bt = W^T concat_h(x_bth)";
  static constexpr std::string_view citation = "Vaswani et al., Attention Is All You Need, arXiv:1706.03762";
  /// Places in inputs() and outputs().
  struct In {
    enum : size_t { x, weight, count };
  };
  struct Out {
    enum : size_t { y, count };
  };
  static std::vector<ArgumentSpec> inputs() {
    return {{"x", {"B", "T", "H", "V"}, Role::value}, {"weight", {"H*V", "K"}, Role::value}};
  }
  static std::vector<ArgumentSpec> outputs() { return {{"y", {"B", "T", "K"}, Role::output}}; }
  static SliceBounds forward_bound(const SliceProblem&);
  static SliceBounds adjoint_bound(const SliceProblem&);
  static constexpr OperatorTraits traits{.per_head = false,
                                         .heads_differ = true,
                                         .forward_bound = &forward_bound,
                                         .adjoint_bound = &adjoint_bound};

  /// One sequence: x T x (H V), weight (H V) x K.
  template <typename Real>
  struct Inputs {
    Matrix<Real> x, weight;
    Real scale{1};

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("x", x.x), visit("weight", x.weight);
    }
    void take(const SliceProblem&) {}
  };
  template <typename Real>
  struct Outputs {
    Matrix<Real> y;  ///< T x K

    template <typename Self, typename Visit>
    static void each(Self& y, const Visit& visit) {
      visit("y", y.y);
    }
  };

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    return {x.x * x.weight};
  }

  /// dx = dy W^T,   dW = sum over tokens and sequences of x dy^T.
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    return {d.y * x.weight.transpose(), x.x.transpose() * d.y};
  }
};

}  // namespace assay
