// The bounds of rwkv7, norm by norm.
//
// S_t is the recurrence of norm_recurrence.h with x = b, y = a, k v written, so that
//   |o^ - o| <= scale ( ||r|| e_t (1 + readout) + readout |r|^T |S_t| ).
//
// Backward, G_t = dL/dS_t obeys the transposed recurrence, with f_t for e_t and `adjoint` for `state`; the
// sums G^T b and S^T a carry `inner`, and every gradient its own readout: dr the state's, dk the adjoint's,
// dv `value_readout`, dw `gate_readout`, da and db `inner` once more. In chunks (rwkv7_chunk.h) these are per
// the sums of their paths, which begin at the chunk's start, and decays along them may be off together.
#include "reference/operators/rwkv7.h"

#include "reference/bounds/rwkv7_chunk.h"

namespace assay {
namespace {

using In = Rwkv7::In;
using Out = Rwkv7::Out;

}  // namespace

SliceBounds Rwkv7::forward_bound(const SliceProblem& p) {
  const Rwkv7Slice f(p);
  const Arithmetic a = arithmetic_of_run(p.problem->arithmetic, decays(p, "w"));
  const double underflow = underflow_of(a, claims_exact(a));
  const Storage of_o(a.output_roundoff, dtype_of(p, {"v"}));
  Rwkv7States states(f, a, underflow);
  NormState s = states.start(f.S0.values);
  SliceBounds y(Out::count);
  for (int64_t t = 0; t < f.T; ++t) {
    states.advance(t, s);
    const double size = norm(row(f.r, t), f.K) * std::fabs(p.scale);
    const double lost = kUnderflowEvents * underflow * (1 + std::fabs(p.scale)) * ones_plus_sum(f.r, t);
    for (int64_t j = 0; j < f.V; ++j) {
      const auto i = static_cast<size_t>(j);
      NormSum o;
      for (int64_t c = 0; c < f.K; ++c) o.add({p.scale * at(f.r, t, c)}, column_entry(s, c, j));
      o.error += size * s.declared[i];
      y[Out::o].push_back(store(of_o, o.rounded(a.readout), lost, f.K));
    }
  }
  states.finish(s);
  y[Out::final_state] = stored_state(s);
  return y;
}

namespace {

/// One run backwards over the tokens.
class Reverse {
 public:
  Reverse(const SliceProblem& p, const AdjointArithmetic& declared)
      : d_(declared),
        decaying_(decays(p, "w")),
        forward_(arithmetic_of_run(declared.state, decaying_)),
        reverse_(arithmetic_of_run(declared.adjoint, decaying_)),
        underflow_(std::fmax(underflow_of(forward_, claims_exact(forward_)),
                             underflow_of(reverse_, claims_exact(reverse_)))),
        f_(p),
        d_o_(p.cotangents[Out::o]),
        states_(f_, forward_, underflow_),
        adjoints_(f_, d_o_, reverse_, underflow_),
        S_(states_.start(f_.S0.values), f_.T, [this](int64_t t, NormState& s) { states_.advance(t - 1, s); }),
        G_(adjoints_.start(p.cotangents[Out::final_state].values)),
        stored_(forward_.output_roundoff, dtype_of(p, {"v"})),
        of_w_(declared.gate_output_roundoff, dtype_of(p, {"w"})) {
    for (const SliceMatrix& m : p.inputs) y_.emplace_back(m.values.size());
  }
  Reverse(const Reverse&) = delete;

  SliceBounds run() {
    for (int64_t t = f_.T; t-- > 0;) token(t);
    adjoints_.finish(G_);
    y_[In::initial_state] = stored_state(G_);
    return std::move(y_);
  }

 private:
  void token(int64_t t) {
    const NormState after = S_.at(t + 1), before = states_.found_by(t, S_.at(t));
    adjoints_.read_out(t, G_);
    lost_ = lost_at(t, before, after);
    const Passed passed = passed_at(t, before);
    for (int64_t c = 0; c < f_.K; ++c) key_channel(t, c, before, after, passed);
    for (int64_t j = 0; j < f_.V; ++j) {
      NormSum dv;
      for (int64_t c = 0; c < f_.K; ++c) dv.add({at(f_.k, t, c)}, column_entry(G_, c, j));
      dv.error += norm(row(f_.k, t), f_.K) * G_.declared[static_cast<size_t>(j)];
      const double readout = of_run(d_.value_readout, d_.value_readout_decayed);
      y_[In::v][static_cast<size_t>(t * f_.V + j)] = store(stored_, dv.rounded(readout), lost_, f_.K);
    }
    adjoints_.advance(t, G_);
  }

