// The gated delta product: a gated delta rule that writes several times per token, after one decay.
//
//   S_{t,0} = e^{g_t} S_{t-1}
//   S_{t,i} = S_{t,i-1} + k_{t,i} (beta_{t,i} (v_{t,i} - S_{t,i-1}^T k_{t,i}))^T        i = 1..M
//   S_t = S_{t,M}           o_t = scale S_t^T q_t           t = 1..T
//
// One slice: one sequence n, one head. q_t, k_{t,i} in R^K, v_{t,i}, o_t in R^V, S_t in R^{K x V}; S_0 is the
// initial state or 0, S_T the final state. g_t is one number, a natural-log decay of the old state, absent 0;
// beta_{t,i} one number, absent 1. The transition is e^{g_t} times the product of the M generalised
// Householder matrices I - beta k k^T; each never lengthens a state where |k| = 1. In memory the writes of a
// token follow each other, so that k, v and beta are those of T M tokens.
// Domain: everything finite; -1e4 <= g <= 0; 0 <= beta <= 2.
//
// Source: J. Siems et al., "DeltaProduct: Improving State-Tracking in Linear RNNs via Householder Products",
// arXiv:2502.10297 (there n_h = M and the state is the transpose).
#pragma once
#include <vector>

#include "reference/operator_traits.h"
#include "reference/operators/state_recurrence.h"
#include "reference/slice_problem.h"

namespace assay {

struct GatedDeltaProduct {
  static constexpr std::string_view name = "gated_delta_product";
  static constexpr std::string_view summary =
      "delta rule of several writes per token, after a decay per head";
  static constexpr std::string_view formula =
      "S_{t,0} = exp(g_t) S_{t-1};  S_{t,i} = S_{t,i-1} + k_{t,i} (beta_{t,i} (v_{t,i} - S_{t,i-1}^T "
      "k_{t,i}))^T, i = 1..M;  S_t = S_{t,M};  o_t = scale S_t^T q_t";
  static constexpr std::string_view citation = "Siems et al., DeltaProduct, arXiv:2502.10297";
  /// Places in inputs() and outputs().
  struct In {
    enum : size_t { q, k, v, g, beta, initial_state, count };
  };
  using Out = StatePlaces;
  static std::vector<ArgumentSpec> inputs() {
    return {{"q", {"B", "T", "H", "K"}, Role::value},
            {"k", {"B", "T", "M", "H", "K"}, Role::unit},
            {"v", {"B", "T", "M", "H", "V"}, Role::value},
            {"g", {"B", "T", "H"}, Role::log_decay, true},
            {"beta", {"B", "T", "M", "H"}, Role::rate, true},
            {"initial_state", {"N", "H", "K", "V"}, Role::state, true}};
  }
  static std::vector<ArgumentSpec> outputs() { return state_outputs(); }
  static SliceBounds forward_bound(const SliceProblem&);
  static SliceBounds adjoint_bound(const SliceProblem&);
  static bool enclose_forward(const SliceProblem&, int level, SliceBalls&);
  static bool enclose_adjoint(const SliceProblem&, int level, SliceBalls&);
  static constexpr OperatorTraits traits =
      norm_traits(&root_scale, &forward_bound, &adjoint_bound, &enclose_forward, &enclose_adjoint);

  /// One slice. Rows are tokens: q is T x K, k T x (M K), v T x (M V), write after write; g is T x 1, beta
  /// T x M, S0 K x V.
  template <typename Real>
  struct Inputs {
    Matrix<Real> q, k, v, g, beta, S0;
    Real scale{1};

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("q", x.q), visit("k", x.k), visit("v", x.v), visit("g", x.g);
      visit("beta", x.beta), visit("initial_state", x.S0);
    }
    /// Rates that are absent are 1.
    void take(const SliceProblem& p) {
      if (!p.inputs[In::beta].present) beta.setConstant(Real(1));
    }
  };
  template <typename Real>
  using Outputs = StateOutputs<Real>;

  template <typename Real>
  struct Product {
    const Inputs<Real>& x;
    HeadDecay<Real> decay{x.g};

    Eigen::Index writes() const { return x.beta.cols(); }
    Matrix<Real> key(Eigen::Index t, Eigen::Index i) const {
      return x.k.block(t, i * x.S0.rows(), 1, x.S0.rows());
    }
    /// r_{t,i}, 1 x V.
    Matrix<Real> residual(Eigen::Index t, Eigen::Index i, const Matrix<Real>& S) const {
      return x.v.block(t, i * x.S0.cols(), 1, x.S0.cols()) - key(t, i) * S;
    }
    void write(Eigen::Index t, Eigen::Index i, Matrix<Real>& S) const {
      const Matrix<Real> u = residual(t, i, S) * x.beta(t, i);
      S = (S + key(t, i).transpose() * u).eval();
    }
    void step(Eigen::Index t, Matrix<Real>& S) const {
      S = decay.times(t, S);
      for (Eigen::Index i = 0; i < writes(); ++i) write(t, i, S);
    }
    /// The last write first, S before it, G behind it:
    ///   du = G^T k      dr = beta du      dbeta = du . r      dk = G u - S dr      dv = dr
    ///   G <- G - k dr^T
    /// then dg_t of the decay      G <- e^{g_t} G
    void back(Eigen::Index t, const Matrix<Real>& before, Matrix<Real>& G, Inputs<Real>& y,
              Matrix<Real>& dg) const {
      std::vector<Matrix<Real>> found{decay.times(t, before)};
      for (Eigen::Index i = 0; i + 1 < writes(); ++i) {
        found.push_back(found.back());
        write(t, i, found.back());
      }
      for (Eigen::Index i = writes() - 1; i >= 0; --i) {
        const Matrix<Real>& S = found[static_cast<size_t>(i)];
        const Matrix<Real> k = key(t, i), r = residual(t, i, S), u = r * x.beta(t, i);
        const Matrix<Real> du = k * G, dr = du * x.beta(t, i);
        y.beta(t, i) = du.cwiseProduct(r).sum();
        y.k.block(t, i * S.rows(), 1, S.rows()) = (G * u.transpose() - S * dr.transpose()).transpose();
        y.v.block(t, i * S.cols(), 1, S.cols()) = dr;
        G = (G - k.transpose() * dr).eval();
      }
      decay.gradient(t, before, G, dg);
      G = decay.times(t, G);
    }
  };

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    return state_forward(x, x.q, Product<Real>{x});
  }
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    Inputs<Real> y = x;
    state_adjoint(x, x.q, Product<Real>{x}, d, y, y.q, y.g);
    return y;
  }
};

}  // namespace assay
