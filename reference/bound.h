// How far a kernel of the gated family may be from the exact value: the a-priori bound, from what it
// declares.
//
// Model. A kernel computes every output as sums and products of q, k, v, S_0, scale and decay weights. Each
// operation returns exact (1 + d) + e: d a relative error, e an absolute one that is there only where the
// operation underflows. Written out, the result is a sum over paths. The path of the pair (j, t), channel c,
// is
//   scale q_tc w k_jc v_j,   w = e^{g_{j+1} + .. + g_t},
// times one factor (1 + d) for every operation it passes. RecurrenceArithmetic bounds these factors:
//   entering                (1 + write) once; not for S_0
//   crossing token s        (1 + d_s) for every s in j+1..t,
//                           d_s = (1 + decay) e^{decay_per_nat |g_s|} - 1, and 0 where g_s = 0
//   living through token s  (1 + step) for every s in j..t
//   end of a chunk          (1 + boundary) for every chunk end in j..t-1, for the state itself in j..t;
//                           chunks count from the sequence's start, its end ends the last one
//                           there also (1 + min(crossing, crossing_per_nat L)), L the chunk's sum of |g|: a
//                           state's decay is made once per chunk, by an exponential whose own error does not
//                           grow with L
//   with any gate not zero  (1 + write_decayed) and (1 + readout_decayed) beside write and readout: what
//                           scaling by weights costs; without decays all weights are exactly 1
//   entering a chunk        e^{prefix_per_nat N} once, N the largest sum of |g| of a channel over the chunk:
//                           a weight inside it is e^{fl(G_t) - fl(G_j)}, sums from the chunk's start each of
//                           which is off by what all of its prefix was, also where |G_t - G_j| is small
//   k, q rounded when scaled (1 + write_scaled) and (1 + readout_scaled) beside these, or less (below)
//   leaving                 (1 + readout) once; for o only
// With an exclusive readout (rwkv6) the pair (j, t), j < t, crosses only s in j+1..t-1 and lives through
// j..t-1; the token's own path scale q_tc u_c k_tc v_t passes (1 + bonus) and (1 + readout). Their largest
// product minus one, times the path's absolute value, summed over paths, bounds the relative part: nothing is
// first order. The sums over paths are recurrences, companion and excess (Pm and E):
//   Pm_t = e^{g_t} Pm_{t-1} + |k_t||v_t|^T,   Pm_0 = |S_0|
//   E_t  = (1 + step) { e^{g_t} [ (1 + d_t) E_{t-1} + d_t Pm_{t-1} ] + write |k_t||v_t|^T } + step Pm_t
//   E_0  = 0;   after a chunk: E <- E + b (Pm + E),   1 + b = (1 + boundary) (1 + min(crossing, ..))
// because Pm + E is the sum over paths with all factors at their largest, and then
//   |o^ - o| <= scale |q|^T ( E + readout (Pm + E) ) + U_o,     |S^_T - S_T| <= E_T + U_S
// (exclusive: with Pm_{t-1} + |u k_t||v_t|^T for Pm and E_{t-1} + bonus |u k_t||v_t|^T for E).
//
// Scaled operands. k = k_jc is a number of the format F that k w is rounded to, w = e^{-x} the weight of the
// tokens between j and an end of some part of its chunk. The kernel has p = k w (1 + d), d of the arguments,
// exponentials and products: |d| <= D = (1 + write_decayed) e^{decay_per_nat n} - 1, n the chunk's nats.
// The nearest number of F is no farther from p than k is, which is one:
//   |fl(p) - p| <= min( write_scaled |p|, |k - p| ),   |k - p| <= |k| (1 - w + w D) = |k w| (e^x - 1 + D),
// and as |p| <= |k w| (1 + D), all of it is a factor (1 + D) (1 + min( write_scaled, e^n - 1 + D )). So
// what rounding scaled operands costs vanishes with the decay of a chunk. q likewise.
//
// Stored states. Where the state is one stored number S^_r (`stored`: after every so many tokens r), whatever
// is done to it later is done to all its terms alike: instead of its paths there is one, which starts at r
// with the value S^_r = S_r + e, |e| <= E_r, and passes the factors of what it crosses. With D the largest of
// their products minus one, it is off by at most
//   |w (1 + D) (S_r + e) - w S_r| <= w ( D |S_r| + (1 + D) E_r ),
// which is what the recurrences above make of Pm = |S_r| and E = E_r. So at every r
//   Pm <- |S_r|,
// E goes on, and Pm is at least |S_t| everywhere. By induction over the stored states all of the above holds
// with this Pm, which terms that cancel in S_r have left; nothing is assumed of a number that only the kernel
// has. Between two stored states the paths of the tokens since the first stay apart. A state stored after
// every token has Pm = |S_t|: the bound of step then is (1 + step) { .. } + step |S_t|, at most the above.
//
// The evaluator has S_r only as its own double S~_r. What that is off by, A_r, follows the same recurrences,
// with 8 roundings of doubles per token and path (4 for e^g, its product, the sum; k v).
//   Stored after every token, the evaluator is a kernel with step = 2^-50. E is a polynomial of the declared
//   errors, without a constant term or a negative coefficient: A <= l E, l = 2^-50 / step. Pm = |S~| + l E is
//   at least |S|, and what is read has the radius of its own roundings and of l times its excess.
//   Else, with L the sum of |g| from r' to r, and Pm_r still that of the paths since r',
//     A_r <= e^{-L} A_r' + gamma_{8 (r - r' + 1)} Pm_r,     then Pm_r <- |S~_r| + A_r / s_n
//   for the n-th stored state, s_n = 2^-37 sqrt(n). That is at least |S_r|, and while nothing else is stored
//   A_t <= (s_n + gamma_{8 (t - r + 1)}) Pm_t: a share of the companion, as it is without stored states. s_n
//   is what A_r / |S_r| stays below where terms of either sign add up; were it not, Pm were larger.
//
// Underflow. An e reaches the result times what else its paths are multiplied by: some subset of scale, q_tc,
// k_jc and v_j (or S_0), weights (<= 1) and factors (1 + d), whose product is at most
//   I_t = (1 + decay)^t (1 + step)^t (1 + boundary)^chunks (1 + write)(1 + readout),
// as e^{-x} e^{(decay_per_nat + crossing_per_nat) x} <= 1, and e^{prefix_per_nat N} for the widest chunk
// beside it. Every operation belongs to one pair (token j <= t,
// channel c), that of its last operand: an addition to that of the term it adds, a store of a running value
// to that of its newest token. For each pair and each subset at most kUnderflowEvents operations can
// underflow. A chain of decays counts twice, whatever its length: with exactly one of its weights
// underflowing the path is off by e times the others (<= 1); with m >= 2 each e meets another weight below
// 2^-125, and m 2^-125 < 1. The sum over all subsets of the products of a, b, .. is (1 + a)(1 + b).., hence
//   U_o <= kUnderflowEvents underflow I_t (1 + scale) sum_c (1 + |q_tc|) R_t,
//   R_t = 1 + max|S_0| + sum_{j<=t} (1 + max_c|k_jc|)(1 + |v_j|),
// and U_S is that without scale and q. No decay shrinks R: a weight that is flushed has lost what it carried,
// however much decay follows. With u, U_o has the further factor 1 + max|u|.
//
// Storing o adds output_roundoff |o^| and half of the format's smallest subnormal.
//
// Overflow. The model has none: where an operand, a score, a state or a partial output could pass 2^127 by
// the same absolute sums, the bound is infinite, which is not a pass but "undecided". Operands count by
// themselves: a finite fp32 value next to 2^128 rounds to an infinite tf32, and zero times it is NaN.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/operator.h"
#include "src/base/numerics/exponential.h"
#include "src/base/numerics/rounding.h"

