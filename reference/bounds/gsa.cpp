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

#include "reference/bounds/diagonal_state.h"
#include "reference/bounds/gsa_slots.h"
#include "reference/bounds/storage.h"

namespace assay {
namespace {

using In = Gsa::In;
using Out = Gsa::Out;

struct GsaSlice {
  const SliceProblem& p;
  const SliceMatrix &q, &k, &v, &s, &g, &Hk0, &Hv0;
  int64_t T, K, V, M;
  double scale;
  GsaSlots slots;

  GsaSlice(const SliceProblem& p, const Arithmetic& a)
      : p(p),
        q(p.inputs[In::q]),
        k(p.inputs[In::k]),
        v(p.inputs[In::v]),
        s(p.inputs[In::s]),
        g(p.inputs[In::g]),
        Hk0(p.inputs[In::hk0]),
        Hv0(p.inputs[In::hv0]),
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
Arithmetic of_run(const Arithmetic& a, const SliceProblem& p) {
  return arithmetic_of_run(a, !p.inputs[In::g].present || decays(p, "g"));
}

std::vector<double> transposed(const SliceMatrix& m) {
  std::vector<double> y(m.values.size());
  for (int64_t r = 0; r < m.rows; ++r)
    for (int64_t c = 0; c < m.columns; ++c)
      y[static_cast<size_t>(c * m.rows + r)] = m.values[static_cast<size_t>(r * m.columns + c)];
  return y;
}

/// A state, M rows, as it is stored: in rows of slots, or `transposed` of channels.
std::vector<ElementBound> stored_state(const DiagonalState& S, bool transposed, double lost, double n) {
  const Storage of_state(0, Dtype::fp32);
  std::vector<ElementBound> y(S.S.size());
  for (int64_t m = 0; m < S.rows; ++m)
    for (int64_t c = 0; c < S.columns; ++c) {
      const size_t i = S.at(m) + static_cast<size_t>(c);
      const size_t to = transposed ? static_cast<size_t>(c * S.rows + m) : i;
      y[to] = of_state.element(S.S[i], S.P[i], S.E[i], lost, n);
    }
  return y;
}

/// Values, and how far a kernel's may be from each.
struct Weights {
  std::vector<double> p, error;
};

struct States {
  DiagonalState Hk, Hv;  ///< M x K, M x V

