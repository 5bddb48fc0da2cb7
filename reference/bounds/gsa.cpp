// The bounds of gated slot attention. Hk (kept as its transpose, M x K) and Hv (M x V) are states with one
// decay per slot (bound.h), with companions P and excesses E.
//
// Softmax. y_m carries delta_m = scale sum_c |q_c| (E + logits (P + E)). The kernel's exponent y_m - c, c
// near the largest y, is further off by logits_per_nat |y_m - c|: at most eta_m in all. Its weights are
//   p^_m = s_m (1 + d_m),  |d_m| <= divide,  s_m = p_m e^{a_m} / sum_j p_j e^{a_j},  |a_m| <= eta_m,
// p the exact ones. s_m / p_m = 1 / (p_m + sum_{j != m} p_j e^{a_j - a_m}) falls with every a_j and grows
// with a_m, so that it lies between its values at the ends,
//   1 / (p_m + sum_{j != m} p_j e^{eta_j + eta_m})   and   1 / (p_m + sum_{j != m} p_j e^{-eta_j - eta_m}),
// and within 1: |s_m - p_m| <= r_m <= 1. A weight near 1 hardly moves, however far off its logit is.
//   What weights say of numbers x_m: both p and s sum to 1, so that with x = sum_m p_m x_m
//   | sum_m (s_m - p_m) x_m | = | sum_m (s_m - p_m) (x_m - x) | <= D = sum_m r_m |x_m - x|.
// Also, on the way s(h) from p to s, with h a in place of a, 0 <= h <= 1, the sum's derivative is
// sum_m s_m(h) a_m (x_m - x(h)), x(h) the sum there, |x(h) - x| <= D by the same inequality for h a, and
// s_m(h) <= S_m = p_m + r_m: the sum moves by at most sum_m S_m eta_m (|x_m - x| + D). Of both the
// smaller, move(x). A kernel's numbers x_m + e_m then give
//   | sum_m p^_m (x_m + e_m) - x | <= move(x) + divide sum_m S_m |x_m| + sum_m (1 + divide) S_m |e_m|.
// So o = Hv^T p, before its `readout`.
//
// Backward (bound_adjoint.h): dp = Hv do, each one number; then b = p . dp, dp - b and dy = scale p (dp - b),
// all with `inner`; p do and q dy enter Gv and Gk with the errors of p and dy. dp_m is off by e_m, and
//   dp_m + e_m - sum_j p^_j (dp_j + e_j) = (dp_m - b) - sum_j (s_j - p_j) dp_j
//       + (1 - s_m) e_m - sum_{j != m} s_j e_j - sum_j s_j d_j (dp_j + e_j)
// with move(dp) for the second term and s_m at its least before e_m: where one slot has all the weight little
// is left of both. dq = Hk dy has the state's readout; dk = Gk s the adjoint's; dv = Gv^T s `value_readout`;
// ds, the sum of Gv v and Gk^T k, the adjoint's; dg `gate_readout`. In a product with numbers that are off
// the state's value carries their error, and its companion only roundings.
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
  OwnError own;

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
        slots(s, g, a),
        own(roundings(), a, T) {}
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
  /// What the slots of t's chunk decay by, at most, as `model` counts chunks.
  double nats(const BoundModel& model, int64_t t) const {
    const int64_t chunk = model.scaled_chunk();
    if (chunk == 0) return HUGE_VAL;
    const int64_t first = t / chunk * chunk, end = std::min(first + chunk, T);
    double widest = 0;
    for (int64_t m = 0; m < M; ++m) {
      double sum = 0;
      for (int64_t s = first; s < end; ++s) sum += std::fabs(slots.g[slot(s, m)]) + slots.g_error[slot(s, m)];
      widest = std::fmax(widest, sum * (1 + 0x1p-30));
    }
    return widest;
  }
  /// What weights inside chunks may be above 1 (bound.h, underflow).
  double prefix_inflation(const BoundModel& model) const {
    double widest = 1;
    for (int64_t t = 0; model.scaled_chunk() > 0 && t < T; t += model.scaled_chunk())
      widest = std::fmax(widest, model.inflation_of_prefix(nats(model, t)));
    return widest;
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

/// Weights p, and how far a kernel's may be from each: r, eta, the least s and the largest p^ of above.
struct Weights {
  std::vector<double> p, error, r, eta, least, most;
  double divide = 0, lost = 0;

  explicit Weights(size_t M) : p(M), error(M), r(M), eta(M), least(M), most(M) {}

  /// Of p and eta. `lost`: what underflow takes from a weight.
  void bound(double declared, double underflow) {
    divide = declared, lost = underflow;
    constexpr double raise = 1 + 0x1p-40;
    double lower = 0, upper = 0;
    for (size_t m = 0; m < p.size(); ++m) lower += p[m] * std::exp(-eta[m]), upper += p[m] * std::exp(eta[m]);
    for (size_t m = 0; m < p.size(); ++m) {
      // Sums of the others by difference: doubles of at most `upper`, of which 2^-44 is more than they lose.
      const double less = std::fmax(0, lower - p[m] * std::exp(-eta[m]) - 0x1p-44 * lower),
                   greater = upper - p[m] * std::exp(eta[m]) + 0x1p-44 * upper,
                   above = 1 / (p[m] + less * std::exp(-eta[m])) * raise,
                   below = 1 / (p[m] + greater * std::exp(eta[m])) / raise;
      // Also where a logit says nothing, then also as NaN; a weight that is 0 here is less than any double.
      const double largest = std::fmin(1, std::fmax(p[m], 0x1p-1074) * above);
      least[m] = below > 0 ? std::fmin(p[m], p[m] * below) : 0;
      most[m] = (1 + divide) * largest + lost;
      error[m] = std::fmax(most[m] - p[m], p[m] - least[m] * (1 - divide)) + lost + 0x1p-50 * p[m];
      r[m] = std::fmax(largest - p[m], p[m] - least[m]) + 0x1p-44 * p[m];
    }
  }
  /// move(x) from D and sum_m S_m eta_m |x_m - x|.
  double move(double D, double along) const {
    double eta_sum = 0;
    for (size_t m = 0; m < p.size(); ++m) eta_sum += most[m] * eta[m];
    return std::fmin(D, along + eta_sum * D) * (1 + 0x1p-40);
  }
};

struct States {
  DiagonalState Hk, Hv;    ///< M x K, M x V
  double nats = HUGE_VAL;  ///< of the chunk, where something asks for it

  States(const GsaSlice& f, const Arithmetic& a) : Hk(a, f.M, f.K), Hv(a, f.M, f.V) {
    Hk.load(transposed(f.Hk0)), Hv.load(f.Hv0.values);
  }
  /// The token t, counted from 0; what is read there sees the state before it is stored.
  void advance(const GsaSlice& f, int64_t t) {
    if (t > 0) pass(f, t);
    const BoundModel& model = Hk.model();
    if (model.scaled_chunk() > 0 && t % model.scaled_chunk() == 0) {
      nats = f.nats(model, t);
      Hk.in_chunk(nats), Hv.in_chunk(nats);
    }
    const GsaSlots& x = f.slots;
    for (int64_t m = 0; m < f.M; ++m) {
      const size_t i = f.slot(t, m);
      Hk.advance(m, x.g[i], x.w[i], x.w_error[i], f.row(f.k, t), nullptr, x.g_error[i]);
      Hv.advance(m, x.g[i], x.w[i], x.w_error[i], f.row(f.v, t), nullptr, x.g_error[i]);
    }
  }
  void pass(const GsaSlice& f, int64_t tokens) { Hk.pass(tokens, f.T), Hv.pass(tokens, f.T); }
  /// softmax(scale Hk^T q_t); `lost` is what underflow does to a logit.
  Weights weights(const GsaSlice& f, const Arithmetic& a, int64_t t, double lost) const {
    const auto M = static_cast<size_t>(f.M);
    Weights w(M);
    std::vector<double> y(M), &eta = w.eta;
    double largest = -HUGE_VAL, sum = 0;
    std::vector<double> reads(f.row(f.q, t), f.row(f.q, t) + f.K);
    for (double& q : reads) q *= f.scale;
    for (size_t m = 0; m < M; ++m) {
      const Bounded logit = row_product(Hk, static_cast<int64_t>(m), reads.data(), nullptr).rounded(a.logits);
      y[m] = logit.value;
      // The double y itself is off by some roundings of its companion.
      eta[m] = logit.E + lost + f.own.of(logit);
      largest = std::fmax(largest, y[m]);
    }
    for (size_t m = 0; m < M; ++m) {
      eta[m] += a.logits_per_nat * (largest - y[m] + 2 * eta[m]);
      sum += w.p[m] = std::exp(y[m] - largest);
    }
    for (double& p : w.p) p /= sum;
    w.bound(a.divide, lost);
    return w;
  }
};

/// sum_m p_m Hv_mj.
Bounded weighed(const GsaSlice& f, const DiagonalState& Hv, const Weights& w, int64_t j) {
  Bounded y, all;
  double D = 0, along = 0, sizes = 0, values = 0;
  const auto at = [&](size_t m) { return Hv.at(static_cast<int64_t>(m)) + static_cast<size_t>(j); };
  for (size_t m = 0; m < w.p.size(); ++m) y.value += w.p[m] * Hv.S[at(m)];
  for (size_t m = 0; m < w.p.size(); ++m) {
    const double x = Hv.S[at(m)], off = std::fabs(x - y.value);
    D += w.r[m] * off, along += w.most[m] * w.eta[m] * off;
    sizes += w.most[m] * std::fabs(x), values += std::fabs(x), all.P += w.most[m] * Hv.P[at(m)],
        all.E += w.most[m] * Hv.E[at(m)];
  }
  y.P = all.P;
  y.E = w.move(D, along) + w.divide * sizes + w.lost * values + all.E + 4 * f.own.of(all);
  return y;
}

}  // namespace

