// The bounds of the delta rules that read after the decay (delta_transition.h), norm by norm: the recurrence
// of norm_recurrence.h with D_t = diag(e^{g_t}) and
//   S:  y = D k, x = -beta k, `written` = beta k: what is read has decayed
//   G:  y = beta k, x = -D k: what is taken away decays afterwards
// Its norm: I - beta k k^T is symmetric, of eigenvalues 1 (where K > 1) and 1 - beta |k|^2, so that
//   rho_t <= max e^g max(1, |1 - beta |k|^2|):
// at most 1 with beta in [0, 2] and |k| <= 1, and nowhere less than what a decay alone leaves, on which
// delta_tile.h rests. With longer keys it is what it is, and so is the bound.
//
// What `arithmetic.def` calls removal covers k beta (k^T S'): the sum over key channels, the subtraction from
// v, the products with beta and k; write covers k beta v: the subtraction, these products; step the state
// after a token. Outputs: |o^ - o| <= |scale| ( ||q|| e_t (1 + readout) + readout |q|^T |S_t| ).
//
// Gradients, with E and F what S and G are off by, and `inner` for each step between the two recurrences:
//   r = v - S'^T k        `inner` of |v| + |k|^T |S'|, and |k| |E| of the decayed E, its decay's error too
//   du = G^T k            `inner`         u = beta r, dr = beta du: as r and du, a product more in `inner`
//   dbeta = du . r        `inner` once more; of a value channel du r
//   dv = dr               `value_readout` in place of `inner`
//   dk = G u - S' dr      the adjoint's readout, of both sums together
//   dg = <S', G - k dr^T> `inner` for the difference, `gate_readout` for the sum
//   dq as o, by the state's readout
// each per the sum of its paths, which in chunks begin at the chunk's start (chunk_walk.h), else per |S|,
// |G|. Gradients of queries and keys that several value heads share have `total` beyond that.
//
// With `gate_sums` dg is made otherwise. Let G+_t be what later tokens leave of G between t and t + 1. Then
//   <S_t, G_t> = <S'_t, G_t> + k . G u = <S_t, G+_t> + q . dq,    <S_t, G+_t> = dg_t+1, so that
//   dg_t = sum_s [ q_s . dq_s - k_s . (G u)_s - k_s . (S' dr)_s ] + <S_e, G+_e>,   s = t .. e, e the last
// of the chunk, which is off by at most |q| times what dq is off by before it is stored, |k| times what both
// parts of dk are, what the product of the states is, and `gate_sums` of the magnitudes of all of them. Terms
// of later tokens cancel in dg; their errors do not.
#include <numeric>

#include "reference/bounds/delta_chunk.h"
#include "reference/operators/delta_rule.h"
#include "reference/operators/gated_delta_rule.h"
#include "reference/operators/kda.h"

