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

#include "reference/bounds/rwkv7_reverse.h"

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

class Reverse final : public Rwkv7Reverse {
 public:
  explicit Reverse(const SliceProblem& p) : Rwkv7Reverse(p, p, "w", In::initial_state) {}

 private:
  void token(int64_t t, const NormState& before, const NormState& after) override {
    const Passed passed = passed_at(t, before);
    for (int64_t c = 0; c < f_.K; ++c) key_channel(t, c, before, after, passed);
    for (int64_t j = 0; j < f_.V; ++j) {
      NormSum dv;
      for (int64_t c = 0; c < f_.K; ++c) dv.add({at(f_.k, t, c)}, column_entry(G_, c, j));
      dv.error += norm(row(f_.k, t), f_.K) * G_.declared[static_cast<size_t>(j)];
      const double readout = of_run(d_.value_readout, d_.value_readout_decayed);
      y_[In::v][static_cast<size_t>(t * f_.V + j)] = store(stored_, dv.rounded(readout), lost_, f_.K);
    }
  }
  double reach(int64_t t) const override {
    return (1 + std::fabs(f_.p.scale)) * ones_plus_sum(f_.r, t) * ones_plus_sum(f_.k, t) *
           ones_plus_sum(f_.v, t) * ones_plus_sum(f_.a, t) * ones_plus_sum(f_.b, t) * ones_plus_sum(d_o_, t);
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
    const auto i = static_cast<size_t>(t * f_.K + c);
    y_[In::r][i] = store(stored_, dr.rounded(forward_.readout), lost_, f_.V);
    y_[In::w][i] = store(of_gates_, dw.rounded(of_gate_sum(w)), lost_, f_.V);
    y_[In::k][i] = store(stored_, dk.rounded(reverse_.readout), lost_, f_.V);
    y_[In::a][i] = store(stored_, da.rounded(d_.inner), lost_, f_.V);
    y_[In::b][i] = store(stored_, db.rounded(d_.inner), lost_, f_.V);
  }
};

}  // namespace

SliceBounds Rwkv7::adjoint_bound(const SliceProblem& p) {
  return Reverse(p).run();
}

}  // namespace assay
