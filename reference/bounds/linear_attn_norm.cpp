// The bounds of normalised linear attention. S and z are states without decay (bound.h); with readouts n and
// d of relative error `readout`, |o^ - o| <= (dn + |o| dd) / (|d| - dd), then (1 + divide). Where d may be
// zero the bound is infinite.
//
// Backward, with E, P of S and z, and F, M of G = dL/dS and Z = dL/dz (bound_adjoint.h): dn = do / d and
// dd = -(do . o) / d carry d's error and `inner`; they enter G and Z with that error. dq = scale (S dn + dd
// z) has the state's readout, dk = G v + Z the adjoint's, dv = G^T k `value_readout`.
#include "reference/operators/linear_attn_norm.h"

#include "reference/bounds/diagonal_state.h"
#include "reference/bounds/storage.h"

namespace assay {
namespace {

using In = LinearAttnNorm::In;
using Out = LinearAttnNorm::Out;

constexpr double kEps = 1e-10, kOne = 1;

/// |a^ / b^ - a / b| <= (Ea + |a / b| Eb) / (|b| - Eb).
Bounded over(const Bounded& a, const Bounded& b, double relative) {
  const double size = std::fabs(b.value), q = a.value / b.value, least = size - b.E;
  const double error = least > 0 ? (a.E + std::fabs(q) * b.E) / least : HUGE_VAL;
  return Bounded{q, std::fmax(a.P / size, std::fabs(q)), error}.rounded(relative);
}

struct Norm {
  const SliceProblem& p;
  const SliceMatrix &q, &k, &v, &S0, &z0;
  int64_t T, K, V;
  double scale;
  OwnError own;

  Norm(const SliceProblem& p, const Arithmetic& a)
      : p(p),
        q(p.inputs[In::q]),
        k(p.inputs[In::k]),
        v(p.inputs[In::v]),
        S0(p.inputs[In::initial_state]),
        z0(p.inputs[In::z0]),
        T(p.slice.tokens),
        K(q.columns),
        V(v.columns),
        scale(p.scale),
        own(roundings(), a, T) {}
  double at(const SliceMatrix& m, int64_t t, int64_t c) const {
    return m.values[static_cast<size_t>(t * m.columns + c)];
  }
  const double* row(const SliceMatrix& m, int64_t t) const { return m.values.data() + t * m.columns; }

  /// scale q_t . (column j of a state) as a kernel reads it.
  Bounded read(const DiagonalState& S, int64_t t, int64_t j, double readout, double lost) const {
    std::vector<double> reads(row(q, t), row(q, t) + K);
    for (double& x : reads) x *= scale;
    Bounded y = column_product(S, j, reads.data(), nullptr).rounded(readout);
    y.E += lost + own.of(y);
    return y;
  }
  /// d of one token: the readout of z, and eps.
  Bounded normaliser(const DiagonalState& z, int64_t t, double readout, double lost) const {
    Bounded d = read(z, t, 0, readout, lost);
    d.value += kEps, d.P += kEps, d.E += (readout + kDoubleRoundoff) * kEps;
    return d;
  }
  double roundings() const { return 4 * excess_roundings(T, K + V); }
};

/// S and z, or their adjoints G and Z.
struct States {
  DiagonalState S, z;  ///< K x V, K x 1

