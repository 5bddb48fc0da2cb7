// Short causal convolution, one filter per channel, with the window of inputs carried as a state.
//
//   S_t = [ S_{t-1,2}, .., S_{t-1,K}, x_t ]          o_t = sum_j w_j (.) S_{t,j}          t = 1..T
//
// One slice: one sequence n. x_t, o_t, w_j in R^D; S_t in R^{D x K} holds the last K inputs, oldest first:
// S_0 is the initial state or 0, S_T the final state. K is the filter's width; w_K meets the newest input. No
// heads, no scale, no activation. Domain: everything finite.
//
// Source: D. Y. Fu et al., "Hungry Hungry Hippos: Towards Language Modeling with State Space Models", ICLR
// 2023, arXiv:2212.14052 (the shift state space model, with K states); before q, k and v of a linear
// attention: S. Yang et al., "Parallelizing Linear Transformers with the Delta Rule over Sequence Length",
// NeurIPS 2024, arXiv:2406.06484.
#pragma once
#include "reference/operator_traits.h"
#include "reference/slice_problem.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

struct ShortConv {
  static constexpr std::string_view name = "short_conv";
  static constexpr std::string_view summary = "short causal convolution, one filter of width K per channel";
  static constexpr std::string_view formula =
      "S_t = [S_{t-1,2}, .., S_{t-1,K}, x_t];  o_t = sum_j w_j (.) S_{t,j}";
  static constexpr std::string_view citation = "Fu et al., Hungry Hungry Hippos, arXiv:2212.14052";
  /// Places in inputs() and outputs().
  struct In {
    enum : size_t { x, weight, initial_state, count };
  };
  struct Out {
    enum : size_t { o, final_state, count };
  };
  static std::vector<ArgumentSpec> inputs() {
    return {{"x", {"B", "T", "D"}, Role::value},
            {"weight", {"D", "K"}, Role::value},
            {"initial_state", {"N", "D", "K"}, Role::state, true}};
  }
  static std::vector<ArgumentSpec> outputs() {
    return {{"o", {"B", "T", "D"}, Role::output}, {"final_state", {"N", "D", "K"}, Role::state}};
  }
  static SliceBounds forward_bound(const SliceProblem&);
  static SliceBounds adjoint_bound(const SliceProblem&);
  static constexpr OperatorTraits traits{
      .per_head = false, .forward_bound = &forward_bound, .adjoint_bound = &adjoint_bound};

  /// One slice. Rows of x are tokens, T x D; weight and S0 are D x K.
  template <typename Real>
  struct Inputs {
    Matrix<Real> x, weight, S0;
    Real scale{1};

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("x", x.x), visit("weight", x.weight), visit("initial_state", x.S0);
    }
    void take(const SliceProblem&) {}
  };
  template <typename Real>
  struct Outputs {
    Matrix<Real> o, S;  ///< T x D; S_T, D x K

    template <typename Self, typename Visit>
    static void each(Self& y, const Visit& visit) {
      visit("o", y.o), visit("final_state", y.S);
    }
  };

  /// The initial state's columns, then the inputs: S_t is D x K from column t on.
  template <typename Real>
  static Matrix<Real> history(const Inputs<Real>& x) {
    Matrix<Real> all(x.S0.rows(), x.S0.cols() + x.x.rows());
    all.leftCols(x.S0.cols()) = x.S0;
    all.rightCols(x.x.rows()) = x.x.transpose();
    return all;
  }

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    const Eigen::Index T = x.x.rows(), K = x.weight.cols();
    const Matrix<Real> all = history(x);
    Outputs<Real> y{x.x, all.rightCols(K)};
    for (Eigen::Index t = 1; t <= T; ++t)
      y.o.row(t - 1) = x.weight.cwiseProduct(all.middleCols(t, K)).rowwise().sum().transpose();
    return y;
  }

  /// With G_i = dL/d(column i of the history), started at dS_T in the last K columns:
  ///   G_{t+j} += w_j (.) do_t      dw_j = sum_t do_t (.) S_{t,j}
  /// dS_0 is G's first K columns, dx the others. d: dL/do and dL/dS_T.
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    const Eigen::Index T = x.x.rows(), K = x.weight.cols();
    const Matrix<Real> all = history(x);
    Matrix<Real> G = Matrix<Real>::Constant(all.rows(), all.cols(), Real(0));
    Matrix<Real> weight = Matrix<Real>::Constant(x.weight.rows(), K, Real(0));
    G.rightCols(K) = d.S;
    for (Eigen::Index t = T; t >= 1; --t)
      for (Eigen::Index j = 0; j < K; ++j) {
        const Vector<Real> cotangent = d.o.row(t - 1).transpose();
        G.col(t + j) += cotangent.cwiseProduct(x.weight.col(j));
        weight.col(j) += cotangent.cwiseProduct(all.col(t + j));
      }
    return {G.rightCols(T).transpose(), weight, G.leftCols(K)};
  }
};

}  // namespace assay
