// What the operators share whose state is a matrix S in R^{K x V}, written once per token, read by the query:
//
//   S_t = (what a term makes of S_{t-1})          o_t = scale S_t^T q_t          t = 1..T
//
// and its reverse. An operator says which term, of which decay:
//
//   Write         S_t = D_t S_{t-1} + k_t v_t^T
//   DeltaWrite    S_t = D_t S_{t-1} + k_t (beta_t (.) (v_t - (D_t S_{t-1})^T k_t))^T   (delta_transition.h)
//   Correction    S_t = D_t S_{t-1} + b_t (a_t^T S_{t-1}) + k_t v_t^T                  (rwkv7.h)
//
//   NoDecay       D_t = 1
//   HeadDecay     D_t = a_t, one number, of which e^{g_t} is the usual one
//   ChannelDecay  D_t = diag(e^{g_t})
//
// A term has step(t, S), which turns S_{t-1} into S_t, and back(t, S_{t-1}, G, y, dg), which turns
// G = dL/dS_t into dL/dS_{t-1} and stores the gradients of what it takes: the gate's in dg, all others in y.
// Tokens count from 0 there.
#pragma once
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/operator_traits.h"
#include "reference/state_history.h"
#include "src/base/numerics/eigen_traits.h"

namespace assay {

/// Places in state_outputs().
struct StatePlaces {
  enum : size_t { o, final_state, count };
};
/// o and S_T of so many heads.
inline std::vector<ArgumentSpec> state_outputs(std::string_view heads = "H") {
  return {{"o", {"B", "T", heads, "V"}, Role::output}, {"final_state", {"N", heads, "K", "V"}, Role::state}};
}
template <typename Real>
struct StateOutputs {
  Matrix<Real> o, S;  ///< T x V; S_T, K x V

  template <typename Self, typename Visit>
  static void each(Self& y, const Visit& visit) {
    visit("o", y.o), visit("final_state", y.S);
  }
};

/// Inputs of an operator that takes queries, keys and values alone: its decay, if any, is none of them.
inline std::vector<ArgumentSpec> ungated_inputs() {
  return {{"q", {"B", "T", "H", "K"}, Role::value},
          {"k", {"B", "T", "H", "K"}, Role::value},
          {"v", {"B", "T", "H", "V"}, Role::value},
          {"initial_state", {"N", "H", "K", "V"}, Role::state, true}};
}
/// One slice. Rows are tokens: q, k are T x K, v is T x V, S0 is K x V.
template <typename Real>
struct UngatedInputs {
  Matrix<Real> q, k, v, S0;
  Real scale{1};

  template <typename Self, typename Visit>
  static void each(Self& x, const Visit& visit) {
    visit("q", x.q), visit("k", x.k), visit("v", x.v), visit("initial_state", x.S0);
  }
  void take(const SliceProblem&) {}
};

/// scale = 1 / sqrt(K).
inline double root_scale(const Sizes& sizes) {
  return 1 / std::sqrt(static_cast<double>(sizes.K));
}

template <typename Real>
struct NoDecay {
  static constexpr bool gated = false;

  Matrix<Real> times(Eigen::Index, const Matrix<Real>& X) const { return X; }
  void gradient(Eigen::Index, const Matrix<Real>&, const Matrix<Real>&, Matrix<Real>&) const {}
};

template <typename Real>
struct HeadDecay {
  static constexpr bool gated = true;
  Vector<Real> a;

  explicit HeadDecay(Vector<Real> a) : a(std::move(a)) {}
  /// a_t = e^{g_t}; g is T x 1.
  explicit HeadDecay(const Matrix<Real>& g) : a(g.rows()) {
    for (Eigen::Index t = 0; t < a.size(); ++t) {
      using std::exp;
      a(t) = exp(g(t, 0));
    }
  }
  Matrix<Real> times(Eigen::Index t, const Matrix<Real>& X) const { return X * a(t); }
  /// Of log a_t, with G = dL/d(a_t S): a_t <S, G>      (product form: no difference of large terms)
  void gradient(Eigen::Index t, const Matrix<Real>& S, const Matrix<Real>& G, Matrix<Real>& dg) const {
    dg(t, 0) = a(t) * S.cwiseProduct(G).sum();
  }
};

template <typename Real>
struct ChannelDecay {
  static constexpr bool gated = true;
  const Matrix<Real>& g;  ///< T x K

