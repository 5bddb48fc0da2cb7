// Errors that a state carries from block to block: the statistic that sees a state kept in too few digits.
//
// A block of 64 tokens reads the state at its start, o_t = sum_c x_tc S_c + ..., x_tc with the decay up to t,
// and diag(w) S of it is left behind the block. Of errors e of o, A = x^T e is what they say of the state's
// own error, and the statistic is what two neighbouring blocks say alike,
//   C = sum over blocks b and states c, v of  w_c A_cv(b) A_cv(b + 1).
// Storing, scores, and copies of the state are rounded anew in every block and add nothing to its mean;
// roundings of what is written to the state do, and the samples say how much. A state that is itself rounded
// once a block, where nothing is declared, adds the square of that. Two parts:
//   what is new in block b + 1 is independent of all before it: variance f, the mean square of such products
//   of two samples, n of them: beyond tau(n) sqrt(f) with probability e^-t
//   what is not new, of R samples mean m and variance s^2: beyond m + tau(R - 1) s sqrt(1 + 1/R) likewise
// with tau(n) = sqrt(n (e^(2t/n) - 1)), Student's for n degrees of freedom. What else the arithmetic may do
// is at most R = |x|^T rest of A. It adds at most sum w R R' and what it has to do with e, whose columns have
// signs of their own: with n = sum over c of w (|A| R' + R |A'|) for a block and column, more than
// sqrt(2 (t + ln 2) sum n^2) with probability e^-t.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "reference/rounding_noise.h"
#include "src/base/tensor/tensor.h"
#include "src/verification/compare/output_blocks.h"

namespace assay {

/// How a block's tokens read a state: tokens x states, and what is left of each state behind the block.
struct StateReads {
  size_t block = 0;  ///< of OutputBlocks::blocks
  std::vector<float> x, left;
};

/// Of one sequence and head.
struct CarriedErrors {
  std::vector<StateReads> blocks;                  ///< in their order
  std::array<double, kNoiseSamples> sampled = {};  ///< of what is not new in a block
  double fresh = 0;                                ///< variance of what is
};

/// A block's errors, rows x columns of doubles, seen from the states: states x columns.
std::vector<double> projected(const StateReads&, const std::vector<double>& errors, int64_t columns);

struct CarriedStatistic {
  double deviations = 0;  ///< how far above its mean, in standard deviations
  double allowed = 0;     ///< at t
  double evidence = 0;    ///< the t at which it is what is allowed
};
/// `errors`, `rest`: of every block of `expected`, in its order. Nothing where no block follows another.
CarriedStatistic carried_statistic(const CarriedErrors& expected,
                                   const std::vector<std::vector<double>>& errors,
                                   const std::vector<std::vector<double>>& rest, int64_t columns, double t);

}  // namespace assay
