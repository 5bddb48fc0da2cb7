// The bounds of gated slot attention. Hk (kept as its transpose, M x K) and Hv (M x V) are states with one
// decay per slot (bound.h), with companions P and excesses E.
//
// Softmax. y_m carries delta_m = scale sum_c |q_c| (E + logits (P + E)). The kernel's exponent y_m - c, c
// near the largest y, is further off by logits_per_nat |y_m - c|: eta_m in all. With p the exact weights,
//   p^_m / p_m = e^{+-eta_m} / sum_j p_j e^{+-eta_j}, times (1 + divide),
// so that both sides lie within rho_m = (1 + divide) e^{eta_m} sum_j p_j e^{eta_j} - 1, as the reciprocal of
// the sum is at most its value with the signs turned (Jensen). Both p and p^ / (1 + divide) are shares of a
// sum and at most 1, however far off the logits are. Then o = Hv^T p carries rho and `readout`.
//
// Backward (bound_adjoint.h): dp = Hv do, dy = scale p (dp - p . dp) with `inner` after each of the three
// steps; p do and q dy enter Gv and Gk with the errors of p and dy. dq = Hk dy has the state's readout; dk =
// Gk s the adjoint's; dv = Gv^T s `value_readout`; ds, the sum of Gv v and Gk^T k, the adjoint's; dg
// `gate_readout`.
//
// Without g decays and what is written come from s (gsa_slots.h), and the gradient of s through both, in
// reverse time as the operator writes it, with `inner` after each sum and each product with a sum.
#include "reference/operators/gsa.h"

#include "reference/models/diagonal_state.h"
#include "reference/models/gsa_slots.h"
#include "reference/models/stored.h"

namespace assay {
namespace {

struct GsaSlice {
  const SliceProblem& p;
  const SliceMatrix &q, &k, &v, &s, &g, &Hk0, &Hv0;
  int64_t T, K, V, M;
  double scale;
  GsaSlots slots;

  GsaSlice(const SliceProblem& p, const GatedArithmetic& a)
      : p(p),
        q(p.inputs[0]),
        k(p.inputs[1]),
        v(p.inputs[2]),
        s(p.inputs[3]),
        g(p.inputs[4]),
        Hk0(p.inputs[5]),
        Hv0(p.inputs[6]),
        T(p.slice.tokens),
        K(q.columns),
        V(v.columns),
        M(s.columns),
        scale(p.scale),
        slots(s, g, a) {}
  double at(const SliceMatrix& m, int64_t t, int64_t c) const {
    return m.values[static_cast<size_t>(t * m.columns + c)];
  }
  const double* row(const SliceMatrix& m, int64_t t) const { return m.values.data() + t * m.columns; }
  const double* written(int64_t t) const { return slots.w.data() + t * M; }
  const double* written_error(int64_t t) const { return slots.w_error.data() + t * M; }
  size_t slot(int64_t t, int64_t m) const { return static_cast<size_t>(t * M + m); }
  /// 1 + the largest |w|, and the sum of 1 + |w|, of a token.
  double one_plus_written(int64_t t) const { return slots.own ? 2 : one_plus_largest(s, t); }
  double ones_plus_written(int64_t t) const {
    return slots.own ? 2 * static_cast<double>(M) : ones_plus_sum(s, t);
  }
  /// Own weights are e^x, |x| < 1024 where they are not 0.
  double roundings() const { return 8 * excess_roundings(T, K + V + M) + (slots.own ? 1024 : 0); }
};

/// The arithmetic of a run in which something decays, or not.
GatedArithmetic of_run(const GatedArithmetic& a, const SliceProblem& p) {
  return arithmetic_of_run(a, !p.inputs[4].present || decays(p, "g"));
}

std::vector<double> transposed(const SliceMatrix& m) {
  std::vector<double> y(m.values.size());
  for (int64_t r = 0; r < m.rows; ++r)
    for (int64_t c = 0; c < m.columns; ++c)
      y[static_cast<size_t>(c * m.rows + r)] = m.values[static_cast<size_t>(r * m.columns + c)];
  return y;
}

/// Values, and how far a kernel's may be from each.
struct Weights {
  std::vector<double> p, error;
};

struct States {
  DiagonalState Hk, Hv;  ///< M x K, M x V