  /// What underflow takes from a gradient of token t.
  double lost_at(int64_t t, const NormState& before, const NormState& after) const {
    const double reach = (1 + std::fabs(f_.p.scale)) * ones_plus_sum(f_.r, t) * ones_plus_sum(f_.k, t) *
                         ones_plus_sum(f_.v, t) * ones_plus_sum(f_.a, t) * ones_plus_sum(f_.b, t) *
                         ones_plus_sum(d_o_, t);
    double most = 1;
    for (size_t n = 0; n < G_.S.size(); ++n)
      most = std::fmax(most,
                       std::fmax(std::fabs(G_.S[n]) * (1 + std::fabs(before.S[n])), std::fabs(after.S[n])));
    return unless_over(reach * most, kUnderflowEvents * underflow_ * reach * most);
  }

  double of_run(double readout, double decayed) const {
    return readout + (decaying_ ? decayed * (1 + readout) : 0);
  }

  /// What passes between the two recurrences at a token: beta = G^T b and alpha = S^T a.
  struct Passed {
    std::vector<NormEntry> beta, alpha;
  };
  Passed passed_at(int64_t t, const NormState& before) const {
    Passed y;
    for (int64_t j = 0; j < f_.V; ++j) {
      const auto n = static_cast<size_t>(j);
      NormSum pull, read;
      for (int64_t c = 0; c < f_.K; ++c)
        pull.add({at(f_.b, t, c)}, column_entry(G_, c, j)),
            read.add({at(f_.a, t, c)}, column_entry(before, c, j));
      pull.error += norm(row(f_.b, t), f_.K) * G_.declared[n] + adjoints_.residual(t, j);
      read.error += norm(row(f_.a, t), f_.K) * before.declared[n] + states_.residual(t, j);
      y.beta.push_back(pull.rounded(d_.inner).entry()), y.alpha.push_back(read.rounded(d_.inner).entry());
    }
    return y;
  }

  /// dr, dw, dk, da and db of one key channel.
  void key_channel(int64_t t, int64_t c, const NormState& before, const NormState& after,
                   const Passed& passed) {
    NormSum dr, dw, dk, da, db;
    const double w = at(f_.w, t, c), weight = exponential(w);
    for (int64_t j = 0; j < f_.V; ++j) {
      const auto n = static_cast<size_t>(j);
      const NormEntry old = whole_entry(before, c, j), g = whole_entry(G_, c, j);
      dr.add({f_.p.scale * at(d_o_, t, j)}, whole_entry(after, c, j));
      dk.add({at(f_.v, t, j)}, g);
      da.add(old, passed.beta[n]), db.add(g, passed.alpha[n]);
      dw.add(times(weight, old), g);
    }
    const BoundModel s_model(forward_), g_model(reverse_);
    const double crossed = std::fmax(s_model.decay_error(w), g_model.decay_error(w));
    const double gate_readout = of_run(d_.gate_readout, d_.gate_readout_decayed);
    const auto i = static_cast<size_t>(t * f_.K + c);
    y_[In::r][i] = store(stored_, dr.rounded(forward_.readout), lost_, f_.V);
    y_[In::w][i] = store(of_w_, dw.rounded(crossed + (1 + crossed) * gate_readout), lost_, f_.V);
    y_[In::k][i] = store(stored_, dk.rounded(reverse_.readout), lost_, f_.V);
    y_[In::a][i] = store(stored_, da.rounded(d_.inner), lost_, f_.V);
    y_[In::b][i] = store(stored_, db.rounded(d_.inner), lost_, f_.V);
  }

  const AdjointArithmetic& d_;
  const bool decaying_;
  const Arithmetic forward_, reverse_;
  const double underflow_;
  const Rwkv7Slice f_;
  const SliceMatrix& d_o_;
  Rwkv7States states_;
  Rwkv7Adjoints adjoints_;
  StateHistory<NormState> S_;
  NormState G_;
  const Storage stored_, of_w_;
  double lost_ = 0;
  SliceBounds y_;
};

}  // namespace

SliceBounds Rwkv7::adjoint_bound(const SliceProblem& p) {
  return Reverse(p, p.problem->adjoint).run();
}

}  // namespace assay
