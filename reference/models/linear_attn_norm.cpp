// The bounds of normalised linear attention. S and z are states without decay (bound.h); with readouts n and
// d of relative error `readout`, |o^ - o| <= (dn + |o| dd) / (|d| - dd), then (1 + divide). Where d may be
// zero the bound is infinite.
//
// Backward, with E, P of S and z, and F, M of G = dL/dS and Z = dL/dz (bound_adjoint.h): dn = do / d and
// dd = -(do . o) / d carry d's error and `inner`; they enter G and Z with that error. dq = scale (S dn + dd
// z) has the state's readout, dk = G v + Z the adjoint's, dv = G^T k `value_readout`.
#include "reference/operators/linear_attn_norm.h"

#include "reference/models/diagonal_state.h"
#include "reference/models/stored.h"

namespace assay {
namespace {

constexpr double kEps = 1e-10, kOne = 1;

/// A value with its companion and how far the kernel's may be from it.
struct Known {
  double value = 0, P = 0, E = 0;

  Known rounded(double relative) const { return {value, P, E + relative * (P + E)}; }
  double most() const { return P + E; }
};

/// |a^ / b^ - a / b| <= (Ea + |a / b| Eb) / (|b| - Eb).
Known over(const Known& a, const Known& b, double relative) {
  const double size = std::fabs(b.value), q = a.value / b.value, least = size - b.E;
  const double error = least > 0 ? (a.E + std::fabs(q) * b.E) / least : HUGE_VAL;
  return Known{q, std::fmax(a.P / size, std::fabs(q)), error}.rounded(relative);
}

struct Norm {
  const SliceProblem& p;
  const SliceMatrix &q, &k, &v, &S0, &z0;
  int64_t T, K, V;
  double scale;

  explicit Norm(const SliceProblem& p)
      : p(p),
        q(p.inputs[0]),
        k(p.inputs[1]),
        v(p.inputs[2]),
        S0(p.inputs[3]),
        z0(p.inputs[4]),
        T(p.slice.tokens),
        K(q.columns),
        V(v.columns),
        scale(p.scale) {}
  double at(const SliceMatrix& m, int64_t t, int64_t c) const {
    return m.values[static_cast<size_t>(t * m.columns + c)];
  }
  const double* row(const SliceMatrix& m, int64_t t) const { return m.values.data() + t * m.columns; }

