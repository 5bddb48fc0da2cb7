// RWKV-6: per-channel decay, exclusive readout, and a bonus for the current token.
//
//   o_t = scale (S_{t-1} + diag(u) k_t v_t^T)^T r_t          S_t = diag(e^{w_t}) S_{t-1} + k_t v_t^T
//
// t = 1..T. One slice: one sequence n, one head h. r_t, k_t, w_t, u in R^K, v_t, o_t in R^V, S_t in R^{K x
// V}; S_0 is the initial state or 0, S_T the final state. w is a natural-log decay; the pair (j, t), j < t,
// has the weight e^{w_{j+1} + ... + w_{t-1}}: that of the last token reaches only S_T. u is shared by all
// sequences and tokens. Domain: r, k, v, u, S_0 finite; -1e4 <= w <= 0; scale finite.
//
// Its bounds are those of every operator with a `form`: reference/bound.h for the outputs,
// reference/bound_adjoint.h for the gradients, from what a kernel declares.
//
// Source: B. Peng et al., "Eagle and Finch: RWKV with Matrix-Valued States and Dynamic Recurrence",
// arXiv:2404.05892.
#pragma once
#include "reference/operator_traits.h"
#include "reference/operators/state_recurrence.h"

namespace assay {

struct Rwkv6 {
  static constexpr std::string_view name = "rwkv6";
  static constexpr std::string_view summary =
      "one decay per key channel, readout before the write, a bonus for the current token";
  static constexpr std::string_view formula =
      "o_t = scale (S_{t-1} + diag(u) k_t v_t^T)^T r_t;  S_t = diag(exp(w_t)) S_{t-1} + k_t v_t^T";
  static constexpr std::string_view citation = "Peng et al., Eagle and Finch, arXiv:2404.05892";
  static std::vector<ArgumentSpec> inputs() {
    return {
        {"r", {"B", "T", "H", "K"}, Role::value}, {"k", {"B", "T", "H", "K"}, Role::value},
        {"v", {"B", "T", "H", "V"}, Role::value}, {"w", {"B", "T", "H", "K"}, Role::log_decay},
        {"u", {"H", "K"}, Role::value},           {"initial_state", {"N", "H", "K", "V"}, Role::state, true}};
  }
  static std::vector<ArgumentSpec> outputs() { return state_outputs(); }
  static GatedForm form() { return {.q = "r", .gate = "w", .bonus = "u"}; }
  static constexpr OperatorTraits traits{.default_scale = &root_scale, .form = &form};

  /// One slice. Rows are tokens: r, k, w are T x K, v is T x V, u is 1 x K, S0 is K x V.
  template <typename Real>
  struct Inputs {
    Matrix<Real> r, k, v, w, u, S0;
    Real scale{1};

    template <typename Self, typename Visit>
    static void each(Self& x, const Visit& visit) {
      visit("r", x.r), visit("k", x.k), visit("v", x.v), visit("w", x.w), visit("u", x.u);
      visit("initial_state", x.S0);
    }
    void take(const SliceProblem&) {}
  };
  template <typename Real>
  using Outputs = StateOutputs<Real>;

  template <typename Real>
  static Outputs<Real> forward(const Inputs<Real>& x) {
    const Write term{x, ChannelDecay(x.w)};
    Outputs<Real> y{Matrix<Real>(x.v.rows(), x.v.cols()), x.S0};
    for (Eigen::Index t = 0; t < x.r.rows(); ++t) {
      const Vector<Real> bonus = x.u.row(0).transpose().cwiseProduct(x.k.row(t).transpose());
      const Matrix<Real> read = y.S + bonus * x.v.row(t);
      y.o.row(t) = (read.transpose() * x.r.row(t).transpose() * x.scale).transpose();
      term.step(t, y.S);
    }
    return y;
  }

  /// Reverse time, G = dL/dS_t from the tokens after t; starts at dS_T. With c_t = v_t . do_t, for t = T..1:
  ///   dk_t, dv_t, dw_t and G <- diag(e^{w_t}) G as Write has them
  ///   dr_t = scale S_{t-1} do_t + scale c_t u (.) k_t
  ///   dk_t += scale c_t r_t (.) u
  ///   dv_t += scale (sum_c r_tc u_c k_tc) do_t
  ///   du   += scale c_t r_t (.) k_t
  ///   G <- G + scale r_t do_t^T
  /// and dS_0 = G at the end. The u of several sequences is one: their du add up.
  template <typename Real>
  static Inputs<Real> adjoint(const Inputs<Real>& x, const Outputs<Real>& d) {
    const Write term{x, ChannelDecay(x.w)};
    Inputs<Real> y = x;
    y.u.setConstant(Real(0)), y.S0 = d.S;
    Matrix<Real>& G = y.S0;
    auto S = states_of(x.S0, x.r.rows(), term);
    for (Eigen::Index t = x.r.rows() - 1; t >= 0; --t) {
      const Vector<Real> r = x.r.row(t).transpose(), k = x.k.row(t).transpose();
      const Vector<Real> v = x.v.row(t).transpose(), u = x.u.row(0).transpose();
      const Vector<Real> d_o = d.o.row(t).transpose() * x.scale;
      const Real c = v.cwiseProduct(d_o).sum();
      term.back(t, S.at(t), G, y, y.w);
      y.r.row(t) = (S.at(t) * d_o + u.cwiseProduct(k) * c).transpose();
      y.k.row(t) += (r.cwiseProduct(u) * c).transpose();
      y.v.row(t) += (d_o * r.cwiseProduct(u).cwiseProduct(k).sum()).transpose();
      y.u += (r.cwiseProduct(k) * c).transpose();
      G = (G + r * d_o.transpose()).eval();
    }
    return y;
  }
};

}  // namespace assay
