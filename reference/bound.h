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
// Underflow. An e reaches the result times what else its paths are multiplied by: some subset of scale, q_tc,
// k_jc and v_j (or S_0), weights (<= 1) and factors (1 + d), whose product is at most
//   I_t = (1 + decay)^t (1 + step)^t (1 + boundary)^chunks (1 + write)(1 + readout),
// as e^{-x} e^{(decay_per_nat + crossing_per_nat) x} <= 1. Every operation belongs to one pair (token j <= t,
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
#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/operator.h"
#include "src/base/numerics/rounding.h"

namespace assay {

inline constexpr double kUnderflowEvents = 16;
/// Half of what overflows fp32, so that rounding any operand to any format (bf16, tf32) stays finite too.
inline constexpr double kOverflow = 0x1p127;
/// Underflow of the evaluators' own arithmetic: doubles below 2^-1022, weights cut at e^-708, times the
/// product of all magnitudes.
inline constexpr double kOwnUnderflow = 0x1p-960;

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
      : arithmetic_(arithmetic), written_((1 + arithmetic.step) * arithmetic.write + arithmetic.step) {}

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
  double inflation_of_ends() const { return (1 + arithmetic_.write) * (1 + arithmetic_.readout); }

  /// Error that a new term k v carries, per |k||v|.
  double written() const { return written_; }

 private:
  RecurrenceArithmetic arithmetic_;
  double written_;
};

/// `write` and `readout` of a run: with what decays add to them, if anything decays.
inline Arithmetic arithmetic_of_run(Arithmetic a, bool decays) {
  if (decays) {
    a.write += (1 + a.write) * a.write_decayed;
    a.readout += (1 + a.readout) * a.readout_decayed;
  }
  a.write_decayed = a.readout_decayed = 0;
  return a;
}

/// Roundings behind E, Pm and their readout after t tokens: e^g (4), its products (5), the recurrence (5) per
/// token.
inline double excess_roundings(int64_t t, int64_t K) {
  return 16.0 * static_cast<double>(t) + static_cast<double>(K) + 32;
}

}  // namespace assay