namespace assay {

inline constexpr double kUnderflowEvents = 16;
/// Half of what overflows fp32, so that rounding any operand to any format (bf16, tf32) stays finite too.
inline constexpr double kOverflow = 0x1p127;
/// Underflow of the evaluators' own arithmetic: doubles below 2^-1022, weights cut at e^-708, times the
/// product of all magnitudes.
inline constexpr double kOwnUnderflow = 0x1p-960;

/// The evaluator's own error of one token's step; of E, at most, where E is to tell it.
inline constexpr double kOwnStep = 0x1p-50, kMostOfExcess = 0x1p-10;
/// s_n: of the companion of the n-th stored state, what the evaluator's own may be off by.
inline double stored_share(int64_t n) {
  return 0x1p-37 * std::sqrt(static_cast<double>(n));
}

/// Where intermediates reach `largest` nothing is promised if they may overflow.
inline double unless_over(double largest, double bound) {
  return largest < kOverflow ? bound : HUGE_VAL;
}

/// What one token does to E: E' = carry E + grow Pm_old + written |k||v|.
struct ExcessStep {
  double carry = 1, grow = 0;
};

/// The recurrences' coefficients, in double; what follows from them is raised by excess_roundings in the end.
class BoundModel {
 public:
  explicit BoundModel(const RecurrenceArithmetic& arithmetic)
      : arithmetic_(arithmetic), written_((1 + arithmetic.step) * arithmetic.write + arithmetic.step) {
    // A state that is stored after every token by hardly a rounding says nothing of the evaluator's own.
    if (arithmetic_.stored == 1 && arithmetic_.step * kMostOfExcess < kOwnStep) arithmetic_.stored = 0;
  }