  States(const GsaSlice& f, const GatedArithmetic& a) : Hk(a, f.M, f.K), Hv(a, f.M, f.V) {
    Hk.load(transposed(f.Hk0)), Hv.load(f.Hv0.values);
  }
  void advance(const GsaSlice& f, int64_t t) {
    const GsaSlots& x = f.slots;
    for (int64_t m = 0; m < f.M; ++m) {
      const size_t i = f.slot(t, m);
      Hk.advance(m, x.g[i], x.w[i], x.w_error[i], f.row(f.k, t), nullptr, x.g_error[i]);
      Hv.advance(m, x.g[i], x.w[i], x.w_error[i], f.row(f.v, t), nullptr, x.g_error[i]);
    }
    if (Hk.chunk_ends(t + 1, f.T)) Hk.end_chunk(), Hv.end_chunk();
  }
  /// softmax(scale Hk^T q_t); `lost` is what underflow does to a logit.
  Weights weights(const GsaSlice& f, const GatedArithmetic& a, int64_t t, double lost) const {
    const auto M = static_cast<size_t>(f.M);
    std::vector<double> y(M), eta(M);
    double largest = -HUGE_VAL, sum = 0, spread = 0;
    for (size_t m = 0; m < M; ++m) {
      double P = 0, E = 0;
      for (int64_t c = 0; c < f.K; ++c) {
        const double x = f.scale * f.at(f.q, t, c);
        const size_t i = Hk.at(static_cast<int64_t>(m)) + static_cast<size_t>(c);
        y[m] += x * Hk.S[i], P += std::fabs(x) * Hk.P[i], E += std::fabs(x) * Hk.E[i];
      }
      // The double y itself is off by some roundings of its companion.
      eta[m] = E + a.logits * (P + E) + lost + gamma(f.roundings(), kDoubleRoundoff) * P;
      largest = std::fmax(largest, y[m]);
    }
    Weights w{std::vector<double>(M), std::vector<double>(M)};
    for (size_t m = 0; m < M; ++m) {
      eta[m] += a.logits_per_nat * (largest - y[m] + 2 * eta[m]);
      sum += w.p[m] = std::exp(y[m] - largest);
    }
    for (size_t m = 0; m < M; ++m) w.p[m] /= sum, spread += w.p[m] * std::exp(eta[m]);
    // Where logits are so far off that this says nothing (then also as NaN), both lie in [0, 1 + divide].
    for (size_t m = 0; m < M; ++m)
      w.error[m] =
          std::fmin(1 + a.divide, w.p[m] * ((1 + a.divide) * std::exp(eta[m]) * spread * (1 + 0x1p-40) - 1)) +
          lost;
    return w;
  }
};

double unless_over(double largest, double bound) {
  return largest < kModelOverflow ? bound : HUGE_VAL;
}

}  // namespace

ModelledValues Gsa::forward_bound(const SliceProblem& p) {
  const bool exact = claims_exact(p.problem->arithmetic);
  const GatedArithmetic a = of_run(p.problem->arithmetic, p);
  const GsaSlice f(p, a);
  const double flushed = kUnderflowEvents * underflow_of(a, exact) * path_inflation(a, f.T);
  const Storage of_o(a.output_roundoff, dtype_of(p, {"v"})), of_state(0, Dtype::fp32);
  States h(f, a);
  double Rk = 1 + largest_of(f.Hk0), Rv = 1 + largest_of(f.Hv0);
  ModelledValues y{{{}, std::vector<ModelledElement>(f.Hk0.values.size()), {}}, true};
  for (int64_t t = 0; t < f.T; ++t) {
    h.advance(f, t);
    const double s = f.one_plus_written(t);
    Rk += s * one_plus_largest(f.k, t), Rv += s * one_plus_largest(f.v, t);
    const double spread = (1 + std::fabs(f.scale)) * ones_plus_sum(f.q, t) * Rk;
    const Weights w = h.weights(f, a, t, unless_over(spread, flushed * spread));
    const double lost = unless_over(Rv, 2 * static_cast<double>(f.M) * flushed * Rv);
    for (int64_t j = 0; j < f.V; ++j) {
      double o = 0, P = 0, E = 0;
      for (int64_t m = 0; m < f.M; ++m) {
        const auto i = static_cast<size_t>(m), at = h.Hv.at(m) + static_cast<size_t>(j);
        o += w.p[i] * h.Hv.S[at], P += w.p[i] * h.Hv.P[at];
        E += (w.p[i] + w.error[i]) * h.Hv.E[at] + w.error[i] * h.Hv.P[at];
      }
      y.values[0].push_back(of_o.element(o, P, E + a.readout * (P + E), lost, f.roundings()));
    }
  }
  const double lost_k = f.T == 0 ? 0 : unless_over(Rk, flushed * Rk),
               lost_v = f.T == 0 ? 0 : unless_over(Rv, flushed * Rv);
  for (int64_t m = 0; m < f.M; ++m)
    for (int64_t c = 0; c < f.K; ++c) {
      const size_t i = h.Hk.at(m) + static_cast<size_t>(c);
      y.values[1][static_cast<size_t>(c * f.M + m)] =
          of_state.element(h.Hk.S[i], h.Hk.P[i], h.Hk.E[i], lost_k, f.roundings());
    }
  for (size_t i = 0; i < h.Hv.S.size(); ++i)
    y.values[2].push_back(of_state.element(h.Hv.S[i], h.Hv.P[i], h.Hv.E[i], lost_v, f.roundings()));
  return y;
}

namespace {

/// A value, a bound of its terms' sum, and how far the kernel's may be from it.
struct Known {
  double value = 0, P = 0, E = 0;