  States(const Norm& f, const Arithmetic& a, const SliceMatrix& S0, const SliceMatrix& z0)
      : S(a, f.K, f.V), z(a, f.K, 1) {
    S.load(S0.values), z.load(z0.values);
  }
  void advance(const Norm& f, int64_t t) {
    if (t > 0) pass(t, f.T);
    for (int64_t c = 0; c < f.K; ++c) {
      S.advance(c, 0, f.at(f.k, t, c), 0, f.row(f.v, t), nullptr);
      z.advance(c, 0, f.at(f.k, t, c), 0, &kOne, nullptr);
    }
  }
  void pass(int64_t tokens, int64_t all) { S.pass(tokens, all), z.pass(tokens, all); }
};

std::vector<ElementBound> stored_state(const DiagonalState& S, double lost, double n) {
  const Storage of_state(0, Dtype::fp32);
  std::vector<ElementBound> y;
  for (size_t i = 0; i < S.S.size(); ++i) y.push_back(of_state.element(S.S[i], S.P[i], S.E[i], lost, n));
  return y;
}

}  // namespace

SliceBounds LinearAttnNorm::forward_bound(const SliceProblem& p) {
  const bool exact = claims_exact(p.problem->arithmetic);
  const Arithmetic a = arithmetic_of_run(p.problem->arithmetic, false);
  const Norm f(p, a);
  const double flushed = kUnderflowEvents * underflow_of(a, exact) * path_inflation(a, f.T);
  const Storage of_o(a.output_roundoff, dtype_of(p, {"v"}));
  States h(f, a, f.S0, f.z0);
  double R = 1 + largest_of(f.S0) + largest_of(f.z0);
  SliceBounds y(Out::count);
  for (int64_t t = 0; t < f.T; ++t) {
    h.advance(f, t);
    R += one_plus_largest(f.k, t) * one_plus_largest(f.v, t);
    const double spread = (1 + std::fabs(f.scale)) * ones_plus_sum(f.q, t) * R;
    // Where o's values of one token may overflow nothing is promised.
    const double lost = unless_over(spread, flushed * spread);
    const Bounded d = f.normaliser(h.z, t, a.readout, lost);
    for (int64_t j = 0; j < f.V; ++j) {
      const Bounded o = over(f.read(h.S, t, j, a.readout, lost), d, a.divide);
      y[Out::o].push_back(of_o.element(o, flushed, f.roundings()));
    }
  }
  if (f.T > 0) h.pass(f.T, f.T);
  const double lost = f.T == 0 ? 0 : unless_over(R, flushed * R);
  y[Out::final_state] = stored_state(h.S, lost, f.roundings());
  y[Out::zt] = stored_state(h.z, lost, f.roundings());
  return y;
}

namespace {

/// One run backwards over the tokens.
class Reverse {
 public:
  Reverse(const SliceProblem& p, const AdjointArithmetic& declared)
      : a_(declared),
        forward_(arithmetic_of_run(declared.state, false)),
        reverse_(arithmetic_of_run(declared.adjoint, false)),
        f_(p, forward_),
        d_o_(p.cotangents[Out::o]),
        states_(States(f_, forward_, f_.S0, f_.z0), f_.T,
                [this](int64_t t, States& h) { h.advance(f_, t - 1); }),
        G_(f_, reverse_, p.cotangents[Out::final_state], p.cotangents[Out::zt]),
        R_(static_cast<size_t>(f_.T) + 1, 1 + largest_of(f_.S0) + largest_of(f_.z0)),
        Q_(1 + largest_of(p.cotangents[Out::final_state]) + largest_of(p.cotangents[Out::zt])),
        stored_(declared.state.output_roundoff, dtype_of(p, {"v"})),
        n_(f_.roundings()),
        y_(In::count) {
    const bool exact = claims_exact(declared);
    flushed_ = kUnderflowEvents * std::fmax(underflow_of(forward_, exact), underflow_of(reverse_, exact)) *
               path_inflation(forward_, f_.T) * path_inflation(reverse_, f_.T);
    if (f_.T > 0) G_.S.step_initial(), G_.z.step_initial();
    for (int64_t t = 0; t < f_.T; ++t) {
      const auto i = static_cast<size_t>(t);
      R_[i + 1] = R_[i] + one_plus_largest(f_.k, t) * one_plus_largest(f_.v, t);
    }
    for (const size_t x : {In::q, In::k, In::v}) y_[x].resize(p.inputs[x].values.size());
  }
  Reverse(const Reverse&) = delete;

  SliceBounds run() {
    for (int64_t t = f_.T; t-- > 0;) token(t);
    const double lost = f_.T == 0 ? 0 : unless_over(Q_, flushed_ * Q_);
    y_[In::initial_state] = stored_state(G_.S, lost, n_), y_[In::z0] = stored_state(G_.z, lost, n_);
    return std::move(y_);
  }