  States(const GsaSlice& f, const Arithmetic& a) : Hk(a, f.M, f.K), Hv(a, f.M, f.V) {
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
  Weights weights(const GsaSlice& f, const Arithmetic& a, int64_t t, double lost) const {
    const auto M = static_cast<size_t>(f.M);
    std::vector<double> y(M), eta(M);
    double largest = -HUGE_VAL, sum = 0, spread = 0;
    std::vector<double> reads(f.row(f.q, t), f.row(f.q, t) + f.K);
    for (double& q : reads) q *= f.scale;
    for (size_t m = 0; m < M; ++m) {
      const Bounded logit = row_product(Hk, static_cast<int64_t>(m), reads.data(), nullptr).rounded(a.logits);
      y[m] = logit.value;
      // The double y itself is off by some roundings of its companion.
      eta[m] = logit.E + lost + gamma(f.roundings(), kDoubleRoundoff) * logit.P;
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

}  // namespace

SliceBounds Gsa::forward_bound(const SliceProblem& p) {
  const bool exact = claims_exact(p.problem->arithmetic);
  const Arithmetic a = of_run(p.problem->arithmetic, p);
  const GsaSlice f(p, a);
  const double flushed = kUnderflowEvents * underflow_of(a, exact) * path_inflation(a, f.T);
  const Storage of_o(a.output_roundoff, dtype_of(p, {"v"}));
  States h(f, a);
  double Rk = 1 + largest_of(f.Hk0), Rv = 1 + largest_of(f.Hv0);
  SliceBounds y(Out::count);
  for (int64_t t = 0; t < f.T; ++t) {
    h.advance(f, t);
    const double s = f.one_plus_written(t);
    Rk += s * one_plus_largest(f.k, t), Rv += s * one_plus_largest(f.v, t);
    const double spread = (1 + std::fabs(f.scale)) * ones_plus_sum(f.q, t) * Rk;
    const Weights w = h.weights(f, a, t, unless_over(spread, flushed * spread));
    const double lost = unless_over(Rv, 2 * static_cast<double>(f.M) * flushed * Rv);
    for (int64_t j = 0; j < f.V; ++j) {
      const Bounded o = column_product(h.Hv, j, w.p.data(), w.error.data()).rounded(a.readout);
      y[Out::o].push_back(of_o.element(o, lost, f.roundings()));
    }
  }
  const double lost_k = f.T == 0 ? 0 : unless_over(Rk, flushed * Rk),
               lost_v = f.T == 0 ? 0 : unless_over(Rv, flushed * Rv);
  y[Out::hkt] = stored_state(h.Hk, true, lost_k, f.roundings());
  y[Out::hvt] = stored_state(h.Hv, false, lost_v, f.roundings());
  return y;
}

namespace {

/// Without g: the gradients of w_t and g_t go on to s, in reverse time (Gsa::through_slots).
struct ThroughSlots {
  struct Term {
    Bounded x;
    double lost = 0;
  };
  std::vector<Term> written, decayed;

  explicit ThroughSlots(const GsaSlice& f)
      : written(f.slots.own ? f.slots.w.size() : 0), decayed(written.size()) {}

  void finish(const GsaSlice& f, const BoundModel& model, double inner, const Storage& stored,
              std::vector<ElementBound>& ds) const {
    const double n = f.roundings();
    for (int64_t m = 0; m < f.M; ++m) {
      Bounded Z;
      double lost = 0;
      for (int64_t t = f.T; t-- > 0;) {
        const size_t i = f.slot(t, m);
        if (t == 0) {
          ds[i] = stored.element(Z, lost, n);
          continue;
        }
        const double w = f.slots.w[i], w_error = f.slots.w_error[i], a = exponential(f.slots.g[i]),
                     a_error = a * model.decay_error(f.slots.g[i], f.slots.g_error[i]);
        const Bounded dw = written[i].x, dg = decayed[i].x;
        const Bounded met = (times(a, a_error, dw) + (Z - dg)).rounded(inner);
        const Bounded gradient = times(w, w_error, met).rounded(inner);
        lost += 4 * (written[i].lost + decayed[i].lost);
        ds[i] = stored.element(gradient, lost, n);
        const Bounded kept = (Z + times(-w, w_error, dw)).rounded(inner);
        Z = (times(a, a_error, kept) + times(w, w_error, dg)).rounded(inner);
      }
    }
  }
};

/// One run backwards over the tokens.
class Reverse {
 public:
  Reverse(const SliceProblem& p, const AdjointArithmetic& declared)
      : a_(declared),
        forward_(of_run(declared.state, p)),
        reverse_(of_run(declared.adjoint, p)),
        f_(p, forward_),
        Gk_(reverse_, f_.M, f_.K),
        Gv_(reverse_, f_.M, f_.V),
        states_(States(f_, forward_), f_.T, [this](int64_t t, States& h) { h.advance(f_, t - 1); }),
        Rk_(static_cast<size_t>(f_.T) + 1, 1 + largest_of(f_.Hk0)),
        Rv_(Rk_.size(), 1 + largest_of(f_.Hv0)),
        stored_(forward_.output_roundoff, dtype_of(p, {"v"})),
        of_g_(declared.gate_output_roundoff, dtype_of(p, {"g"})),
        through_(f_),
        n_(f_.roundings()) {
    const bool decaying = f_.slots.own || decays(p, "g"), exact = claims_exact(declared);
    value_readout_ = a_.value_readout + (decaying ? a_.value_readout_decayed * (1 + a_.value_readout) : 0);
    gate_readout_ = a_.gate_readout + (decaying ? a_.gate_readout_decayed * (1 + a_.gate_readout) : 0);
    flushed_ = kUnderflowEvents * std::fmax(underflow_of(forward_, exact), underflow_of(reverse_, exact)) *
               path_inflation(forward_, f_.T) * path_inflation(reverse_, f_.T) * (1 + gate_readout_);
    const SliceMatrix &dHk = p.cotangents[Out::hkt], &dHv = p.cotangents[Out::hvt];
    Gk_.load(transposed(dHk)), Gv_.load(dHv.values);
    if (f_.T > 0) Gk_.step_initial(), Gv_.step_initial();
    Q_ = 1 + largest_of(dHk) + largest_of(dHv);
    for (int64_t t = 0; t < f_.T; ++t) {
      const auto i = static_cast<size_t>(t);
      Rk_[i + 1] = Rk_[i] + f_.one_plus_written(t) * one_plus_largest(f_.k, t);
      Rv_[i + 1] = Rv_[i] + f_.one_plus_written(t) * one_plus_largest(f_.v, t);
    }
    for (const SliceMatrix& m : p.inputs) y_.emplace_back(m.values.size());
  }
  Reverse(const Reverse&) = delete;

  SliceBounds run() {
    for (int64_t t = f_.T; t-- > 0;) token(t);
    if (f_.slots.own) {
      through_.finish(f_, BoundModel(forward_), a_.inner, stored_, y_[In::s]);
      y_[In::g].assign(y_[In::g].size(), {});
    }
    const double of_state = f_.T == 0 ? 0 : unless_over(Q_, flushed_ * Q_);
    y_[In::hk0] = stored_state(Gk_, true, of_state, n_), y_[In::hv0] = stored_state(Gv_, false, of_state, n_);
    return std::move(y_);
  }

 private:
  /// dy = scale p (dp - p . dp), as it enters Gk.
  struct Between {
    std::vector<double> dy, error;
  };
  Between between(const States& h, const Weights& w, int64_t t) const {
    const auto M = static_cast<size_t>(f_.M);
    std::vector<Bounded> dp(M);
    Bounded mean;
    for (size_t m = 0; m < M; ++m) {
      const double* d_o = f_.row(f_.p.cotangents[Out::o], t);
      dp[m] = row_product(h.Hv, static_cast<int64_t>(m), d_o, nullptr).rounded(a_.inner);
      mean.value += w.p[m] * dp[m].value, mean.P += w.p[m] * dp[m].P;
      mean.E += (w.p[m] + w.error[m]) * dp[m].E + w.error[m] * dp[m].P;
    }
    mean = mean.rounded(a_.inner);
    Between y{std::vector<double>(M), std::vector<double>(M)};
    const double scale = std::fabs(f_.scale), n = gamma(n_, kDoubleRoundoff);
    for (size_t m = 0; m < M; ++m) {
      Bounded difference = dp[m] - mean;
      difference.E += n * difference.P;  // of the double that stands for it
      difference = difference.rounded(a_.inner);
      y.dy[m] = f_.scale * w.p[m] * difference.value;
      const double error = scale * ((w.p[m] + w.error[m]) * difference.E +
                                    w.error[m] * (std::fabs(difference.value) + n * difference.P));
      y.error[m] = error + a_.inner * (std::fabs(y.dy[m]) + error);
    }
    return y;
  }

  void token(int64_t t) {
    const States after = states_.at(t + 1), &before = states_.at(t);
    const auto step = static_cast<size_t>(t) + 1;
    const double spread = (1 + std::fabs(f_.scale)) * ones_plus_sum(f_.q, t) * Rk_[step];
    const Weights w = after.weights(f_, forward_, t, unless_over(spread, flushed_ * spread));
    const Between dy = between(after, w, t);
    const double d = ones_plus_sum(f_.p.cotangents[Out::o], t), slots = static_cast<double>(f_.M);
    // Every term of dy meets S, do and at most two weights p <= 1.
    const double dy_spread = 4 * slots * (1 + std::fabs(f_.scale)) * d * Rv_[step];
    Q_ += d + one_plus_largest(f_.q, t) * dy_spread;
    widest_ = Q_ * (Rk_[step] + Rv_[step]) * ones_plus_sum(f_.k, t) * ones_plus_sum(f_.v, t) *
              f_.ones_plus_written(t) * ones_plus_sum(f_.q, t);
    for (int64_t m = 0; m < f_.M; ++m) {
      const auto i = static_cast<size_t>(m);
      Gv_.write(m, w.p[i], w.error[i], f_.row(f_.p.cotangents[Out::o], t), nullptr);
      Gk_.write(m, dy.dy[i], dy.error[i], f_.row(f_.q, t), nullptr);
    }
    for (int64_t c = 0; c < f_.K; ++c) {
      const auto i = static_cast<size_t>(t * f_.K + c);
      const Bounded dq = column_product(after.Hk, c, dy.dy.data(), dy.error.data());
      y_[In::q][i] = stored_.element(dq.rounded(forward_.readout), lost(slots * Rk_[step] * dy_spread), n_);
      y_[In::k][i] = of_written(Gk_, c, t, reverse_.readout);
    }
    for (int64_t j = 0; j < f_.V; ++j)
      y_[In::v][static_cast<size_t>(t * f_.V + j)] = of_written(Gv_, j, t, value_readout_);
    for (int64_t m = 0; m < f_.M; ++m) slot(before, t, m);
    if (Gk_.chunk_starts(t)) Gk_.end_chunk(), Gv_.end_chunk();
  }

  double lost(double reach) const { return unless_over(widest_, flushed_ * reach); }

  /// dk or dv of a channel: G^T times what is written.
  ElementBound of_written(const DiagonalState& G, int64_t channel, int64_t t, double readout) const {
    const Bounded x = column_product(G, channel, f_.written(t), f_.written_error(t)).rounded(readout);
    return stored_.element(x, lost(Q_ * f_.ones_plus_written(t)), n_);
  }

  /// ds and dg of one slot, whose adjoints then cross the token.
  void slot(const States& before, int64_t t, int64_t m) {
    const auto i = static_cast<size_t>(t * f_.M + m), step = static_cast<size_t>(t) + 1;
    const Bounded of_values = row_product(Gv_, m, f_.row(f_.v, t), nullptr),
                  of_keys = row_product(Gk_, m, f_.row(f_.k, t), nullptr);
    const Bounded ds = (of_values + of_keys).rounded(reverse_.readout);
    const double g = f_.slots.g[i], g_error = f_.slots.g_error[i], weight = exponential(g);
    const double crossed =
        std::fmax(before.Hv.model().decay_error(g, g_error), Gv_.model().decay_error(g, g_error));
    const Bounded dg = (row_overlap(before.Hv, Gv_, m, weight) + row_overlap(before.Hk, Gk_, m, weight))
                           .rounded(crossed + (1 + crossed) * gate_readout_);
    const double lost_s = lost(Q_ * (ones_plus_sum(f_.v, t) + ones_plus_sum(f_.k, t))),
                 lost_g = lost(Q_ * (Rk_[step] + Rv_[step]) * static_cast<double>(f_.K + f_.V));
    y_[In::s][i] = stored_.element(ds, lost_s, n_);
    y_[In::g][i] = of_g_.element(dg, lost_g, n_);
    if (f_.slots.own) through_.written[i] = {ds, lost_s}, through_.decayed[i] = {dg, lost_g};
    Gv_.cross(m, g, g_error), Gk_.cross(m, g, g_error);
  }

  const AdjointArithmetic& a_;
  const Arithmetic forward_, reverse_;
  const GsaSlice f_;
  DiagonalState Gk_, Gv_;  ///< M x K, M x V
  StateHistory<States> states_;
  std::vector<double> Rk_, Rv_;  ///< per number of tokens: 1 + the largest |Hk|, |Hv| by absolute sums
  const Storage stored_, of_g_;
  ThroughSlots through_;
  const double n_;
  double value_readout_, gate_readout_, flushed_, Q_;
  double widest_ = 0;  ///< at the token: at least every intermediate on the way to its gradients
  SliceBounds y_;
};

}  // namespace

SliceBounds Gsa::adjoint_bound(const SliceProblem& p) {
  return Reverse(p, p.problem->adjoint).run();
}

}  // namespace assay
