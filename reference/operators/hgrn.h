// HGRN: an elementwise gated recurrence.
//
//   h_t = e^{g_t} (.) h_{t-1} + x_t          o_t = h_t          t = 1..T
//
// One slice: one sequence n. x_t, g_t, h_t in R^D; h_0 is the initial state or 0, h_T the final state. No
// heads, no scale. Domain: x, h_0 finite; -1e4 <= g <= 0.
//
// Source: Z. Qin, S. Yang, Y. Zhong, "Hierarchically Gated Recurrent Neural Network for Sequence Modeling",
// NeurIPS 2023, arXiv:2311.04823 (real decays; there f_t = e^{g_t} and x_t = (1 - f_t) i_t).
#pragma once
#include <cmath>

#include "reference/operator_traits.h"
#include "reference/slice_problem.h"
#include "reference/state_history.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

struct Hgrn {
  static constexpr std::string_view name = "hgrn";
  static constexpr std::string_view summary = "elementwise gated recurrence";
  static constexpr std::string_view formula = "h_t = exp(g_t) (.) h_{t-1} + x_t;  o_t = h_t";
  static constexpr std::string_view citation =
      "Qin et al., Hierarchically Gated Recurrent Neural Network, arXiv:2311.04823";
  /// Places in inputs() and outputs().
  struct In {
    enum : size_t { x, g, initial_state, count };
  };
  struct Out {
    enum : size_t { o, final_state, count };
  };
  static std::vector<ArgumentSpec> inputs() {
    return {{"x", {"B", "T", "D"}, Role::value},
            {"g", {"B", "T", "D"}, Role::log_decay},
            {"initial_state", {"N", "D"}, Role::state, true}};
  }
  static std::vector<ArgumentSpec> outputs() {
    return {{"o", {"B", "T", "D"}, Role::output}, {"final_state", {"N", "D"}, Role::state}};
  }
  static SliceBounds forward_bound(const SliceProblem&);
  static SliceBounds adjoint_bound(const SliceProblem&);
  static constexpr OperatorTraits traits{
      .per_head = false, .forward_bound = &forward_bound, .adjoint_bound = &adjoint_bound};

  /// One slice. Rows are tokens: x, g are T x D, h0 is 1 x D.
  template <typename Real>
  struct Inputs {
    Matrix<Real> x, g, h0;
    Real scale{1};

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("x", x.x), visit("g", x.g), visit("initial_state", x.h0);
    }
    void take(const SliceProblem&) {}
  };
  template <typename Real>
  struct Outputs {
    Matrix<Real> o, h;  ///< T x D; h_T, 1 x D

    template <typename Self, typename Visit>
    static void each(Self& y, const Visit& visit) {
      visit("o", y.o), visit("final_state", y.h);
    }
  };

  /// e^{g_t}, 1 x D.
  template <typename Real>
  static Matrix<Real> decay(const Inputs<Real>& x, Eigen::Index t) {
    return x.g.row(t).unaryExpr([](const Real& g) -> Real {
      using std::exp;
      return exp(g);
    });
  }

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    Outputs<Real> y{Matrix<Real>(x.x.rows(), x.x.cols()), x.h0};
    for (Eigen::Index t = 0; t < x.x.rows(); ++t) {
      y.h = (decay(x, t).cwiseProduct(y.h) + x.x.row(t)).eval();
      y.o.row(t) = y.h;
    }
    return y;
  }

  /// Reverse time, G = dL/dh_t, the output at t included; starts at dh_T. For t = T..1:
  ///   G <- G + do_t      dx_t = G      dg_t = e^{g_t} (.) h_{t-1} (.) G      G <- e^{g_t} (.) G
  /// and dh_0 = G at the end.
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    const Eigen::Index T = x.x.rows();
    Inputs<Real> y{x.x, x.g, d.h};
    Matrix<Real>& G = y.h0;
    StateHistory<Matrix<Real>> h(x.h0, T, [&](int64_t t, Matrix<Real>& state) {
      state = (decay(x, t - 1).cwiseProduct(state) + x.x.row(t - 1)).eval();
    });
    for (Eigen::Index t = T; t >= 1; --t) {
      G += d.o.row(t - 1);
      y.x.row(t - 1) = G;
      const Matrix<Real> a = decay(x, t - 1);
      y.g.row(t - 1) = a.cwiseProduct(h.at(t - 1)).cwiseProduct(G);
      G = a.cwiseProduct(G).eval();
    }
    return y;
  }
};

}  // namespace assay
