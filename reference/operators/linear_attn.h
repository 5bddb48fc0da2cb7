// Linear attention without decay, not normalised. No feature map is applied: q and k are taken as they come.
//
//   S_t = S_{t-1} + k_t v_t^T          o_t = scale S_t^T q_t          t = 1..T
//
// One slice: one sequence n, one head h. q_t, k_t in R^K, v_t, o_t in R^V, S_t in R^{K x V}; S_0 is the
// initial state or 0, S_T the final state. Domain: everything finite.
//
// Its bounds are those of every operator with a `form`: reference/bound.h for the outputs,
// reference/bound_adjoint.h for the gradients, from what a kernel declares.
//
// Source: A. Katharopoulos, A. Vyas, N. Pappas, F. Fleuret, "Transformers are RNNs: Fast Autoregressive
// Transformers with Linear Attention", ICML 2020, arXiv:2006.16236.
#pragma once
#include <cmath>

#include "reference/operator_traits.h"
#include "reference/state_history.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

struct LinearAttn {
  static constexpr std::string_view name = "linear_attn";
  static constexpr std::string_view summary = "linear attention without decay";
  static constexpr std::string_view formula = "S_t = S_{t-1} + k_t v_t^T;  o_t = scale S_t^T q_t";
  static constexpr std::string_view citation =
      "Katharopoulos et al., Transformers are RNNs, arXiv:2006.16236";
  static std::vector<ArgumentSpec> inputs() {
    return {{"q", {"B", "T", "H", "K"}, Role::value},
            {"k", {"B", "T", "H", "K"}, Role::value},
            {"v", {"B", "T", "H", "V"}, Role::value},
            {"initial_state", {"N", "H", "K", "V"}, Role::state, true}};
  }
  static std::vector<ArgumentSpec> outputs() {
    return {{"o", {"B", "T", "H", "V"}, Role::output}, {"final_state", {"N", "H", "K", "V"}, Role::state}};
  }
  static GatedForm form() { return {}; }
  static double default_scale(const Sizes& sizes) { return 1 / std::sqrt(static_cast<double>(sizes.K)); }
  static constexpr OperatorTraits traits{
      .with_gates = "simple_gla", .default_scale = &default_scale, .form = &form};

  /// One slice. Rows are tokens: q, k are T x K, v is T x V, S0 is K x V.
  template <typename Real>
  struct Inputs {
    Matrix<Real> q, k, v, S0;
    Real scale{1};

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("q", x.q), visit("k", x.k), visit("v", x.v), visit("initial_state", x.S0);
    }
    void take(const SliceProblem&) {}
  };
  template <typename Real>
  struct Outputs {
    Matrix<Real> o, S;  ///< T x V; S_T, K x V

    template <typename Self, typename Visit>
    static void each(Self& y, const Visit& visit) {
      visit("o", y.o), visit("final_state", y.S);
    }
  };

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    Outputs<Real> y{Matrix<Real>(x.v.rows(), x.v.cols()), x.S0};
    for (Eigen::Index t = 0; t < x.q.rows(); ++t) {
      y.S += x.k.row(t).transpose() * x.v.row(t);
      y.o.row(t) = (y.S.transpose() * x.q.row(t).transpose() * x.scale).transpose();
    }
    return y;
  }

  /// Reverse time, G = dL/dS_t, readout at t included; starts at dS_T. For t = T..1:
  ///   G <- G + scale q_t do_t^T
  ///   dq_t = scale S_t do_t      dk_t = G v_t      dv_t = G^T k_t
  /// and dS_0 = G at the end.
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    const Eigen::Index T = x.q.rows();
    Inputs<Real> y{x.q, x.k, x.v, d.S};
    Matrix<Real>& G = y.S0;
    StateHistory<Matrix<Real>> S(x.S0, T, [&](int64_t t, Matrix<Real>& state) {
      state += x.k.row(t - 1).transpose() * x.v.row(t - 1);
    });
    for (Eigen::Index t = T; t >= 1; --t) {
      const Vector<Real> q = x.q.row(t - 1).transpose(), k = x.k.row(t - 1).transpose();
      const Vector<Real> v = x.v.row(t - 1).transpose(), d_o = d.o.row(t - 1).transpose() * x.scale;
      G += q * d_o.transpose();
      y.q.row(t - 1) = (S.at(t) * d_o).transpose();
      y.k.row(t - 1) = (G * v).transpose();
      y.v.row(t - 1) = (G.transpose() * k).transpose();
    }
    return y;
  }
};

}  // namespace assay
