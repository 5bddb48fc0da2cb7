// How far a kernel's gradients may be from the exact ones: bound.h's model, carried to the adjoint of the
// gated family.
//
//   dq_t = scale S_t do_t    dk_t = G_t v_t    dv_t = G_t^T k_t    dg_t = e^{g_t} rowsum(S_{t-1} (.) G_t)
//   G_t = e^{g_{t+1}} G_{t+1} + scale q_t do_t^T,  G_{T+1} = dS_T without decay;   dS_0 = e^{g_1} G_1
//
// S_t is a state as in bound.h, declared by AdjointArithmetic::state, with companion P and excess E. G_t
// is the same recurrence in reversed time, declared by `adjoint`: a term scale q_i do_i enters with (1 +
// write), crosses s for every s in t+1..i, lives through t..i, and passes the ends (in reversed time: the
// starts) of the chunks it leaves. Companion and excess:
//   M_t = e^{g_{t+1}} M_{t+1} + |scale| |q_t||do_t|^T,   M_{T+1} = |dS_T|
//   F_t = (1 + step) { e^{g} [(1 + d) F_{t+1} + d M_{t+1}] + write |scale q_t||do_t|^T } + step M_t,
//     g = g_{t+1}; after the first token of a chunk has been crossed: F <- F + b (M + F), b of that
//     chunk's gates
// Every gradient is a sum over paths, each of S's and G's factors once, so that
//   |dq^ - dq| <= scale sum_v |do| (E + readout (P + E)),         dk: sum_v |v| (F + readout (M + F)),
//   dv: sum_c |k| (F + value_readout (M + F)),                    dS_0: F after the last crossing,
//   dg: e^{g} sum_v { (1 + d_t)(1 + gate_readout)(P + E)(M + F) - P M }.
// A path of dg crosses the tokens j+1..t-1 in S, t by itself, t+1..i in G: a kernel may form it in any order
// and grouping (as q_i w k_j (do_i v_j) without any state), as long as its factors stay below this product.
// With `gate_sums` dg is made otherwise. q_s . dq_s - k_s . dk_s, of one channel, is what the pairs that
// begin or end at s add to dg_s less what they add to dg_s+1, so that with e the last token of t's chunk
//   dg_t = sum_{s=t..e} (q_s dq_s - k_s dk_s) + rowsum(S_e (.) e^{g_e+1} G_e+1),
// off by `gate_sums` of |q_s||dq_s| + |k_s||dk_s|, both of absolute paths, s = t..e, and of dg's own paths.
// `gate_prefix`: with x_s = fl(q_s dq_s - k_s dk_s), n tokens a chunk, A = sum of |x_s| over all of them, a
// kernel makes that sum as (x_t - P_t) + W, P_t the sum from the chunk's start to t, W the chunk's. The x_s
// of earlier tokens are the same numbers in P_t and in W and cancel to the bit. Each of the two sums is off
// by gamma_{n-1} A, in any order; x_t - P_t, then W, then the product of the states are added, of magnitudes
// of at most A, A, A + |dg|: in all, with A <= (1 + gate_sums) sum_s (|q_s||dq_s| + |k_s||dk_s|),
//   (2 gamma_{n-1} + 3 u + ..) A + u |dg|.
// Each output adds the error of its storage, as in bound.h. Operands that are rounded when they were scaled
// cost dq, dk and dv what they cost there (`value_readout_scaled` for dv).
//
// Stored states. Where S is stored (state.stored) P starts again at |S_r|. G is stored by adjoint.stored, in
// reversed time: G_r, what later tokens leave of it between the tokens r and r + 1, where r is a multiple; M
// starts again at |G_r| there. dg of a token then is a sum of products of one of P's terms and one of M's: of
// two tokens of its chunk, of S_r or G_r with one, of both; nothing older or later comes in by another way.
//
// With an exclusive readout (rwkv6) G_t holds later tokens only, dq reads S_{t-1}, and with c_t = v_t . do_t
// the terms scale c_t u k_t in dq, scale c_t q_t u in dk, scale (sum q u k) do_t in dv carry (1 + bonus) and
// that gradient's readout; so does each term scale c_t q_t k_t of du. Gradients of shared inputs (one gate
// per head, u) sum the tokens' with a further (1 + total).
//
// Underflow, as there: an absolute error e reaches the result times a subset of the other factors on its
// path, and each term has at most kUnderflowEvents of them. With I the product of all (1 + d) a path may
// pass,
//   R_t = 1 + max|S_0| + sum_{j<=t} (1 + max|k_j|)(1 + max|v_j|)
//   Q_t = 1 + max|dS_T| + (1 + |scale|) sum_{i>=t} (1 + max|q_i|)(1 + max|do_i|)
//   U_dq <= e I (1 + |scale|) sum_v (1 + |do_tv|) R_t     U_dk <= e I sum_v (1 + |v_tv|) Q_t
//   U_dv <= e I sum_c (1 + |k_tc|) Q_t      U_dS0 <= e I Q_1      U_dg <= e I V R_t Q_t,  e = events
//   underflow; U_du <= e I V R_T Q_1, and with u every U has the further factor 1 + max|u|.
//
// Overflow: where any of the same absolute sums of a sequence could pass 2^127, the bound is infinite. dg's
// paths may be formed from the inside, as q_t (S_t do_t) or k_t (G_t v_t), so that the sums of dq and dk
// count for dg too, however small q_t and k_t make the product: an infinite sum times a zero is NaN. Every
// intermediate of a path is a product of some of its factors, and each subset of them lies below one of: the
// inputs, v do and q k (summed over channels), S, G, do S, v G, S (.) G (summed over V); times scale or not.
#pragma once
#include <cstdint>
#include <vector>

