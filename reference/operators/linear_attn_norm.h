// Linear attention without decay, normalised by the sum of its weights. No feature map is applied: q and k
// are taken as they come.
//
//   S_t = S_{t-1} + k_t v_t^T     z_t = z_{t-1} + k_t
//   n_t = scale S_t^T q_t         d_t = scale q_t . z_t + eps         o_t = n_t / d_t,   eps = 1e-10,   t
//   = 1..T
//
// One slice: one sequence n, one head h. q_t, k_t, z_t in R^K, v_t, o_t in R^V, S_t in R^{K x V}; S_0 and z_0
// are the initial states or 0. Domain: everything finite, and q, k, z_0 such that no d_t comes near 0: with
// positive q, k and z_0 nothing cancels.
//
// Source: A. Katharopoulos, A. Vyas, N. Pappas, F. Fleuret, "Transformers are RNNs: Fast Autoregressive
// Transformers with Linear Attention", ICML 2020, arXiv:2006.16236.
#pragma once
#include <cmath>

#include "reference/operator_traits.h"
#include "reference/slice_problem.h"
#include "reference/state_history.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

struct LinearAttnNorm {
  static constexpr std::string_view name = "linear_attn_norm";
  static constexpr std::string_view summary = "linear attention without decay, normalised";
  static constexpr std::string_view formula =
      "S_t = S_{t-1} + k_t v_t^T;  z_t = z_{t-1} + k_t;  o_t = scale S_t^T q_t / (scale q_t . z_t + 1e-10)";
  static constexpr std::string_view citation =
      "Katharopoulos et al., Transformers are RNNs, arXiv:2006.16236";
  /// Places in inputs() and outputs().
  struct In {
    enum : size_t { q, k, v, initial_state, z0, count };
  };
  struct Out {
    enum : size_t { o, final_state, zt, count };
  };
  static std::vector<ArgumentSpec> inputs() {
    return {{"q", {"B", "T", "H", "K"}, Role::positive},
            {"k", {"B", "T", "H", "K"}, Role::positive},
            {"v", {"B", "T", "H", "V"}, Role::value},
            {"initial_state", {"N", "H", "K", "V"}, Role::state, true},
            {"z0", {"N", "H", "K"}, Role::state, true, "", true}};
  }
  static std::vector<ArgumentSpec> outputs() {
    return {{"o", {"B", "T", "H", "V"}, Role::output},
            {"final_state", {"N", "H", "K", "V"}, Role::state},
            {"zt", {"N", "H", "K"}, Role::state}};
  }
  static SliceBounds forward_bound(const SliceProblem&);
  static SliceBounds adjoint_bound(const SliceProblem&);
  static double default_scale(const Sizes& sizes) { return 1 / std::sqrt(static_cast<double>(sizes.K)); }
  static constexpr OperatorTraits traits{.inexact = true,
                                         .proportional_to_scale = false,
                                         .bound_shape = BoundShape::quotient,
                                         .default_scale = &default_scale,
                                         .forward_bound = &forward_bound,
                                         .adjoint_bound = &adjoint_bound};

  /// One slice. Rows are tokens: q, k are T x K, v is T x V, S0 is K x V, z0 is 1 x K.
  template <typename Real>
  struct Inputs {
    Matrix<Real> q, k, v, S0, z0;
    Real scale{1};

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("q", x.q), visit("k", x.k), visit("v", x.v), visit("initial_state", x.S0), visit("z0", x.z0);
    }
    void take(const SliceProblem&) {}
  };
  template <typename Real>
  struct Outputs {
    Matrix<Real> o, S, z;  ///< T x V; S_T, K x V; z_T, 1 x K

    template <typename Self, typename Visit>
    static void each(Self& y, const Visit& visit) {
      visit("o", y.o), visit("final_state", y.S), visit("zt", y.z);
    }
  };

  template <typename Real>
  struct State {
    Matrix<Real> S, z;
  };
  template <typename Real>
  static void step(const Inputs<Real>& x, Eigen::Index t, State<Real>& s) {
    s.S += x.k.row(t).transpose() * x.v.row(t);
    s.z += x.k.row(t);
  }
  /// d_t of the state after token t.
  template <typename Real>
  static Real normaliser(const Inputs<Real>& x, Eigen::Index t, const State<Real>& s) {
    return x.q.row(t).cwiseProduct(s.z.row(0)).sum() * x.scale + Real(1) / Real(1e10);
  }

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    Matrix<Real> o(x.v.rows(), x.v.cols());
    State<Real> s{x.S0, x.z0};
    for (Eigen::Index t = 0; t < x.q.rows(); ++t) {
      step(x, t, s);
      const Real d = normaliser(x, t, s);
      o.row(t) = (s.S.transpose() * x.q.row(t).transpose() * x.scale)
                     .transpose()
                     .unaryExpr([&](const Real& n) -> Real { return n / d; });
    }
    return {o, s.S, s.z};
  }

  /// Reverse time, G = dL/dS_t and Z = dL/dz_t, readout at t included; they start at dS_T and dz_T. For t =
  /// T..1:
  ///   dn_t = do_t / d_t      dd_t = -(do_t . o_t) / d_t
  ///   G <- G + scale q_t dn_t^T      dq_t = scale S_t dn_t + scale dd_t z_t      Z <- Z + scale dd_t q_t
  ///   dk_t = G v_t + Z      dv_t = G^T k_t
  /// and dS_0 = G, dz_0 = Z at the end.
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    const Eigen::Index T = x.q.rows();
    Inputs<Real> y{x.q, x.k, x.v, d.S, d.z};
    Matrix<Real>&G = y.S0, &Z = y.z0;
    StateHistory<State<Real>> states({x.S0, x.z0}, T, [&](int64_t t, State<Real>& s) { step(x, t - 1, s); });
    for (Eigen::Index t = T; t >= 1; --t) {
      const State<Real>& s = states.at(t);
      const Vector<Real> q = x.q.row(t - 1).transpose(), k = x.k.row(t - 1).transpose();
      const Vector<Real> v = x.v.row(t - 1).transpose(), d_o = d.o.row(t - 1).transpose();
      const Real norm = normaliser(x, t - 1, s);
      const auto over_norm = [&](const Real& a) -> Real { return a / norm; };
      const Vector<Real> o = (s.S.transpose() * q * x.scale).unaryExpr(over_norm);
      const Vector<Real> dn = d_o.unaryExpr(over_norm) * x.scale;
      const Real dd = -(over_norm(d_o.cwiseProduct(o).sum()) * x.scale);
      G += q * dn.transpose();
      Z += q.transpose() * dd;
      y.q.row(t - 1) = (s.S * dn).transpose() + s.z * dd;
      y.k.row(t - 1) = (G * v).transpose() + Z;
      y.v.row(t - 1) = (G.transpose() * k).transpose();
    }
    return y;
  }
};

}  // namespace assay
