// Gated slot attention: two gated recurrences over M slots with a softmax between them.
//
//   Hk_t = Hk_{t-1} diag(e^{g_t}) + k_t s_t^T      y_t = scale Hk_t^T q_t      p_t = softmax(y_t)
//   Hv_t = diag(e^{g_t}) Hv_{t-1} + s_t v_t^T      o_t = Hv_t^T p_t            t = 1..T
//
// One slice: one sequence n, one query head. q_t, k_t in R^K, v_t, o_t in R^V, s_t, g_t, y_t, p_t in R^M,
// Hk_t in R^{K x M}, Hv_t in R^{M x V}; Hk_0 and Hv_0 are the initial states or 0. The gate acts on the slots
// in both. HQ query heads share H heads of k, v, s, g in groups: query head h uses head h / (HQ / H). Without
// g the slots are written by their share of attention so far (attention with bounded memory):
//   z_t = log sum_{j<=t} e^{s_j} per slot,   g_t = z_{t-1} - z_t (g_1 = 0),   s_t <- e^{s_t - z_t}.
// Domain: everything finite; -1e4 <= g <= 0.
//
// Source: Y. Zhang et al., "Gated Slot Attention for Efficient Linear-Time Sequence Modeling", NeurIPS 2024,
// arXiv:2409.07146.
#pragma once
#include <cmath>
#include <limits>

#include "reference/gsa_noise.h"
#include "reference/operator_traits.h"
#include "reference/slice_problem.h"
#include "reference/state_history.h"
#include "src/base/numerics/eigen_traits.h"
#include "src/base/numerics/near_double.h"

namespace assay {

struct Gsa {
  static constexpr std::string_view name = "gsa";
  static constexpr std::string_view summary =
      "gated slot attention: two gated passes over slots, softmax between";
  static constexpr std::string_view formula =
      "Hk_t = Hk_{t-1} diag(exp(g_t)) + k_t s_t^T;  p_t = softmax(scale Hk_t^T q_t);  "
      "Hv_t = diag(exp(g_t)) Hv_{t-1} + s_t v_t^T;  o_t = Hv_t^T p_t;  without g: z_t = log sum_{j<=t} "
      "exp(s_j), g_t = z_{t-1} - z_t (g_1 = 0), s_t <- exp(s_t - z_t)";
  static constexpr std::string_view citation = "Zhang et al., Gated Slot Attention, arXiv:2409.07146";
  /// Places in inputs() and outputs().
  struct In {
    enum : size_t { q, k, v, s, g, hk0, hv0, count };
  };
  struct Out {
    enum : size_t { o, hkt, hvt, count };
  };
  static std::vector<ArgumentSpec> inputs() {
    return {
        {"q", {"B", "T", "HQ", "K"}, Role::value},          {"k", {"B", "T", "H", "K"}, Role::value},
        {"v", {"B", "T", "H", "V"}, Role::value},           {"s", {"B", "T", "H", "M"}, Role::value},
        {"g", {"B", "T", "H", "M"}, Role::log_decay, true}, {"hk0", {"N", "H", "K", "M"}, Role::state, true},
        {"hv0", {"N", "H", "M", "V"}, Role::state, true}};
  }
  static std::vector<ArgumentSpec> outputs() {
    return {{"o", {"B", "T", "HQ", "V"}, Role::output},
            {"hkt", {"N", "H", "K", "M"}, Role::state},
            {"hvt", {"N", "H", "M", "V"}, Role::state}};
  }
  static SliceBounds forward_bound(const SliceProblem&);
  static SliceBounds adjoint_bound(const SliceProblem&);
  static double default_scale(const Sizes& sizes) { return 1 / std::sqrt(static_cast<double>(sizes.K)); }
  static constexpr OperatorTraits traits{.inexact = true,
                                         .proportional_to_scale = false,
                                         .absent_gate_is_zero = false,
                                         .bound_shape = BoundShape::softmax,
                                         .default_scale = &default_scale,
                                         .forward_bound = &forward_bound,
                                         .adjoint_bound = &adjoint_bound,
                                         .forward_noise = &gsa_forward_noise,
                                         .adjoint_noise = &gsa_adjoint_noise};