#include "reference/bound.h"
#include "reference/gated_adjoint.h"

namespace assay {

/// The gradients, in the order in which a result holds them.
enum class Gradient { q, k, v, g, initial_state, bonus };

/// Coefficients of one problem: the arithmetic with what decays add, if anything decays.
class AdjointBoundModel {
 public:
  AdjointBoundModel(const AdjointArithmetic&, bool decays);

  const BoundModel& state() const { return state_; }
  const BoundModel& adjoint() const { return adjoint_; }
  const AdjointArithmetic& arithmetic() const { return arithmetic_; }
  /// True where the kernel claims that nothing rounds.
  bool exact_claimed() const { return exact_claimed_; }
  /// The evaluator's own error per companion of a gradient, made of S and G of `tokens` and `sums` terms.
  double own_error(Gradient, int64_t tokens, double sums) const;
  /// And per excess.
  double own_of_excess() const { return std::fmax(state_.own_of_excess(), adjoint_.own_of_excess()); }
  /// u of the format that the gradient is stored in.
  double roundoff(Gradient) const;
  /// Relative part of the bound of one element from its companion and excess; `g`: the element's gate, for
  /// dg; `nats`: what the channels of its token's chunk decay by, at most.
  double relative_part(Gradient, double companion, double excess, double g, double nats) const;
  /// Error of dv beyond what G carries.
  double value_readout(double nats) const;
  /// For every token, the nats that relative_part asks for: of its chunk's channel that decays most.
  std::vector<double> nats_of(const SliceInputs&) const;

 private:
  AdjointArithmetic arithmetic_;
  BoundModel state_, adjoint_;
  bool exact_claimed_;
};

/// What the absolute parts of one slice's bounds follow from.
class AdjointMagnitudes {
 public:
  AdjointMagnitudes(const SliceInputs&, const AdjointBoundModel&);

  /// An absolute error of size 1 in one operation becomes at most this in the gradient at token t.
  double spread(Gradient, int64_t t) const;
  /// May an intermediate on the way to this gradient pass 2^127?
  bool overflows(Gradient) const;
  /// At least every |S| and |G| entry and partial sum.
  double largest_state() const { return states_; }
  double largest_adjoint() const { return adjoints_; }

 private:
  int64_t V_;
  double scale_, inflation_ = 1, ends_ = 1;
  double states_ = 0, adjoints_ = 0, widest_[6] = {};
  std::vector<double> v_sum_, k_sum_, do_sum_;  ///< per token: number of channels + sum of magnitudes
  std::vector<double> R_, Q_;                   ///< per token
};

}  // namespace assay