 private:
  /// What enters G and Z at a token, times scale: dn = do / d and dd = -(do . o) / d.
  struct Entering {
    std::vector<double> dn, dn_error;
    Bounded dd;
    double largest = 0;  ///< at least the magnitudes of both, before and after the scale
  };
  Entering entering(const States& after, int64_t t) const {
    const double R = R_[static_cast<size_t>(t) + 1];
    const double spread = (1 + std::fabs(f_.scale)) * ones_plus_sum(f_.q, t) * R;
    const double lost = unless_over(spread, flushed_ * spread);
    const Bounded d = f_.normaliser(after.z, t, forward_.readout, lost);
    Entering y;
    Bounded dot;
    // Quotients are taken before the scale: both must stay in range.
    const double before_or_after = std::fmax(1, std::fabs(f_.scale));
    for (int64_t j = 0; j < f_.V; ++j) {
      const double g = f_.at(d_o_, t, j);
      const Bounded o = over(f_.read(after.S, t, j, forward_.readout, lost), d, forward_.divide);
      dot += {g * o.value, std::fabs(g) * o.P, std::fabs(g) * o.E};
      const Bounded e = over({g, std::fabs(g), 0}, d, a_.inner);
      y.largest = std::fmax(y.largest, (std::fabs(e.value) + e.E) * before_or_after);
      y.dn.push_back(e.value * f_.scale);
      y.dn_error.push_back(e.E * std::fabs(f_.scale) + flushed_ * (1 + std::fabs(f_.scale)));
    }
    const Bounded dd = over(dot.rounded(a_.inner), d, a_.inner);
    y.largest = std::fmax(y.largest, (std::fabs(dd.value) + dd.E) * before_or_after);
    y.dd = {-dd.value * f_.scale, dd.P * std::fabs(f_.scale),
            dd.E * std::fabs(f_.scale) + flushed_ * (1 + std::fabs(f_.scale))};
    return y;
  }

  void token(int64_t t) {
    const States& after = states_.at(t + 1);
    const Entering in = entering(after, t);
    Q_ += one_plus_largest(f_.q, t) * (1 + in.largest);
    const double R = R_[static_cast<size_t>(t) + 1];
    const double state_spread = R * (1 + in.largest) * static_cast<double>(f_.V + 1),
                 key_spread = Q_ * ones_plus_sum(f_.v, t), value_spread = Q_ * ones_plus_sum(f_.k, t);
    for (int64_t c = 0; c < f_.K; ++c) {
      if (t < f_.T - 1) G_.S.cross(c, 0), G_.z.cross(c, 0);  // what is there lives through this token too
      G_.S.write(c, f_.at(f_.q, t, c), 0, in.dn.data(), in.dn_error.data());
      G_.z.write(c, f_.at(f_.q, t, c), 0, &in.dd.value, &in.dd.E);
      const auto i = static_cast<size_t>(t * f_.K + c);
      const Bounded dq =
          row_product(after.S, c, in.dn.data(), in.dn_error.data()) + product(entry(after.z, c), in.dd);
      const Bounded dk = row_product(G_.S, c, f_.row(f_.v, t), nullptr) + entry(G_.z, c);
      y_[In::q][i] = stored(dq.rounded(forward_.readout), state_spread);
      y_[In::k][i] = stored(dk.rounded(reverse_.readout), key_spread);
    }
    for (int64_t j = 0; j < f_.V; ++j) {
      const Bounded dv = column_product(G_.S, j, f_.row(f_.k, t), nullptr).rounded(a_.value_readout);
      y_[In::v][static_cast<size_t>(t * f_.V + j)] = stored(dv, value_spread);
    }
    G_.pass(t, f_.T);
  }
  static Bounded entry(const DiagonalState& z, int64_t c) {
    const auto i = static_cast<size_t>(c);
    return {z.S[i], z.P[i], z.E[i]};
  }
  ElementBound stored(const Bounded& x, double spread) const {
    return stored_.element(x, unless_over(spread, flushed_ * spread), n_);
  }

  const AdjointArithmetic& a_;
  const Arithmetic forward_, reverse_;
  const Norm f_;
  const SliceMatrix& d_o_;
  StateHistory<States> states_;
  States G_;                ///< G and Z
  std::vector<double> R_;   ///< per number of tokens: 1 + the largest |S| and |z| by absolute sums
  double Q_, flushed_ = 0;  ///< 1 + the largest |G| and |Z| so far; what underflow leaves of a path
  const Storage stored_;
  const double n_;
  SliceBounds y_;
};

}  // namespace

SliceBounds LinearAttnNorm::adjoint_bound(const SliceProblem& p) {
  return Reverse(p, p.problem->adjoint).run();
}

}  // namespace assay