  /// One slice. Rows are tokens: q, k are T x K, v is T x V, s and g are T x M, Hk0 is K x M, Hv0 is M x V.
  template <typename Real>
  struct Inputs {
    Matrix<Real> q, k, v, s, g, Hk0, Hv0;
    Real scale{1};
    bool gated = true;  ///< g is given

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("q", x.q), visit("k", x.k), visit("v", x.v), visit("s", x.s), visit("g", x.g);
      visit("hk0", x.Hk0), visit("hv0", x.Hv0);
    }
    void take(const SliceProblem& x) { gated = x.inputs[In::g].present; }
  };
  template <typename Real>
  struct Outputs {
    Matrix<Real> o, Hk, Hv;  ///< T x V; K x M; M x V

    template <typename Self, typename Visit>
    static void each(Self& y, const Visit& visit) {
      visit("o", y.o), visit("hkt", y.Hk), visit("hvt", y.Hv);
    }
  };

  /// e^{g_t} and what is written, T x M each, and how they follow from s where there is no g.
  template <typename Real>
  struct Slots {
    Matrix<Real> a, s;
    Matrix<Real> z;  ///< T x M, without g only
  };
  template <typename Real>
  static Slots<Real> slots(const Inputs<Real>& x) {
    using std::exp;
    using std::log;
    const auto e = [](const Real& y) -> Real { return exp(y); };
    if (x.gated) return {x.g.unaryExpr(e), x.s, {}};
    Slots<Real> y{x.s, x.s, x.s};
    for (Eigen::Index t = 0; t < x.s.rows(); ++t)
      for (Eigen::Index m = 0; m < x.s.cols(); ++m) {
        if (t == 0) {  // z_1 = s_1: nothing decays, and 1 is written
          y.a(t, m) = y.s(t, m) = Real(1);
          continue;
        }
        // log(e^a + e^b) = l + log(e^{a-l} + e^{b-l}) for any l: the larger one, so that nothing overflows.
        const Real l(std::fmax(near_double(y.z(t - 1, m)), near_double(x.s(t, m))));
        y.z(t, m) = l + log(Real(exp(Real(y.z(t - 1, m) - l)) + exp(Real(x.s(t, m) - l))));
        y.a(t, m) = exp(Real(y.z(t - 1, m) - y.z(t, m)));
        y.s(t, m) = exp(Real(x.s(t, m) - y.z(t, m)));
      }
    return y;
  }

  template <typename Real>
  struct State {
    Matrix<Real> Hk, Hv;
  };
  template <typename Real>
  static void step(const Inputs<Real>& x, const Slots<Real>& w, Eigen::Index t, State<Real>& h) {
    h.Hk = (h.Hk * w.a.row(t).asDiagonal() + x.k.row(t).transpose() * w.s.row(t)).eval();
    h.Hv = (w.a.row(t).asDiagonal() * h.Hv + w.s.row(t).transpose() * x.v.row(t)).eval();
  }