namespace assay {
namespace {

enum : size_t { kO, kFinalState };

SliceBounds forward_bounds(const SliceProblem& p, const DeltaPlaces& places) {
  const DeltaSlice f(p, places);
  const Arithmetic a = arithmetic_of_run(p.problem->arithmetic, f.decaying);
  const double underflow = underflow_of(a, claims_exact(a));
  const Storage of_o(a.output_roundoff, dtype_of(p, {"v"}));
  DeltaStates states(f, a, underflow);
  NormState s = states.start(f.S0.values);
  SliceBounds y(2);
  for (int64_t t = 0; t < f.T; ++t) {
    states.advance(t, s);
    const double size = norm(row(f.q, t), f.K) * std::fabs(p.scale);
    const double lost = kUnderflowEvents * underflow * (1 + std::fabs(p.scale)) * ones_plus_sum(f.q, t);
    for (int64_t j = 0; j < f.V; ++j) {
      const auto i = static_cast<size_t>(j);
      NormSum o;
      double excess = 0;
      for (int64_t c = 0; c < f.K; ++c) {
        const NormEntry entry = column_entry(s, c, j);
        o.add({p.scale * at(f.q, t, c)}, entry), excess += std::fabs(p.scale * at(f.q, t, c)) * entry.error;
      }
      o.error = size * s.declared[i] + excess;
      y[kO].push_back(store(of_o, o.rounded(a.readout), lost, f.K));
    }
  }
  states.finish(s);
  y[kFinalState] = stored_state(s);
  return y;
}

/// One run backwards over the tokens.
class Reverse {
 public:
  Reverse(const SliceProblem& p, const DeltaPlaces& places)
      : d_(p.problem->adjoint),
        f_(p, places),
        forward_(arithmetic_of_run(d_.state, f_.decaying)),
        reverse_(arithmetic_of_run(d_.adjoint, f_.decaying)),
        of_S_(forward_),
        of_G_(reverse_),
        underflow_(std::fmax(underflow_of(forward_, claims_exact(forward_)),
                             underflow_of(reverse_, claims_exact(reverse_)))),
        d_o_(p.cotangents[kO]),
        states_(f_, forward_, underflow_),
        adjoints_(f_, d_o_, reverse_, underflow_),
        S_(states_.start(f_.S0.values), f_.T, [this](int64_t t, NormState& s) { states_.advance(t - 1, s); }),
        G_(adjoints_.start(p.cotangents[kFinalState].values)),
        stored_(forward_.output_roundoff, dtype_of(p, {"v"})),
        of_g_(d_.gate_output_roundoff, dtype_of(p, {"g"})) {
    for (const SliceMatrix& m : p.inputs) y_.emplace_back(m.values.size());
  }
  Reverse(const Reverse&) = delete;

  SliceBounds run() {
    for (int64_t t = f_.T; t-- > 0;) token(t);
    adjoints_.finish(G_);
    y_[f_.at.initial_state] = stored_state(G_);
    return std::move(y_);
  }

 private:
  void token(int64_t t) {
    const NormState after = S_.at(t + 1), before = states_.found_by(t, S_.at(t));
    if (ends_sums(t)) begin_sums(after);
    adjoints_.read_out(t, G_);
    const DeltaFactors now(f_, t);
    lost_ = lost_at(t, now, before, after), sums_.lost += lost_;
    const Passed passed = passed_at(t, now, before);
    rates(t, passed);
    NormSum of_head;
    for (int64_t c = 0; c < f_.K; ++c) key_channel(t, c, now, before, after, passed, of_head);
    if (f_.at.gated && f_.p.inputs[f_.at.g].columns != f_.K) store_gate(static_cast<size_t>(t), of_head);
    adjoints_.advance(t, G_);
  }

  /// What underflow takes from a gradient of token t.
  double lost_at(int64_t t, const DeltaFactors& now, const NormState& before, const NormState& after) const {
    const double reach =
        (1 + std::fabs(f_.p.scale)) * ones_plus_sum(f_.q, t) * ones_plus_sum(d_o_, t) * now.reach * now.reach;
    double most = 1;
    for (size_t n = 0; n < G_.S.size(); ++n)
      most = std::fmax(most,
                       std::fmax(std::fabs(G_.S[n]) * (1 + std::fabs(before.S[n])), std::fabs(after.S[n])));
    return unless_over(reach * most, kUnderflowEvents * underflow_ * reach * most);
  }

  double of_run(double readout, double decayed) const {
    return readout + (f_.decaying ? decayed * (1 + readout) : 0);
  }
  double crossed(double g) const { return std::fmax(of_S_.decay_error(g), of_G_.decay_error(g)); }
  double total(double readout) const { return f_.grouped() ? readout + d_.total * (1 + readout) : readout; }