  Known rounded(double relative) const { return {value, P, E + relative * (P + E)}; }
};

/// One run backwards over the tokens.
class Reverse {
 public:
  Reverse(const SliceProblem& p, const GatedAdjointArithmetic& declared)
      : a(declared),
        forward(of_run(a.state, p)),
        reverse(of_run(a.adjoint, p)),
        f(p, forward),
        Gk(reverse, f.M, f.K),
        Gv(reverse, f.M, f.V) {
    const bool decaying = f.slots.own || decays(p, "g"),
               exact = claims_exact(a.state) && claims_exact(a.adjoint);
    value_readout = a.value_readout + (decaying ? a.value_readout_decayed * (1 + a.value_readout) : 0);
    gate_readout = a.gate_readout + (decaying ? a.gate_readout_decayed * (1 + a.gate_readout) : 0);
    flushed = kUnderflowEvents * std::fmax(underflow_of(forward, exact), underflow_of(reverse, exact)) *
              path_inflation(forward, f.T) * path_inflation(reverse, f.T) * (1 + gate_readout);
    Gk.load(transposed(p.cotangents[1])), Gv.load(p.cotangents[2].values);
    if (f.T > 0) Gk.step_initial(), Gv.step_initial();
    Q = 1 + largest_of(p.cotangents[1]) + largest_of(p.cotangents[2]);
  }