  /// Tokens of a chunk whose nats say what rounding scaled operands, or differences of sums, cost; 0: nothing
  /// asks for them.
  int64_t scaled_chunk() const {
    const bool asked =
        arithmetic_.write_scaled > 0 || arithmetic_.readout_scaled > 0 || arithmetic_.prefix_per_nat > 0;
    return asked ? arithmetic_.chunk : 0;
  }
  /// Of one rounding of a scaled operand in a chunk of `nats`: at most `scaled`, after what `decayed` tells.
  double scaled_error(double scaled, double decayed, double nats) const {
    if (scaled == 0) return 0;
    const double before = (1 + decayed) * std::exp(arithmetic_.decay_per_nat * nats) - 1;
    return std::fmin(scaled, (std::expm1(nats) + before) * (1 + 0x1p-40) + 0x1p-50);
  }

  /// `weight` is e^g; the kernel's g is up to g_error off.
  ExcessStep step(double weight, double g, double g_error = 0) const {
    if (weight == 0) return {0, 0};
    const double d = decay_error(g, g_error);
    return {(1 + arithmetic_.step) * (weight * (1 + d)),
            (1 + arithmetic_.step) * (weight * d) + arithmetic_.step * weight};
  }
  /// Error of one crossing; e^x - 1 <= x + x^2 for 0 <= x <= 1.
  double decay_error(double g, double g_error = 0) const {
    if (g == 0 && g_error == 0) return 0;
    const double x = arithmetic_.decay_per_nat * (std::fabs(g) + g_error) + g_error;
    const double spread = x <= 1 ? x + x * x : std::expm1(x) * (1 + 0x1p-40);
    return arithmetic_.decay + (1 + arithmetic_.decay) * spread;
  }
  /// Error of everything that lives at a chunk's end, in a channel whose |g| sum to `decayed` in that chunk.
  double chunk_error(double decayed) const {
    const double crossing = std::fmin(arithmetic_.crossing, arithmetic_.crossing_per_nat * decayed);
    return arithmetic_.boundary + (1 + arithmetic_.boundary) * crossing;
  }
  /// Factor by which one token may multiply what crosses it: I_t / I_{t-1}.
  double inflation_per_token() const { return (1 + arithmetic_.decay) * (1 + arithmetic_.step); }
  double inflation_per_chunk() const { return 1 + arithmetic_.boundary; }
  /// What weights inside a chunk of `nats` may be above 1: they are differences of sums that are off.
  double inflation_of_prefix(double nats) const {
    return arithmetic_.prefix_per_nat == 0 ? 1 : std::exp(arithmetic_.prefix_per_nat * nats) * (1 + 0x1p-40);
  }
  double inflation_of_ends() const {
    return (1 + arithmetic_.write) * (1 + arithmetic_.readout) * (1 + arithmetic_.write_scaled) *
           (1 + arithmetic_.readout_scaled);
  }

