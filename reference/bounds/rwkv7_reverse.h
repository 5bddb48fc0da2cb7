// What bounds of the gradients of rwkv7's recurrence share, whatever its inputs are made from: one run
// backwards over the tokens, G_t = dL/dS_t beside S_t found again. What a token's gradients are, and how much
// of them underflow takes, is the operator's.
#pragma once
#include <cmath>

#include "reference/bounds/rwkv7_chunk.h"

namespace assay {

class Rwkv7Reverse {
 public:
  Rwkv7Reverse(const Rwkv7Reverse&) = delete;
  virtual ~Rwkv7Reverse() = default;

  SliceBounds run() {
    for (int64_t t = f_.T; t-- > 0;) {
      const NormState after = S_.at(t + 1), before = states_.found_by(t, S_.at(t));
      adjoints_.read_out(t, G_);
      lost_ = lost_at(reach(t), before, after);
      token(t, before, after);
      adjoints_.advance(t, G_);
    }
    adjoints_.finish(G_);
    y_[initial_state_] = stored_state(G_);
    return std::move(y_);
  }

 protected:
  /// `as_rwkv7`: the slice with rwkv7's inputs; `own`: the operator's, whose gates are called so and whose
  /// initial state is that input.
  Rwkv7Reverse(const SliceProblem& as_rwkv7, const SliceProblem& own, const char* gate, size_t initial_state)
      : own_(own),
        d_(own.problem->adjoint),
        f_(as_rwkv7),
        decaying_(decays(own, gate)),
        forward_(arithmetic_of_run(d_.state, decaying_)),
        reverse_(arithmetic_of_run(d_.adjoint, decaying_)),
        of_S_(forward_),
        of_G_(reverse_),
        d_o_(own.cotangents[Rwkv7::Out::o]),
        underflow_(std::fmax(underflow_of(forward_, claims_exact(forward_)),
                             underflow_of(reverse_, claims_exact(reverse_)))),
        states_(f_, forward_, underflow_),
        adjoints_(f_, d_o_, reverse_, underflow_),
        G_(adjoints_.start(own.cotangents[Rwkv7::Out::final_state].values)),
        stored_(forward_.output_roundoff, dtype_of(own, {"v"})),
        of_gates_(d_.gate_output_roundoff, dtype_of(own, {gate})),
        S_(states_.start(f_.S0.values), f_.T, [this](int64_t t, NormState& s) { states_.advance(t - 1, s); }),
        initial_state_(initial_state) {
    for (const SliceMatrix& m : own.inputs) y_.emplace_back(m.values.size());
  }

  /// Fills `y_` with the token's gradients; `before`, `after`: S_{t-1} and S_t.
  virtual void token(int64_t t, const NormState& before, const NormState& after) = 0;
  /// What a gradient of the token is made of but for states, each at least 1.
  virtual double reach(int64_t t) const = 0;

  double of_run(double readout, double decayed) const {
    return readout + (decaying_ ? decayed * (1 + readout) : 0);
  }
  /// The gradient of gates that cross e^g, beyond its sum.
  double of_gate_sum(double g) const {
    const double crossed = std::fmax(of_S_.decay_error(g), of_G_.decay_error(g));
    return crossed + (1 + crossed) * of_run(d_.gate_readout, d_.gate_readout_decayed);
  }

  const SliceProblem& own_;
  const AdjointArithmetic& d_;
  const Rwkv7Slice f_;
  const bool decaying_;
  const Arithmetic forward_, reverse_;
  const BoundModel of_S_, of_G_;
  const SliceMatrix& d_o_;
  const double underflow_;
  Rwkv7States states_;
  Rwkv7Adjoints adjoints_;
  NormState G_;
  const Storage stored_, of_gates_;
  double lost_ = 0;  ///< what underflow takes from a gradient of the token at hand
  SliceBounds y_;

 private:
  double lost_at(double reach, const NormState& before, const NormState& after) const {
    double most = 1;
    for (size_t n = 0; n < G_.S.size(); ++n)
      most = std::fmax(most,
                       std::fmax(std::fabs(G_.S[n]) * (1 + std::fabs(before.S[n])), std::fabs(after.S[n])));
    return unless_over(reach * most, kUnderflowEvents * underflow_ * reach * most);
  }

  StateHistory<NormState> S_;
  const size_t initial_state_;
};

}  // namespace assay