  /// The steps between the two passes: dy = scale p (dp - p . dp), as it enters Gk.
  void between(const States& h, const Weights& w, int64_t t) {
    const auto M = static_cast<size_t>(f.M);
    const SliceMatrix& d_o = f.p.cotangents[0];
    std::vector<Known> dp(M);
    Known mean;
    for (size_t m = 0; m < M; ++m) {
      for (int64_t j = 0; j < f.V; ++j) {
        const size_t i = h.Hv.at(static_cast<int64_t>(m)) + static_cast<size_t>(j);
        const double d = f.at(d_o, t, j);
        dp[m].value += d * h.Hv.S[i], dp[m].P += std::fabs(d) * h.Hv.P[i],
            dp[m].E += std::fabs(d) * h.Hv.E[i];
      }
      dp[m] = dp[m].rounded(a.inner);
      mean.value += w.p[m] * dp[m].value, mean.P += w.p[m] * dp[m].P;
      mean.E += (w.p[m] + w.error[m]) * dp[m].E + w.error[m] * dp[m].P;
    }
    mean = mean.rounded(a.inner);
    dy.assign(M, 0), dy_error.assign(M, 0);
    const double scale = std::fabs(f.scale), n = gamma(f.roundings(), kDoubleRoundoff);
    for (size_t m = 0; m < M; ++m) {
      Known difference{dp[m].value - mean.value, dp[m].P + mean.P, dp[m].E + mean.E};
      difference.E += n * difference.P;  // of the double that stands for it
      difference = difference.rounded(a.inner);
      dy[m] = f.scale * w.p[m] * difference.value;
      const double error = scale * ((w.p[m] + w.error[m]) * difference.E +
                                    w.error[m] * (std::fabs(difference.value) + n * difference.P));
      dy_error[m] = error + a.inner * (std::fabs(dy[m]) + error);
    }
  }

  const GatedAdjointArithmetic& a;
  const GatedArithmetic forward, reverse;
  const GsaSlice f;
  const BoundModel forward_model{forward};
  DiagonalState Gk, Gv;  ///< M x K, M x V
  double value_readout, gate_readout, flushed, Q;
  std::vector<double> dy, dy_error;
};

/// sum_j S_ij x_j with the error of both.
Known product(const DiagonalState& S, int64_t row, const double* x, const double* x_error) {
  Known y;
  for (int64_t j = 0; j < S.columns; ++j) {
    const size_t i = S.at(row) + static_cast<size_t>(j);
    const double m = std::fabs(x[j]), e = x_error ? x_error[j] : 0;
    y.value += S.S[i] * x[j], y.P += S.P[i] * m, y.E += S.E[i] * (m + e) + S.P[i] * e;
  }
  return y;
}
/// sum_i S_ij x_i.
Known column(const DiagonalState& S, int64_t j, const double* x, const double* x_error) {
  Known y;
  for (int64_t r = 0; r < S.rows; ++r) {
    const size_t i = S.at(r) + static_cast<size_t>(j);
    const double m = std::fabs(x[r]), e = x_error ? x_error[r] : 0;
    y.value += S.S[i] * x[r], y.P += S.P[i] * m, y.E += S.E[i] * (m + e) + S.P[i] * e;
  }
  return y;
}
/// e^g sum_j S_ij G_ij.
Known moved(const DiagonalState& S, const DiagonalState& G, int64_t row, double weight) {
  Known y;
  for (int64_t j = 0; j < S.columns; ++j) {
    const size_t i = S.at(row) + static_cast<size_t>(j);
    y.value += weight * S.S[i] * G.S[i], y.P += weight * S.P[i] * G.P[i];
    y.E += weight * (S.P[i] * G.E[i] + S.E[i] * (G.P[i] + G.E[i]));
  }
  return y;
}
Known sum(const Known& x, const Known& y) {
  return {x.value + y.value, x.P + y.P, x.E + y.E};
}
/// factor times x, where the kernel's factor is up to `error` off.
Known times(double factor, double error, const Known& x) {
  return {factor * x.value, std::fabs(factor) * x.P, std::fabs(factor) * x.E + error * (x.P + x.E)};
}

/// Without g: the gradients of w_t and g_t go on to s, in reverse time (Gsa::through_slots).
struct ThroughSlots {
  struct Term {
    Known x;
    double lost = 0;
  };
  std::vector<Term> written, decayed;

  explicit ThroughSlots(const GsaSlice& f)
      : written(f.slots.own ? f.slots.w.size() : 0), decayed(written.size()) {}

