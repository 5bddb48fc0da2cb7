// What errors the declared roundings are likely to make: a statistical model, beside the proved bound
// (bound.h).
//
// Model. Each whole unit roundoff u of the operands' format (bf16, or tf32 for fp16) in a declared relative
// number is one rounding to nearest of a matrix operand x: an error uniform over the spacing of the format
// at x, of mean zero, and independent of every other. (A power of two that a kernel puts into an operand
// changes nothing; another factor, as a scale, shifts all significands alike.) One rounding is one *source*
// for all that the operand enters:
//   a key scaled by its decay        token x channel; enters states and scores of later tokens, all columns
//   a query scaled by its decay      token x channel; enters all columns of its own output
//   a score q_i w k_j, do_i . v_j    pair of tokens of one chunk; enters all columns
//   the copy of a state              chunk x channel x column; enters all tokens of the chunk
// and the same in reversed time. `write` (with what decays add to it) counts roundings of scaled keys,
// `readout` those of scores and copies, `readout_decayed` those of scaled queries, inside chunks too; n
// roundings of one operand have n times the variance. An operand x w that a weight w near 1 has scaled is
// rounded towards x, which has a format's digits already: over a significand's values, evenly spread, the
// mean rounding is at most 1 - w, and beyond 1 - w = u at most u^2 / (1 - w), as then (1 - w) / 2u whole
// periods of the rounding cancel and one may be left. So much of them has one sign, which is one source
// common to all operands of all heads. Storing a result is a rounding of its own, uniform over the spacing
// of its format there. All that is left of the declared numbers, the roundings of fp32, truncating
// accumulators, constants and exponentials, is no noise: it may share one sign. Along a path it adds up to
// r; an accumulator is what some of the terms add up to, and where their order has nothing to do with their
// values it is within the result x and the root of the sum of the terms' squares: r (|x| + |terms|) in all,
// and what underflows.
//
// Where operands are split into parts and a kernel declares what truncates (`truncated`), fp32 is sampled
// too. A truncation towards zero loses a number evenly spread between 0 and its spacing: half of that may
// share one sign, the other half, to either side, is a source of its own, as a rounding to nearest is. So
// `truncated` / 2 is left of `write`, `boundary` and the readouts, with exponentials and constants, and adds
// up as above; and roundings r_i that add up to r, none above `single`, have the squares sum r_i^2 <= r
// `single`. A source is a key's write, a score's or a state's readout, a number of a state at a chunk's end;
// a partial sum's rounding is shared out among its terms, whose squares add up to its own. Gate gradients
// are left to their bound.
//
// First order: an output's error is sum over sources of d times a coefficient, which is the exact
// derivative. The coefficients are never written down: each of kNoiseSamples samples draws every d and
// propagates it by the operator's own recurrences, so that what one source reaches is hit by one draw
// (gated_noise.h; gsa_noise.h, whose softmax adds sources of its own). Samples estimate what the statistic's
// threshold takes (src/verification/compare/rounding.h): the covariance's trace, Frobenius norm, and single
// directions.
#pragma once
#include <cstdint>
#include <string_view>

#include "reference/arithmetic.h"
#include "reference/operator.h"
#include "reference/slices.h"

namespace assay {

inline constexpr int kNoiseSamples = 16;

/// Tokens of a block: a power of two.
inline constexpr int64_t kNoiseBlock = 64;

/// Rows x columns x kNoiseSamples each, of the elements from row `first` of the slice's part of an output,
/// at most kNoiseBlock of them; null: none.
struct NoiseBlock {
  std::string_view output;
  int64_t first = 0, rows = 0, columns = 0;
  const float* near = nullptr;  ///< of sources that enter no other block of this output
  const float* far = nullptr;   ///< of all others
  bool rows_apart = false;      ///< none of these enters two rows
  /// Rows x columns: what the source common to all makes of an element, at most: times one number within
  /// [-1, 1].
  const float* common = nullptr;
  const float* squares = nullptr;  ///< rows x columns: of the terms that an element sums up
  /// Rows x columns, squares: what those terms are off by already, where the operator makes them itself and
  /// not by roundings; null: nothing.
  const float* moved = nullptr;
  /// Of an output that reads a state at the block's start: rows x states, with what weight, and how much of
  /// each state is left behind the block; null where that is not known.
  const float *reads = nullptr, *left = nullptr;
  int64_t states = 0;
  /// And rows x columns: where it would be off if the state were kept in the operands' format (kept_state.h);
  /// of sources that enter no other block, and of those that begin in this one, the variance along it.
  const float* kept = nullptr;
  double kept_variance = 0;
  double rest = 0;  ///< what else the declared arithmetic may do to each term, relative to it
};

/// Of the operand format's u; 1 where operands are split in parts and nothing of the kind rounds.
double operand_roundoff(Dtype);

/// Whole roundings of size u in a declared relative number.
int roundings_in(double declared, double u);

/// What is left of a declared arithmetic without those roundings and without the storing of results.
Arithmetic without_roundings(const Arithmetic&, double u);
AdjointArithmetic without_roundings(const AdjointArithmetic&, double u);

/// True where some declared number has such a rounding.
bool rounds_operands(const Arithmetic&, double u);
bool rounds_operands(const AdjointArithmetic&, double u);

}  // namespace assay