  /// e^{y_m - c} / sum e^{y - c}, the same for every c: a double near the largest y, so that nothing
  /// overflows.
  template <typename Real>
  static Vector<Real> softmax(const Vector<Real>& y) {
    double largest = -std::numeric_limits<double>::infinity();
    for (Eigen::Index m = 0; m < y.size(); ++m) largest = std::fmax(largest, near_double(y(m)));
    const Real c(largest);
    const Vector<Real> e = y.unaryExpr([&](const Real& x) -> Real {
      using std::exp;
      return exp(Real(x - c));
    });
    const Real sum = e.sum();
    return e.unaryExpr([&](const Real& x) -> Real { return x / sum; });
  }
  template <typename Real>
  static Vector<Real> weights(const Inputs<Real>& x, Eigen::Index t, const State<Real>& h) {
    return softmax<Real>(h.Hk.transpose() * x.q.row(t).transpose() * x.scale);
  }

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    Matrix<Real> o(x.v.rows(), x.v.cols());
    State<Real> h{x.Hk0, x.Hv0};
    const Slots<Real> w = slots(x);
    for (Eigen::Index t = 0; t < x.q.rows(); ++t) {
      step(x, w, t, h);
      o.row(t) = (h.Hv.transpose() * weights(x, t, h)).transpose();
    }
    return {o, h.Hk, h.Hv};
  }

  /// Reverse time, Gk = dL/dHk_t and Gv = dL/dHv_t, readout at t included. For t = T..1:
  ///   Gv <- Gv + p_t do_t^T      dp = Hv_t do_t
  ///   dv_t = Gv^T s_t      ds_t = Gv v_t      dg_t = e^{g_t} (.) rowsum(Hv_{t-1} (.) Gv)
  ///   dy = p_t (.) (dp - (p_t . dp))
  ///   Gk <- Gk + scale q_t dy^T      dq_t = scale Hk_t dy      dk_t = Gk s_t      ds_t += Gk^T k_t
  ///   dg_t += e^{g_t} (.) colsum(Hk_{t-1} (.) Gk)      Gk <- Gk diag(e^{g_t})      Gv <- diag(e^{g_t}) Gv
  /// and dHk_0 = Gk, dHv_0 = Gv at the end. Heads of k, v, s, g shared by several query heads get the sum.
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    const Eigen::Index T = x.q.rows();
    Inputs<Real> y{x.q, x.k, x.v, x.s, x.g, d.Hk, d.Hv};
    Matrix<Real>&Gk = y.Hk0, &Gv = y.Hv0;
    const Slots<Real> w = slots(x);
    StateHistory<State<Real>> states({x.Hk0, x.Hv0}, T,
                                     [&](int64_t t, State<Real>& h) { step(x, w, t - 1, h); });
    for (Eigen::Index t = T; t >= 1; --t) {
      const State<Real> h = states.at(t), &before = states.at(t - 1);
      const Vector<Real> q = x.q.row(t - 1).transpose(), k = x.k.row(t - 1).transpose();
      const Vector<Real> v = x.v.row(t - 1).transpose(), s = w.s.row(t - 1).transpose();
      const Vector<Real> a = w.a.row(t - 1).transpose(), d_o = d.o.row(t - 1).transpose();
      const Vector<Real> p = weights(x, t - 1, h), dp = h.Hv * d_o;
      const Real mean = p.cwiseProduct(dp).sum();
      const Vector<Real> dy =
          p.cwiseProduct(dp.unaryExpr([&](const Real& z) -> Real { return z - mean; })) * x.scale;
      Gv += p * d_o.transpose();
      Gk += q * dy.transpose();
      y.q.row(t - 1) = (h.Hk * dy).transpose();
      y.k.row(t - 1) = (Gk * s).transpose();
      y.v.row(t - 1) = (Gv.transpose() * s).transpose();
      y.s.row(t - 1) = (Gv * v + Gk.transpose() * k).transpose();
      const Vector<Real> moved =
          before.Hv.cwiseProduct(Gv).rowwise().sum() + before.Hk.cwiseProduct(Gk).colwise().sum().transpose();
      y.g.row(t - 1) = a.cwiseProduct(moved).transpose();
      Gk = (Gk * a.asDiagonal()).eval();
      Gv = (a.asDiagonal() * Gv).eval();
    }
    if (!x.gated) through_slots(w, y);
    return y;
  }

  /// Without g: from the gradients of g_t = z_{t-1} - z_t and of w_t = e^{s_t - z_t} to that of s, in reverse
  /// time. With Z what later tokens give to dL/dz_t, all of it is Z - dg_t - w_t dw_t, of which z_{t-1} gets
  /// the share e^{g_t} and s_t the share w_t = 1 - e^{g_t}:
  ///   ds_t = w_t dw_t + w_t (Z - dg_t - w_t dw_t) = w_t (e^{g_t} dw_t + Z - dg_t)
  ///   Z <- dg_t + e^{g_t} (Z - dg_t - w_t dw_t) = e^{g_t} (Z - w_t dw_t) + w_t dg_t
  /// and z_1 = s_1 with g_1 = 0, w_1 = 1 constant: ds_1 = Z.
  template <typename Real>
  static void through_slots(const Slots<Real>& w, Inputs<Real>& y) {
    for (Eigen::Index m = 0; m < y.s.cols(); ++m) {
      Real Z(0);
      for (Eigen::Index t = y.s.rows() - 1; t >= 1; --t) {
        const Real weight = w.s(t, m), a = w.a(t, m), dw = y.s(t, m), dg = y.g(t, m);
        y.s(t, m) = weight * (a * dw + Z - dg);
        Z = a * (Z - weight * dw) + weight * dg;
      }
      if (y.s.rows() > 0) y.s(0, m) = Z;
    }
    y.g.setZero();
  }
};

}  // namespace assay