  /// What passes between the two recurrences at a token, of each value channel.
  struct Passed {
    std::vector<NormEntry> r, u, du, dr;
  };
  Passed passed_at(int64_t t, const DeltaFactors& now, const NormState& before) {
    Passed y;
    const double decayed_norm = norm(now.decayed.data(), f_.K), key_norm = norm(row(f_.k, t), f_.K);
    double widest = 0;
    std::vector<double> crossings;
    for (double g : now.g) crossings.push_back(crossed(g)), widest = larger(widest, crossings.back());
    const double readout = of_run(d_.value_readout, d_.value_readout_decayed);
    for (int64_t j = 0; j < f_.V; ++j) {
      const auto n = static_cast<size_t>(j);
      NormSum r, du;
      r.add({1}, {at(f_.v, t, j)});
      double moved = 0, pulled = 0;
      for (int64_t c = 0; c < f_.K; ++c) {
        const auto i = static_cast<size_t>(c);
        const NormEntry old = column_entry(before, c, j), g = column_entry(G_, c, j);
        r.add({now.minus_decayed[i]}, old), du.add({at(f_.k, t, c)}, g);
        const double crossing = crossings[i], key = std::fabs(at(f_.k, t, c));
        moved += std::fabs(now.decayed[i]) * (old.size() * crossing + old.error * (1 + crossing));
        pulled += key * g.error;
      }
      r.error = decayed_norm * before.declared[n] * (1 + widest) + moved;
      du.error = key_norm * G_.declared[n] + pulled + adjoints_.residual(t, j);
      const double rate = now.rates[n];
      const NormSum dr{rate * du.value, std::fabs(rate) * du.own, std::fabs(rate) * du.magnitude,
                       std::fabs(rate) * du.error};
      y_[f_.at.v][static_cast<size_t>(t * f_.V + j)] = store(stored_, dr.rounded(readout), lost_, f_.K);
      y.r.push_back(r.rounded(d_.inner).entry()), y.du.push_back(du.rounded(d_.inner).entry());
      NormEntry u = times(rate, y.r.back());
      u.error += states_.residual(t, j);
      y.u.push_back(u), y.dr.push_back(dr.rounded(d_.inner).entry());
    }
    return y;
  }

  void rates(int64_t t, const Passed& passed) {
    const SliceMatrix &beta = f_.p.inputs[f_.at.beta], &channels = f_.p.inputs[f_.at.beta_v];
    const double of_head = beta.present ? at(beta, t, 0) : 1;
    NormSum sum;
    for (int64_t j = 0; j < f_.V; ++j) {
      const auto n = static_cast<size_t>(j);
      const double of_channel = channels.present ? at(channels, t, j) : 1;
      NormSum one;
      one.add(times(of_head, passed.du[n]), passed.r[n]),
          sum.add(times(of_channel, passed.du[n]), passed.r[n]);
      y_[f_.at.beta_v][static_cast<size_t>(t * f_.V + j)] =
          store(stored_, one.rounded(d_.inner), lost_, f_.K);
    }
    y_[f_.at.beta][static_cast<size_t>(t)] = store(stored_, sum.rounded(d_.inner), lost_, f_.V);
  }

  /// dq, dk and dg of one key channel; its part of dg where that is the head's.
  void key_channel(int64_t t, int64_t c, const DeltaFactors& now, const NormState& before,
                   const NormState& after, const Passed& passed, NormSum& of_head) {
    NormSum dq, dk, dg;
    const auto n = static_cast<size_t>(c);
    const double weight = exponential(now.g[n]), key = at(f_.k, t, c), moved = crossed(now.g[n]);
    for (int64_t j = 0; j < f_.V; ++j) {
      const auto i = static_cast<size_t>(j);
      const NormEntry g = whole_entry(G_, c, j);
      NormEntry old = times(weight, whole_entry(before, c, j));
      old.error += moved * (old.size() + old.error);
      dq.add({f_.p.scale * at(d_o_, t, j)}, whole_entry(after, c, j));
      dk.add(passed.u[i], g), dk.add(times(-1, passed.dr[i]), old);
      NormSum left;
      left.add({1}, g), left.add({-key}, passed.dr[i]);
      dg.add(old, left.rounded(d_.inner).entry()), of_head.add(old, left.rounded(d_.inner).entry());
    }
    const auto i = static_cast<size_t>(t * f_.K + c);
    if (d_.gate_sums > 0) add_to_sums(n, at(f_.q, t, c), dq, key, dk), dg.error = sums_.error[n];
    if (d_.gate_sums > 0) of_head.error = std::accumulate(sums_.error.begin(), sums_.error.end(), 0.0);
    y_[f_.at.q][i] = store(stored_, dq.rounded(total(forward_.readout)), lost_, f_.V);
    y_[f_.at.k][i] = store(stored_, dk.rounded(total(reverse_.readout)), lost_, f_.V);
    if (f_.at.gated && f_.p.inputs[f_.at.g].columns == f_.K) store_gate(i, dg);
  }
  void store_gate(size_t at, const NormSum& dg) {
    const double readout = of_run(d_.gate_readout, d_.gate_readout_decayed);
    if (d_.gate_sums > 0)
      y_[f_.at.g][at] = store(of_g_, dg, sums_.lost * static_cast<double>(f_.K), f_.K * f_.V + f_.K * f_.T);
    else
      y_[f_.at.g][at] = store(of_g_, dg.rounded(readout), lost_ * static_cast<double>(f_.K), f_.K * f_.V);
  }