  /// Error that a new term k v carries, per |k||v|, in a chunk whose channels decay by at most `nats`.
  double written(double nats = HUGE_VAL) const {
    const double scaled = scaled_error(arithmetic_.write_scaled, arithmetic_.write_decayed, nats);
    const double before = written_ + (1 + arithmetic_.step) * (1 + arithmetic_.write) * scaled;
    if (arithmetic_.prefix_per_nat == 0) return before;
    return before + (1 + before) * std::expm1(arithmetic_.prefix_per_nat * nats) * (1 + 0x1p-40);
  }
  /// Error of what is read in such a chunk, by the declared `readout` and what scaling adds.
  double read_out(double nats = HUGE_VAL) const {
    const double scaled = scaled_error(arithmetic_.readout_scaled, arithmetic_.readout_decayed, nats);
    return arithmetic_.readout + (1 + arithmetic_.readout) * scaled;
  }

  /// Tokens between stored states; 0: the state is never stored.
  int64_t stored() const { return arithmetic_.stored; }
  /// l: the evaluator's own error per excess where the state is stored after every token, else 0.
  double own_of_excess() const { return stored() == 1 ? kOwnStep / arithmetic_.step : 0; }
  /// Its own error per companion of what it reads through `readout` roundings, after `tokens`; `last`: of the
  /// state behind the last of them, which is stored once more.
  double own_error(int64_t tokens, double readout, bool last = false) const {
    const double per_token = stored() > 0 ? 8 : 6;
    const auto apart = static_cast<double>(stored() > 0 ? std::min(tokens, stored()) : tokens);
    const double of_states = stored() > 1 ? stored_share((tokens + (last ? stored() - 1 : 0)) / stored()) : 0;
    return (of_states + gamma(per_token * apart + readout, kDoubleRoundoff)) * (1 + 0x1p-20);
  }

 private:
  RecurrenceArithmetic arithmetic_;
  double written_;
};

/// `write` and `readout` of a run: with what decays add to them, if anything decays; else nothing is scaled.
inline Arithmetic arithmetic_of_run(Arithmetic a, bool decays) {
  if (decays) {
    a.write += (1 + a.write) * a.write_decayed;
    a.readout += (1 + a.readout) * a.readout_decayed;
  } else {
    a.write_decayed = a.readout_decayed = a.write_scaled = a.readout_scaled = a.prefix_per_nat = 0;
  }
  // Where nothing rounds, companions of all terms show that nothing can.
  if (claims_exact(a)) a.stored = 0;
  return a;
}

/// A channel whose state is stored for the n-th time, `tokens` after the time before, since when its |g| sum
/// to `decayed`.
class StoredChannel {
 public:
  StoredChannel(int64_t n, int64_t tokens, double decayed)
      : weight_(exponential(-decayed) * (1 + 0x1p-20)),
        roundings_(gamma(8 * static_cast<double>(tokens + 1), kDoubleRoundoff) * (1 + 0x1p-20)),
        per_share_(1 / stored_share(n)) {}

  /// A and Pm of some columns.
  void store(const double* S, double* P, double* A, int64_t columns) const {
    for (int64_t j = 0; j < columns; ++j) {
      A[j] = weight_ * A[j] + roundings_ * P[j];
      P[j] = std::fabs(S[j]) + A[j] * per_share_;
    }
  }

 private:
  double weight_, roundings_, per_share_;
};

/// Roundings behind E, Pm and their readout after t tokens: e^g (4), its products (5), the recurrence (5) per
/// token.
inline double excess_roundings(int64_t t, int64_t K) {
  return 16.0 * static_cast<double>(t) + static_cast<double>(K) + 32;
}

}  // namespace assay
