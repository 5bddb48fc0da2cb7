// The bounds of rwkv7, norm by norm.
//
// S_t is the recurrence of norm_recurrence.h with x = b, y = a, k v written, so that
//   |o^ - o| <= scale ( ||r|| e_t (1 + readout) + readout |r|^T |S_t| ).
//
// Backward, G_t = dL/dS_t obeys the transposed recurrence, with f_t for e_t and `adjoint` for `state`; the
// sums G^T b and S^T a carry `inner`, and every gradient its own readout: dr the state's, dk the adjoint's,
// dv `value_readout`, dw `gate_readout`, da and db `inner` once more.
#include "reference/operators/rwkv7.h"

#include "reference/bounds/norm_recurrence.h"
#include "reference/bounds/norm_wise.h"

namespace assay {
namespace {

using In = Rwkv7::In;
using Out = Rwkv7::Out;

struct Rwkv7Slice {
  const SliceProblem& p;
  const SliceMatrix &r, &w, &k, &v, &a, &b, &S0;
  int64_t T, K, V;

  explicit Rwkv7Slice(const SliceProblem& p)
      : p(p),
        r(p.inputs[In::r]),
        w(p.inputs[In::w]),
        k(p.inputs[In::k]),
        v(p.inputs[In::v]),
        a(p.inputs[In::a]),
        b(p.inputs[In::b]),
        S0(p.inputs[In::initial_state]),
        T(p.slice.tokens),
        K(r.columns),
        V(v.columns) {}
};

NormStep forward_step(const Rwkv7Slice& f, int64_t t) {
  return {row(f.w, t), row(f.b, t), row(f.a, t), row(f.k, t), row(f.v, t), 1};
}

std::vector<double> norms(const Rwkv7Slice& f) {
  std::vector<double> rho(static_cast<size_t>(f.T)), weights(static_cast<size_t>(f.K));
  for (int64_t t = 0; t < f.T; ++t) {
    for (int64_t c = 0; c < f.K; ++c) weights[static_cast<size_t>(c)] = exponential(at(f.w, t, c));
    rho[static_cast<size_t>(t)] = diagonal_plus_rank_one_norm(weights, row(f.a, t), row(f.b, t));
  }
  return rho;
}

}  // namespace

SliceBounds Rwkv7::forward_bound(const SliceProblem& p) {
  const Rwkv7Slice f(p);
  const Arithmetic a = arithmetic_of_run(p.problem->arithmetic, decays(p, "w"));
  const double underflow = underflow_of(a, claims_exact(a));
  const Storage of_o(a.output_roundoff, dtype_of(p, {"v"}));
  const std::vector<double> rho = norms(f);
  const NormRecurrence recurrence(f.K, f.V, a, underflow);
  NormState s = recurrence.start(f.S0.values);
  SliceBounds y(Out::count);
  for (int64_t t = 0; t < f.T; ++t) {
    recurrence.advance(forward_step(f, t), {rho[static_cast<size_t>(t)]}, s);
    const double size = norm(row(f.r, t), f.K) * std::fabs(p.scale);
    const double lost = kUnderflowEvents * underflow * (1 + std::fabs(p.scale)) * ones_plus_sum(f.r, t);
    for (int64_t j = 0; j < f.V; ++j) {
      const auto i = static_cast<size_t>(j);
      NormSum o;
      for (int64_t c = 0; c < f.K; ++c)
        o.add({p.scale * at(f.r, t, c)}, {s.S[static_cast<size_t>(c * f.V + j)], s.own[i]});
      o.error = size * s.declared[i];
      y[Out::o].push_back(store(of_o, o.rounded(a.readout), lost, f.K));
    }
  }
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
        rho_(norms(f_)),
        states_(f_.K, f_.V, forward_, underflow_),
        adjoints_(f_.K, f_.V, reverse_, underflow_),
        S_(states_.start(f_.S0.values), f_.T,
           [this](int64_t t, NormState& s) {
             states_.advance(forward_step(f_, t - 1), {rho_[static_cast<size_t>(t - 1)]}, s);
           }),
        G_(adjoints_.start(p.cotangents[Out::final_state].values)),
        stored_(forward_.output_roundoff, dtype_of(p, {"v"})),
        of_w_(declared.gate_output_roundoff, dtype_of(p, {"w"})) {
    for (const SliceMatrix& m : p.inputs) y_.emplace_back(m.values.size());
  }
  Reverse(const Reverse&) = delete;

  SliceBounds run() {
    for (int64_t t = f_.T; t-- > 0;) token(t);
    y_[In::initial_state] = stored_state(G_);
    return std::move(y_);
  }

 private:
  void token(int64_t t) {
    const NormState after = S_.at(t + 1), &before = S_.at(t);
    const std::vector<double> zeros(static_cast<size_t>(std::max(f_.K, f_.V)), 0);
    // The write of scale r do, as a step with weights one that reads nothing.
    adjoints_.advance({zeros.data(), zeros.data(), zeros.data(), row(f_.r, t), row(d_o_, t), f_.p.scale}, {1},
                      G_);
    lost_ = lost_at(t, before, after);
    const Passed passed = passed_at(t, before);
    for (int64_t c = 0; c < f_.K; ++c) key_channel(t, c, before, after, passed);
    for (int64_t j = 0; j < f_.V; ++j) {
      NormSum dv;
      for (int64_t c = 0; c < f_.K; ++c) dv.add({at(f_.k, t, c)}, column_entry(G_, c, j));
      dv.error = norm(row(f_.k, t), f_.K) * G_.declared[static_cast<size_t>(j)];
      const double readout = of_run(d_.value_readout, d_.value_readout_decayed);
      y_[In::v][static_cast<size_t>(t * f_.V + j)] = store(stored_, dv.rounded(readout), lost_, f_.K);
    }
    adjoints_.advance({row(f_.w, t), row(f_.a, t), row(f_.b, t), zeros.data(), zeros.data(), 0},
                      {rho_[static_cast<size_t>(t)]}, G_);
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

  /// As sums over key channels see an entry: the column's error is taken as a whole.
  NormEntry column_entry(const NormState& s, int64_t c, int64_t j) const {
    return {s.S[static_cast<size_t>(c * f_.V + j)], s.own[static_cast<size_t>(j)]};
  }
  NormEntry entry(const NormState& s, int64_t c, int64_t j) const {
    return {s.S[static_cast<size_t>(c * f_.V + j)], s.own[static_cast<size_t>(j)],
            s.declared[static_cast<size_t>(j)]};
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
      pull.error = norm(row(f_.b, t), f_.K) * G_.declared[n];
      read.error = norm(row(f_.a, t), f_.K) * before.declared[n];
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
      const NormEntry old = entry(before, c, j), g = entry(G_, c, j);
      dr.add({f_.p.scale * at(d_o_, t, j)}, entry(after, c, j));
      dk.add({at(f_.v, t, j)}, g);
      da.add(old, passed.beta[n]), db.add(g, passed.alpha[n]);
      dw.add({weight * old.value, weight * old.own, weight * old.error}, g);
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
  const std::vector<double> rho_;
  const NormRecurrence states_, adjoints_;
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