  void finish(const Reverse& r, const Storage& stored, double n, std::vector<ModelledElement>& ds) const {
    const GsaSlice& f = r.f;
    const double inner = r.a.inner;
    for (int64_t m = 0; m < f.M; ++m) {
      Known Z;
      double lost = 0;
      for (int64_t t = f.T; t-- > 0;) {
        const size_t i = f.slot(t, m);
        if (t == 0) {
          ds[i] = stored.element(Z.value, Z.P, Z.E, lost, n);
          continue;
        }
        const double w = f.slots.w[i], w_error = f.slots.w_error[i], a = exponential(f.slots.g[i]),
                     a_error = a * r.forward_model.decay_error(f.slots.g[i], f.slots.g_error[i]);
        const Known dw = written[i].x, dg = decayed[i].x;
        const Known met = sum(times(a, a_error, dw), sum(Z, times(-1, 0, dg))).rounded(inner);
        const Known gradient = times(w, w_error, met).rounded(inner);
        lost += 4 * (written[i].lost + decayed[i].lost);
        ds[i] = stored.element(gradient.value, gradient.P, gradient.E, lost, n);
        const Known kept = sum(Z, times(-w, w_error, dw)).rounded(inner);
        Z = sum(times(a, a_error, kept), times(w, w_error, dg)).rounded(inner);
      }
    }
  }
};

}  // namespace

ModelledValues Gsa::adjoint_bound(const SliceProblem& p) {
  Reverse r(p, p.problem->adjoint);
  const GsaSlice& f = r.f;
  const Storage stored(r.forward.output_roundoff, dtype_of(p, {"v"})),
      of_g(r.a.gate_output_roundoff, dtype_of(p, {"g"})), of_state(0, Dtype::fp32);
  const int64_t stride = std::max<int64_t>(1, static_cast<int64_t>(std::sqrt(static_cast<double>(f.T))));
  std::vector<States> marks, run;  // run[i]: the states before token first + i
  States h(f, r.forward);
  std::vector<double> Rk(static_cast<size_t>(f.T) + 1, 1 + largest_of(f.Hk0)),
      Rv(Rk.size(), 1 + largest_of(f.Hv0));
  for (int64_t t = 0; t < f.T; ++t) {
    if (t % stride == 0) marks.push_back(h);
    h.advance(f, t);
    const auto i = static_cast<size_t>(t);
    Rk[i + 1] = Rk[i] + f.one_plus_written(t) * one_plus_largest(f.k, t);
    Rv[i + 1] = Rv[i] + f.one_plus_written(t) * one_plus_largest(f.v, t);
  }
  ModelledValues y{{}, true};
  for (const SliceMatrix& m : p.inputs) y.values.emplace_back(m.values.size());
  const double n = f.roundings();
  ThroughSlots through(f);
  for (int64_t t = f.T; t-- > 0;) {
    const int64_t first = t / stride * stride;
    if (run.empty() || t % stride == stride - 1 || t == f.T - 1) {
      run.clear(), run.push_back(marks[static_cast<size_t>(t / stride)]);
      for (int64_t s = first; s <= t; ++s) run.push_back(run.back()), run.back().advance(f, s);
    }
    const States &before = run[static_cast<size_t>(t - first)],
                 &after = run[static_cast<size_t>(t - first) + 1];
    const auto step = static_cast<size_t>(t) + 1;
    const double spread = (1 + std::fabs(f.scale)) * ones_plus_sum(f.q, t) * Rk[step];
    const Weights w = after.weights(f, r.forward, t, unless_over(spread, r.flushed * spread));
    r.between(after, w, t);
    const double d = ones_plus_sum(p.cotangents[0], t), slots = static_cast<double>(f.M);
    // Every term of dy meets S, do and at most two weights p <= 1.
    const double dy_spread = 4 * slots * (1 + std::fabs(f.scale)) * d * Rv[step];
    r.Q += d + one_plus_largest(f.q, t) * dy_spread;
    const double widest = r.Q * (Rk[step] + Rv[step]) * ones_plus_sum(f.k, t) * ones_plus_sum(f.v, t) *
                          f.ones_plus_written(t) * ones_plus_sum(f.q, t);
    const auto lost = [&](double reach) { return unless_over(widest, r.flushed * reach); };
    const double* d_o = f.row(p.cotangents[0], t);
    for (int64_t m = 0; m < f.M; ++m) {
      const auto i = static_cast<size_t>(m);
      r.Gv.write(m, w.p[i], w.error[i], d_o, nullptr);
      r.Gk.write(m, r.dy[i], r.dy_error[i], f.row(f.q, t), nullptr);
    }
    for (int64_t c = 0; c < f.K; ++c) {
      const auto i = static_cast<size_t>(t * f.K + c);
      const Known dq = column(after.Hk, c, r.dy.data(), r.dy_error.data()).rounded(r.forward.readout);
      const Known dk = column(r.Gk, c, f.written(t), f.written_error(t)).rounded(r.reverse.readout);
      y.values[0][i] = stored.element(dq.value, dq.P, dq.E, lost(slots * Rk[step] * dy_spread), n);
      y.values[1][i] = stored.element(dk.value, dk.P, dk.E, lost(r.Q * f.ones_plus_written(t)), n);
    }
    for (int64_t j = 0; j < f.V; ++j) {
      const Known dv = column(r.Gv, j, f.written(t), f.written_error(t)).rounded(r.value_readout);
      y.values[2][static_cast<size_t>(t * f.V + j)] =
          stored.element(dv.value, dv.P, dv.E, lost(r.Q * f.ones_plus_written(t)), n);
    }
    for (int64_t m = 0; m < f.M; ++m) {
      const auto i = static_cast<size_t>(t * f.M + m);
      const Known ds = sum(product(r.Gv, m, f.row(f.v, t), nullptr), product(r.Gk, m, f.row(f.k, t), nullptr))
                           .rounded(r.reverse.readout);
      const double g = f.slots.g[i], g_error = f.slots.g_error[i];
      const Known dg =
          sum(moved(before.Hv, r.Gv, m, exponential(g)), moved(before.Hk, r.Gk, m, exponential(g)));
      const double crossed =
          std::fmax(before.Hv.model().decay_error(g, g_error), r.Gv.model().decay_error(g, g_error));
      const Known rounded = dg.rounded(crossed + (1 + crossed) * r.gate_readout);
      const double lost_s = lost(r.Q * (ones_plus_sum(f.v, t) + ones_plus_sum(f.k, t))),
                   lost_g = lost(r.Q * (Rk[step] + Rv[step]) * static_cast<double>(f.K + f.V));
      y.values[3][i] = stored.element(ds.value, ds.P, ds.E, lost_s, n);
      y.values[4][i] = of_g.element(rounded.value, rounded.P, rounded.E, lost_g, n);
      if (f.slots.own) through.written[i] = {ds, lost_s}, through.decayed[i] = {rounded, lost_g};
      r.Gv.cross(m, g, g_error), r.Gk.cross(m, g, g_error);
    }
    if (r.Gk.chunk_starts(t)) r.Gk.end_chunk(), r.Gv.end_chunk();
  }
  if (f.slots.own) through.finish(r, stored, n, y.values[3]), y.values[4].assign(y.values[4].size(), {});
  const double lost = f.T == 0 ? 0 : unless_over(r.Q, r.flushed * r.Q);
  for (int64_t m = 0; m < f.M; ++m)
    for (int64_t c = 0; c < f.K; ++c) {
      const size_t i = r.Gk.at(m) + static_cast<size_t>(c);
      y.values[5][static_cast<size_t>(c * f.M + m)] =
          of_state.element(r.Gk.S[i], r.Gk.P[i], r.Gk.E[i], lost, n);
    }
  for (size_t i = 0; i < r.Gv.S.size(); ++i)
    y.values[6][i] = of_state.element(r.Gv.S[i], r.Gv.P[i], r.Gv.E[i], lost, n);
  return y;
}

}  // namespace assay