  explicit ChannelDecay(const Matrix<Real>& g) : g(g) {}
  Vector<Real> factors(Eigen::Index t) const {
    return g.row(t).transpose().unaryExpr([](const Real& x) -> Real {
      using std::exp;
      return exp(x);
    });
  }
  Matrix<Real> times(Eigen::Index t, const Matrix<Real>& X) const { return factors(t).asDiagonal() * X; }
  /// Of g_t, with G = dL/d(D_t S): e^{g_t} (.) rowsum(S (.) G)      (product form)
  void gradient(Eigen::Index t, const Matrix<Real>& S, const Matrix<Real>& G, Matrix<Real>& dg) const {
    dg.row(t) = factors(t).cwiseProduct(S.cwiseProduct(G).rowwise().sum()).transpose();
  }
};

/// S_t = D_t S_{t-1} + k_t v_t^T.
template <typename Inputs, typename Decay>
struct Write {
  const Inputs& x;
  Decay decay;

  template <typename Real>
  void step(Eigen::Index t, Matrix<Real>& S) const {
    S = (decay.times(t, S) + x.k.row(t).transpose() * x.v.row(t)).eval();
  }
  ///   dk_t = G v_t      dv_t = G^T k_t      dg_t of D_t      G <- D_t G
  template <typename Real>
  void back(Eigen::Index t, const Matrix<Real>& before, Matrix<Real>& G, Inputs& y, Matrix<Real>& dg) const {
    y.k.row(t) = (G * x.v.row(t).transpose()).transpose();
    y.v.row(t) = (G.transpose() * x.k.row(t).transpose()).transpose();
    decay.gradient(t, before, G, dg);
    G = decay.times(t, G);
  }
};
template <typename Inputs, typename Decay>
Write(const Inputs&, Decay) -> Write<Inputs, Decay>;

/// q: T x K, the queries among the inputs `x`.
template <typename Real, typename Inputs, typename Term>
StateOutputs<Real> state_forward(const Inputs& x, const Matrix<Real>& q, const Term& term) {
  StateOutputs<Real> y{Matrix<Real>(q.rows(), x.S0.cols()), x.S0};
  for (Eigen::Index t = 0; t < q.rows(); ++t) {
    term.step(t, y.S);
    y.o.row(t) = (y.S.transpose() * q.row(t).transpose() * x.scale).transpose();
  }
  return y;
}

/// The states S_0 .. S_T of a term.
template <typename Real, typename Term>
StateHistory<Matrix<Real>> states_of(const Matrix<Real>& S0, Eigen::Index T, const Term& term) {
  return {S0, T, [&term](int64_t t, Matrix<Real>& S) { term.step(t - 1, S); }};
}

/// Reverse time, G = dL/dS_t, readout at t included; starts at dS_T. For t = T..1:
///   G <- G + scale q_t do_t^T      dq_t = scale S_t do_t      then the term's back
/// and dS_0 = G at the end. d: dL/do and dL/dS_T of a loss L. `y`: the gradients, of the inputs' shapes; dq
/// and dg: its parts of the queries and the gate.
template <typename Real, typename Inputs, typename Term>
void state_adjoint(const Inputs& x, const Matrix<Real>& q, const Term& term, const StateOutputs<Real>& d,
                   Inputs& y, Matrix<Real>& dq, Matrix<Real>& dg) {
  Matrix<Real>& G = y.S0;
  G = d.S;
  auto S = states_of(x.S0, q.rows(), term);
  for (Eigen::Index t = q.rows() - 1; t >= 0; --t) {
    const Vector<Real> readout = d.o.row(t).transpose() * x.scale;
    G = (G + q.row(t).transpose() * readout.transpose()).eval();
    dq.row(t) = (S.at(t + 1) * readout).transpose();
    term.back(t, S.at(t), G, y, dg);
  }
}

}  // namespace assay
