// The bounds of comba, norm by norm: its recurrence is rwkv7's (rwkv7_chunk.h) with
//   r = q      w = g      a = p      b = -beta k      k = beta k,
// products of two numbers of at most 24 bits, which doubles hold. What `arithmetic.def` calls removal covers
// k beta (p^T S): the sum over key channels, the subtraction from v, the products with beta and k; write
// covers k beta v: the subtraction, these products; step the state after a token.
//
// Outputs are rwkv7's. Gradients, with `inner` for each step between the two recurrences:
//   r = v - S^T p     `inner` of |v| + |p|^T |S|
//   du = G^T k        `inner`         u = beta r, dr = beta du: as r and du, a product more in `inner`
//   dbeta = du . r    `inner` once more
//   dv = dr           `value_readout` in place of `inner`
//   dk = G u          the adjoint's readout          dp = -S dr    `inner` once more
//   dg = e^g <S, G>   `gate_readout` for the sum, beyond one crossing of g
//   dq                the state's readout
// Gradients of queries, keys and p that several value heads share have `total` beyond that.
#include "reference/operators/comba.h"

#include "reference/bounds/rwkv7_reverse.h"

namespace assay {
namespace {

using In = Comba::In;
using Out = Comba::Out;
static_assert(Out::o == Rwkv7::Out::o && Out::final_state == Rwkv7::Out::final_state);

/// The slice as rwkv7 has it.
struct AsRwkv7 {
  TensorMap tensors;  ///< for formats, and whether anything decays
  Problem problem;
  SliceProblem slice;
  std::vector<double> rates;  ///< beta

  explicit AsRwkv7(const SliceProblem& x) : problem(*x.problem), slice(x) {
    tensors["v"] = Tensor("v", dtype_of(x, {"v"}), {{"T", 1}});
    tensors["w"] = Tensor("w", dtype_of(x, {"g"}), {{"T", 1}});
    tensors["w"].set(0, decays(x, "g") ? -1 : 0);
    problem.inputs = &tensors;
    slice.problem = &problem;

    const SliceMatrix &k = x.inputs[In::k], &beta = x.inputs[In::beta];
    SliceMatrix w = k, b = k, written = k;
    for (int64_t t = 0; t < k.rows; ++t) {
      rates.push_back(beta.present ? at(beta, t, 0) : 1);
      for (int64_t c = 0; c < k.columns; ++c) {
        const auto i = static_cast<size_t>(t * k.columns + c);
        written.values[i] = rates.back() * k.values[i], b.values[i] = -written.values[i];
        w.values[i] = at(x.inputs[In::g], t, 0);
      }
    }
    slice.inputs = {
        x.inputs[In::q], w, written, x.inputs[In::v], x.inputs[In::p], b, x.inputs[In::initial_state]};
  }
  AsRwkv7(const AsRwkv7&) = delete;
};

class Reverse final : public Rwkv7Reverse {
 public:
  Reverse(const SliceProblem& p, const AsRwkv7& mapped)
      : Rwkv7Reverse(mapped.slice, p, "g", In::initial_state), mapped_(mapped), key_(p.inputs[In::k]) {}

 private:
  void token(int64_t t, const NormState& before, const NormState& after) override {
    const Passed passed = passed_at(t, before);
    NormSum dg;
    for (int64_t c = 0; c < f_.K; ++c) key_channel(t, c, before, after, passed, dg);
    y_[In::g][static_cast<size_t>(t)] = store(of_gates_, dg.rounded(of_gate_sum(at(f_.w, t, 0))),
                                              lost_ * static_cast<double>(f_.K), f_.K * f_.V);
  }
  double reach(int64_t t) const override {
    const double of_keys = (1 + std::fabs(rate(t))) * ones_plus_sum(key_, t) * ones_plus_sum(f_.a, t);
    return (1 + std::fabs(own_.scale)) * ones_plus_sum(f_.r, t) * ones_plus_sum(d_o_, t) *
           ones_plus_sum(f_.v, t) * of_keys * of_keys;
  }

  double rate(int64_t t) const { return mapped_.rates[static_cast<size_t>(t)]; }
  double total(double readout) const {
    return own_.heads != own_.problem->sizes.H ? readout + d_.total * (1 + readout) : readout;
  }

  /// What passes between the two recurrences at a token, of each value channel; dbeta and dv.
  struct Passed {
    std::vector<NormEntry> u, dr;
  };
  Passed passed_at(int64_t t, const NormState& before) {
    Passed y;
    NormSum dbeta;
    const double reader = norm(row(f_.a, t), f_.K), key = norm(row(key_, t), f_.K), size = std::fabs(rate(t));
    for (int64_t j = 0; j < f_.V; ++j) {
      const auto n = static_cast<size_t>(j);
      NormSum r, du;
      r.add({1}, {at(f_.v, t, j)});
      for (int64_t c = 0; c < f_.K; ++c)
        r.add({-at(f_.a, t, c)}, column_entry(before, c, j)),
            du.add({at(key_, t, c)}, column_entry(G_, c, j));
      // Residuals in chunks are those of p^T S and of beta k^T G.
      const double missed = adjoints_.residual(t, j);
      r.error += reader * before.declared[n] + states_.residual(t, j);
      du.error += key * G_.declared[n] + (missed == 0 ? 0 : missed / size);
      const NormSum dr{rate(t) * du.value, size * du.own, size * du.magnitude, size * du.error};
      const double readout = of_run(d_.value_readout, d_.value_readout_decayed);
      y_[In::v][static_cast<size_t>(t * f_.V + j)] = store(stored_, dr.rounded(readout), lost_, f_.K);
      const NormEntry found = r.rounded(d_.inner).entry();
      dbeta.add(du.rounded(d_.inner).entry(), found);
      y.u.push_back(times(rate(t), found)), y.dr.push_back(dr.rounded(d_.inner).entry());
    }
    y_[In::beta][static_cast<size_t>(t)] = store(stored_, dbeta.rounded(d_.inner), lost_, f_.V);
    return y;
  }

  /// dq, dk and dp of one key channel; its part of dg.
  void key_channel(int64_t t, int64_t c, const NormState& before, const NormState& after,
                   const Passed& passed, NormSum& dg) {
    NormSum dq, dk, dp;
    const double weight = exponential(at(f_.w, t, c));
    for (int64_t j = 0; j < f_.V; ++j) {
      const auto n = static_cast<size_t>(j);
      const NormEntry old = whole_entry(before, c, j), g = whole_entry(G_, c, j);
      dq.add({own_.scale * at(d_o_, t, j)}, whole_entry(after, c, j));
      dk.add(passed.u[n], g), dp.add(passed.dr[n], old), dg.add(times(weight, old), g);
    }
    const auto i = static_cast<size_t>(t * f_.K + c);
    y_[In::q][i] = store(stored_, dq.rounded(total(forward_.readout)), lost_, f_.V);
    y_[In::k][i] = store(stored_, dk.rounded(total(reverse_.readout)), lost_, f_.V);
    y_[In::p][i] = store(stored_, dp.rounded(total(d_.inner)), lost_, f_.V);
  }

  const AsRwkv7& mapped_;
  const SliceMatrix& key_;
};

}  // namespace

SliceBounds Comba::forward_bound(const SliceProblem& p) {
  return Rwkv7::forward_bound(AsRwkv7(p).slice);
}
SliceBounds Comba::adjoint_bound(const SliceProblem& p) {
  const AsRwkv7 mapped(p);
  return Reverse(p, mapped).run();
}

}  // namespace assay