  /// Is `t` the last token whose terms enter the sums of its chunk?
  bool ends_sums(int64_t t) const {
    return d_.gate_sums > 0 && (t + 1 == f_.T || (forward_.chunk > 0 && (t + 1) % forward_.chunk == 0));
  }
  /// From the product of the states at a chunk's end: S in all its paths or stored, G as it is stored there.
  void begin_sums(const NormState& after) {
    NormState later = G_, stored = after;
    adjoints_.finish(later), states_.finish(stored);
    sums_.error.assign(static_cast<size_t>(f_.K), 0), sums_.lost = 0;
    for (int64_t c = 0; c < f_.K; ++c) {
      NormSum product;
      double reach = 0;
      for (int64_t j = 0; j < f_.V; ++j) {
        NormEntry s = whole_entry(after, c, j);
        s.error = std::fmax(s.error, whole_entry(stored, c, j).error);
        const NormEntry g = whole_entry(later, c, j);
        product.add(s, g), reach += (1 + s.size()) * (1 + g.size());
      }
      sums_.error[static_cast<size_t>(c)] = product.rounded(d_.gate_sums).error;
      sums_.lost = std::fmax(sums_.lost, unless_over(reach, kUnderflowEvents * underflow_ * reach));
    }
  }
  /// The terms of a token's key channel.
  void add_to_sums(size_t c, double q, const NormSum& dq, double k, const NormSum& dk) {
    const NormSum read = dq.rounded(forward_.readout), written = dk.rounded(reverse_.readout);
    sums_.error[c] +=
        std::fabs(q) * read.rounded(d_.gate_sums).error + std::fabs(k) * written.rounded(d_.gate_sums).error;
  }

  const AdjointArithmetic& d_;
  const DeltaSlice f_;
  const Arithmetic forward_, reverse_;
  const BoundModel of_S_, of_G_;
  const double underflow_;
  const SliceMatrix& d_o_;
  DeltaStates states_;
  DeltaAdjoints adjoints_;
  StateHistory<NormState> S_;
  NormState G_;
  const Storage stored_, of_g_;
  double lost_ = 0;
  /// dg as a sum to its chunk's end: what it is off by so far, per key channel, and by underflow.
  struct {
    std::vector<double> error;
    double lost = 0;
  } sums_;
  SliceBounds y_;
};

}  // namespace

#define ASSAY_DELTA_BOUNDS(Op)                           \
  SliceBounds Op::forward_bound(const SliceProblem& p) { \
    return forward_bounds(p, delta_places<Op>());        \
  }                                                      \
  SliceBounds Op::adjoint_bound(const SliceProblem& p) { \
    return Reverse(p, delta_places<Op>()).run();         \
  }

ASSAY_DELTA_BOUNDS(DeltaRule)
ASSAY_DELTA_BOUNDS(GatedDeltaRule)
ASSAY_DELTA_BOUNDS(Kda)

}  // namespace assay
