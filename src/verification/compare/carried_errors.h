// Errors that a state carries from block to block: the statistic that sees a state kept in too few digits.
//
// A block of 64 tokens reads the state at its start, o_t = sum_c x_tc S_c + ..., x_tc with the decay up to t,
// and diag(w) S of it is left behind the block. Of errors e of o, A = x^T e is what they say of the state's
// own error, and the statistic is what two neighbouring blocks say alike,
//   C = sum over blocks b and states c, v of  w_c A_cv(b) A_cv(b + 1).
// Storing, scores, and copies of the state are rounded anew in every block and add nothing to its mean;
// roundings of what is written to the state do, and the samples say how much. A state that is itself rounded
// once a block, where nothing is declared, adds the square of that. C is a quadratic form of independent
// sources, each with a tail no heavier than a normal number's of its variance: beyond its mean by
//   sqrt(2t) d + 2 t |Q|, d^2 its variance, |Q| the form's norm, with probability e^-t     (Laurent, Massart)
// Of R samples e_i, d^2 is the sum of
//   what is new in block b + 1, independent of all before it: the mean square of products of two samples
//   what is not new: with S(e, e') the form made symmetric, at most 2 S(e_i, e_j)^2 in the mean over the
//   pairs, as of normal numbers; 1 / R of it once more, as the mean is that of R samples
// raised by 1 + 2t/n for n pairs, as it is an estimate itself. What is common to all is c times one
// number within [-1, 1]: it adds S(c, c), where that is more than nothing, to the mean, and 2 S(c, e) to the
// variance. A block and column's part is bilinear in two blocks' sources, and a chain of these has no larger
// norm than its largest link, which is at most the link's standard deviation; columns that share sources move
// together, by as much as all links vary more together than one by one.
// What else the arithmetic may do to an element is at most rest, to A at most R = |x|^T rest. It adds at most
// sum w R R' and what it has to do with e, whose columns have signs of their own: with n = sum over t of
// rest_t |x_t diag(w) A'| + rest'_t |x'_t diag(w) A| for a block and column, more than
// sqrt(2 (t + ln 2) sum n^2) with probability e^-t.
#pragma once
#include <cstdint>
#include <vector>

#include "reference/rounding_noise.h"

namespace assay {

/// How a block's tokens read a state: tokens x states, and what is left of each state behind the block.
struct StateReads {
  size_t block = 0;  ///< of OutputBlocks::blocks
  std::vector<float> x, left;
};

/// Of one sequence and head.
struct CarriedErrors {
  std::vector<StateReads> blocks;  ///< in their order
  double mean = 0;                 ///< of what is not new in a block, at most
  double fresh = 0, old = 0;       ///< variances of what is, and of what is not
  double largest = 0;              ///< variance of the block and column that varies most
  double together = 1;             ///< how much more all of them vary together than one by one
  /// Of every block, rows x columns: where it is off if the state is kept in the operands' format. Along that
  /// direction the variance of all sources but storing, and what is common to all.
  std::vector<std::vector<float>> kept;
  double kept_variance = 0, kept_common = 0;
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
                                   const std::vector<std::vector<double>>& rest, int64_t columns, double t,
                                   int threads = 1);

}  // namespace assay