SliceBounds Gsa::forward_bound(const SliceProblem& p) {
  const bool exact = claims_exact(p.problem->arithmetic);
  const Arithmetic a = of_run(p.problem->arithmetic, p);
  const GsaSlice f(p, a);
  const double flushed =
      kUnderflowEvents * underflow_of(a, exact) * path_inflation(a, f.T) * f.prefix_inflation(BoundModel(a));
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
      const Bounded o = weighed(f, h.Hv, w, j).rounded(h.Hv.model().read_out(h.nats));
      y[Out::o].push_back(of_o.element(o, lost, f.roundings()));
    }
  }
  if (f.T > 0) h.pass(f, f.T);
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
    value_scaled_ = decaying ? a_.value_readout_scaled : 0;
    gate_readout_ = a_.gate_readout + (decaying ? a_.gate_readout_decayed * (1 + a_.gate_readout) : 0);
    flushed_ = kUnderflowEvents * std::fmax(underflow_of(forward_, exact), underflow_of(reverse_, exact)) *
               path_inflation(forward_, f_.T) * path_inflation(reverse_, f_.T) *
               f_.prefix_inflation(BoundModel(forward_)) * f_.prefix_inflation(BoundModel(reverse_)) *
               (1 + gate_readout_) * (1 + value_scaled_);
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
    std::vector<double> dp(M), e(M);
    double mean = 0, own = 0, D = 0, along = 0, errors = 0, sizes = 0, values = 0;
    for (size_t m = 0; m < M; ++m) {
      const double* d_o = f_.row(f_.p.cotangents[Out::o], t);
      const Bounded x = row_product(h.Hv, static_cast<int64_t>(m), d_o, nullptr);
      dp[m] = x.value, e[m] = x.rounded(a_.inner).E + f_.own.of(x), own = std::fmax(own, f_.own.of(x));
      mean += w.p[m] * dp[m];
    }
    for (size_t m = 0; m < M; ++m) {
      const double off = std::fabs(dp[m] - mean);
      D += w.r[m] * off, along += w.most[m] * w.eta[m] * off;
      errors += w.most[m] * e[m], sizes += w.most[m] * (std::fabs(dp[m]) + e[m]);
      values += std::fabs(dp[m]) + e[m];
    }
    // 4 own: of the doubles dp, their mean, and twice what D is made of.
    const double common = w.move(D, along) + (w.divide + a_.inner) * sizes + w.lost * values + 4 * own;
    Between y{std::vector<double>(M), std::vector<double>(M)};
    const double scale = std::fabs(f_.scale);
    for (size_t m = 0; m < M; ++m) {
      const double value = dp[m] - mean,
                   of_others = std::fmax(0, errors - w.most[m] * e[m]) + 0x1p-44 * errors,
                   own_error = (1 - w.least[m] + 0x1p-44) * e[m], moved = common + own_error + of_others,
                   off = moved + a_.inner * (std::fabs(value) + moved);
      y.dy[m] = f_.scale * w.p[m] * value;
      const double error = scale * (w.most[m] * off + w.error[m] * (std::fabs(value) + 2 * own));
      y.error[m] = error + a_.inner * (std::fabs(y.dy[m]) + error) + 0x1p-48 * std::fabs(y.dy[m]);
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
    const BoundModel& model = Gv_.model();
    const int64_t chunk = model.scaled_chunk();
    if (chunk > 0 && (t == f_.T - 1 || (t + 1) % chunk == 0)) {
      nats_ = f_.nats(model, t);
      Gv_.in_chunk(nats_), Gk_.in_chunk(nats_);
    }
    const double read_out = model.read_out(nats_),
                 scaled = model.scaled_error(value_scaled_, a_.value_readout_decayed, nats_),
                 of_values = value_readout_ + (1 + value_readout_) * scaled;
    for (int64_t m = 0; m < f_.M; ++m) {
      const auto i = static_cast<size_t>(m);
      Gv_.write(m, w.p[i], w.error[i], f_.row(f_.p.cotangents[Out::o], t), nullptr);
      Gk_.write(m, dy.dy[i], dy.error[i], f_.row(f_.q, t), nullptr);
    }
    for (int64_t c = 0; c < f_.K; ++c) {
      const auto i = static_cast<size_t>(t * f_.K + c);
      const Bounded dq = column_product(after.Hk, c, dy.dy.data(), dy.error.data());
      y_[In::q][i] = stored_.element(dq.rounded(after.Hk.model().read_out(after.nats)),
                                     lost(slots * Rk_[step] * dy_spread), n_);
      y_[In::k][i] = of_written(Gk_, c, t, read_out);
    }
    for (int64_t j = 0; j < f_.V; ++j)
      y_[In::v][static_cast<size_t>(t * f_.V + j)] = of_written(Gv_, j, t, of_values);
    if (t > 0 && before.Hk.passes(t)) {
      States stored = before;
      stored.pass(f_, t);
      for (int64_t m = 0; m < f_.M; ++m) slot(stored, t, m);
    } else {
      for (int64_t m = 0; m < f_.M; ++m) slot(before, t, m);
    }
    Gk_.pass(t, f_.T), Gv_.pass(t, f_.T);
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
    const Bounded ds = (of_values + of_keys).rounded(Gv_.model().read_out(nats_));
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
  double value_readout_, value_scaled_, gate_readout_, flushed_, Q_;
  double nats_ = HUGE_VAL;  ///< of the chunk, where something asks for it
  double widest_ = 0;       ///< at the token: at least every intermediate on the way to its gradients
  SliceBounds y_;
};

}  // namespace

SliceBounds Gsa::adjoint_bound(const SliceProblem& p) {
  return Reverse(p, p.problem->adjoint).run();
}

}  // namespace assay