  /// scale q_t . (column j of a state) as a kernel reads it.
  Known read(const DiagonalState& S, int64_t t, int64_t j, double readout, double lost) const {
    Known y;
    for (int64_t c = 0; c < K; ++c) {
      const double x = scale * at(q, t, c);
      const size_t i = S.at(c) + static_cast<size_t>(j);
      y.value += x * S.S[i], y.P += std::fabs(x) * S.P[i], y.E += std::fabs(x) * S.E[i];
    }
    y = y.rounded(readout);
    y.E += lost;
    return y;
  }
  void advance(DiagonalState& S, DiagonalState& z, int64_t t) const {
    for (int64_t c = 0; c < K; ++c) {
      S.advance(c, 0, at(k, t, c), 0, row(v, t), nullptr);
      z.advance(c, 0, at(k, t, c), 0, &kOne, nullptr);
    }
  }
  double roundings() const { return 4 * excess_roundings(T, K + V); }
};

/// Where o's values of one token pass 2^127 nothing is promised.
double unless_over(double largest, double bound) {
  return largest < kModelOverflow ? bound : HUGE_VAL;
}

}  // namespace

ModelledValues LinearAttnNorm::forward_bound(const SliceProblem& p) {
  const Norm f(p);
  const bool exact = claims_exact(p.problem->arithmetic);
  const GatedArithmetic a = arithmetic_of_run(p.problem->arithmetic, false);
  const double flushed = kUnderflowEvents * underflow_of(a, exact) * path_inflation(a, f.T);
  const Storage of_o(a.output_roundoff, dtype_of(p, {"v"})), of_state(0, Dtype::fp32);
  DiagonalState S(a, f.K, f.V), z(a, f.K, 1);
  S.load(f.S0.values), z.load(f.z0.values);
  double R = 1 + largest_of(f.S0) + largest_of(f.z0);
  ModelledValues y{{{}, {}, {}}, true};
  for (int64_t t = 0; t < f.T; ++t) {
    f.advance(S, z, t);
    R += one_plus_largest(f.k, t) * one_plus_largest(f.v, t);
    const double spread = (1 + std::fabs(f.scale)) * ones_plus_sum(f.q, t) * R;
    const double lost = unless_over(spread, flushed * spread);
    Known d = f.read(z, t, 0, a.readout, lost);
    d.value += kEps, d.P += kEps, d.E += (a.readout + kDoubleRoundoff) * kEps;
    for (int64_t j = 0; j < f.V; ++j) {
      const Known o = over(f.read(S, t, j, a.readout, lost), d, a.divide);
      y.values[0].push_back(of_o.element(o.value, o.P, o.E, flushed, f.roundings()));
    }
    if (S.chunk_ends(t + 1, f.T)) S.end_chunk(), z.end_chunk();
  }
  const double lost = f.T == 0 ? 0 : unless_over(R, flushed * R);
  for (size_t i = 0; i < S.S.size(); ++i)
    y.values[1].push_back(of_state.element(S.S[i], S.P[i], S.E[i], lost, f.roundings()));
  for (size_t i = 0; i < z.S.size(); ++i)
    y.values[2].push_back(of_state.element(z.S[i], z.P[i], z.E[i], lost, f.roundings()));
  return y;
}

ModelledValues LinearAttnNorm::adjoint_bound(const SliceProblem& p) {
  const Norm f(p);
  const GatedAdjointArithmetic& a = p.problem->adjoint;
  const bool exact = claims_exact(a.state) && claims_exact(a.adjoint);
  const GatedArithmetic forward = arithmetic_of_run(a.state, false),
                        reverse = arithmetic_of_run(a.adjoint, false);
  const double flushed = kUnderflowEvents *
                         std::fmax(underflow_of(forward, exact), underflow_of(reverse, exact)) *
                         path_inflation(forward, f.T) * path_inflation(reverse, f.T);
  const SliceMatrix &d_o = p.cotangents[0], &dS = p.cotangents[1], &dz = p.cotangents[2];
  const Storage stored(a.state.output_roundoff, dtype_of(p, {"v"})), of_state(0, Dtype::fp32);
  // States after each token, made again from marks every sqrt(T) tokens.
  DiagonalState S(forward, f.K, f.V), z(forward, f.K, 1);
  S.load(f.S0.values), z.load(f.z0.values);
  const int64_t stride = std::max<int64_t>(1, static_cast<int64_t>(std::sqrt(static_cast<double>(f.T))));
  std::vector<std::pair<DiagonalState, DiagonalState>> marks, run;
  std::vector<double> R(static_cast<size_t>(f.T) + 1, 1 + largest_of(f.S0) + largest_of(f.z0));
  const auto advance = [&](DiagonalState& s, DiagonalState& r, int64_t t) {
    f.advance(s, r, t);
    if (s.chunk_ends(t + 1, f.T)) s.end_chunk(), r.end_chunk();
  };
  for (int64_t t = 0; t < f.T; ++t) {
    if (t % stride == 0) marks.emplace_back(S, z);
    advance(S, z, t);
    R[static_cast<size_t>(t) + 1] =
        R[static_cast<size_t>(t)] + one_plus_largest(f.k, t) * one_plus_largest(f.v, t);
  }
  DiagonalState G(reverse, f.K, f.V), Z(reverse, f.K, 1);
  G.load(dS.values), Z.load(dz.values);
  if (f.T > 0) G.step_initial(), Z.step_initial();
  double Q = 1 + largest_of(dS) + largest_of(dz);
  ModelledValues y{{std::vector<ModelledElement>(f.q.values.size()),
                    std::vector<ModelledElement>(f.k.values.size()),
                    std::vector<ModelledElement>(f.v.values.size()),
                    {},
                    {}},
                   true};
  const double n = f.roundings();
  for (int64_t t = f.T; t-- > 0;) {
    if (run.empty() || t % stride == stride - 1 || t == f.T - 1) {
      const int64_t first = t / stride * stride;
      run.clear();
      auto mark = marks[static_cast<size_t>(t / stride)];
      for (int64_t s = first; s <= t; ++s) advance(mark.first, mark.second, s), run.push_back(mark);
    }
    const auto& [after, total] = run[static_cast<size_t>(t % stride)];
    const double spread = (1 + std::fabs(f.scale)) * ones_plus_sum(f.q, t) * R[static_cast<size_t>(t) + 1];
    const double lost = unless_over(spread, flushed * spread);
    Known d = f.read(total, t, 0, forward.readout, lost);
    d.value += kEps, d.P += kEps, d.E += (forward.readout + kDoubleRoundoff) * kEps;
    std::vector<double> dn(static_cast<size_t>(f.V)), dn_error(dn.size());
    Known dot;
    // Quotients are taken before the scale: both must stay in range.
    const double before_or_after = std::fmax(1, std::fabs(f.scale));
    double largest_dn = 0;
    for (int64_t j = 0; j < f.V; ++j) {
      const double g = f.at(d_o, t, j);
      const Known o = over(f.read(after, t, j, forward.readout, lost), d, forward.divide);
      dot.value += g * o.value, dot.P += std::fabs(g) * o.P, dot.E += std::fabs(g) * o.E;
      const Known e = over({g, std::fabs(g), 0}, d, a.inner);
      largest_dn = std::fmax(largest_dn, (std::fabs(e.value) + e.E) * before_or_after);
      dn[static_cast<size_t>(j)] = e.value * f.scale;
      dn_error[static_cast<size_t>(j)] = e.E * std::fabs(f.scale) + flushed * (1 + std::fabs(f.scale));
    }
    Known dd = over(dot.rounded(a.inner), d, a.inner);
    largest_dn = std::fmax(largest_dn, (std::fabs(dd.value) + dd.E) * before_or_after);
    dd = {-dd.value * f.scale, dd.P * std::fabs(f.scale),
          dd.E * std::fabs(f.scale) + flushed * (1 + std::fabs(f.scale))};
    Q += one_plus_largest(f.q, t) * (1 + largest_dn);
    const double state_spread =
                     R[static_cast<size_t>(t) + 1] * (1 + largest_dn) * static_cast<double>(f.V + 1),
                 key_spread = Q * ones_plus_sum(f.v, t), value_spread = Q * ones_plus_sum(f.k, t);
    for (int64_t c = 0; c < f.K; ++c) {
      if (t < f.T - 1) G.cross(c, 0), Z.cross(c, 0);  // what is there lives through this token too
      G.write(c, f.at(f.q, t, c), 0, dn.data(), dn_error.data());
      Z.write(c, f.at(f.q, t, c), 0, &dd.value, &dd.E);
      const auto i = static_cast<size_t>(t * f.K + c);
      Known key, query;
      for (int64_t j = 0; j < f.V; ++j) {
        const size_t at = G.at(c) + static_cast<size_t>(j);
        const double w = f.at(f.v, t, j), m = std::fabs(dn[static_cast<size_t>(j)]),
                     e = dn_error[static_cast<size_t>(j)];
        key.value += G.S[at] * w, key.P += G.P[at] * std::fabs(w), key.E += G.E[at] * std::fabs(w);
        query.value += after.S[at] * dn[static_cast<size_t>(j)], query.P += after.P[at] * m;
        query.E += after.E[at] * (m + e) + after.P[at] * e;
      }
      const auto one = static_cast<size_t>(c);
      key.value += Z.S[one], key.P += Z.P[one], key.E += Z.E[one];
      query.value += total.S[one] * dd.value, query.P += total.P[one] * dd.P;
      query.E += total.E[one] * dd.most() + total.P[one] * dd.E;
      query = query.rounded(forward.readout), key = key.rounded(reverse.readout);
      y.values[0][i] =
          stored.element(query.value, query.P, query.E, unless_over(state_spread, flushed * state_spread), n);
      y.values[1][i] =
          stored.element(key.value, key.P, key.E, unless_over(key_spread, flushed * key_spread), n);
    }
    for (int64_t j = 0; j < f.V; ++j) {
      Known value;
      for (int64_t c = 0; c < f.K; ++c) {
        const size_t at = G.at(c) + static_cast<size_t>(j);
        const double w = f.at(f.k, t, c);
        value.value += G.S[at] * w, value.P += G.P[at] * std::fabs(w), value.E += G.E[at] * std::fabs(w);
      }
      value = value.rounded(a.value_readout);
      y.values[2][static_cast<size_t>(t * f.V + j)] =
          stored.element(value.value, value.P, value.E, unless_over(value_spread, flushed * value_spread), n);
    }
    if (G.chunk_starts(t)) G.end_chunk(), Z.end_chunk();
  }
  const double lost = f.T == 0 ? 0 : unless_over(Q, flushed * Q);
  for (size_t i = 0; i < G.S.size(); ++i)
    y.values[3].push_back(of_state.element(G.S[i], G.P[i], G.E[i], lost, n));
  for (size_t i = 0; i < Z.S.size(); ++i)
    y.values[4].push_back(of_state.element(Z.S[i], Z.P[i], Z.E[i], lost, n));
  return y;
}

}  // namespace assay
