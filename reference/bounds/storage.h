// What models of single operators share: storing a result, and sums along a slice.
#pragma once
#include <algorithm>
#include <cmath>
#include <string_view>

#include "reference/bound.h"
#include "reference/bounds/bounded.h"
#include "reference/slice_bounds.h"
#include "reference/slice_problem.h"

namespace assay {

/// What doubles that are read out of states may be off by (bound.h).
struct OwnError {
  double of_companion = 0, of_excess = 0;

  /// Through `roundings` of doubles, out of states of this arithmetic, or of one that errs no less.
  OwnError(double roundings, const Arithmetic& a, int64_t tokens)
      : of_companion(gamma(roundings, kDoubleRoundoff)), of_excess(BoundModel(a).own_of_excess()) {
    if (a.stored > 1) of_companion += stored_share(tokens / a.stored);
  }
  double of(const Bounded& x) const { return of_companion * x.P + of_excess * x.E; }
};

/// How results of one format are stored.
struct Storage {
  double roundoff = 0;
  double half_subnormal = 0;

  Storage(double u, Dtype dtype) : roundoff(u), half_subnormal(u == 0 ? 0 : min_subnormal(dtype) / 2) {}

  /// `value`, `companion`, `error` come from fewer than `roundings` roundings in double of nonnegative terms
  /// (the value: of terms that sum to the companion, and of stored states); `absolute` is the part of the
  /// bound that is not relative.
  ElementBound element(double value, double companion, double error, double absolute,
                       double roundings) const {
    const double g = gamma(roundings, kDoubleRoundoff), raise = 1 + 2 * g;
    const double before = error * raise + absolute;
    // Of stored states both shares are less.
    const double size = std::fabs(value) + (g + 0x1p-20) * companion * raise + kMostOfExcess * error;
    double bound = before + roundoff * (size + before) + half_subnormal;
    if (bound != 0) bound *= 1 + 0x1p-50;
    if (std::isnan(bound)) bound = HUGE_VAL;
    return {companion * raise, bound, absolute + half_subnormal};
  }
  ElementBound element(const Bounded& x, double absolute, double roundings) const {
    return element(x.value, x.P, x.E, absolute, roundings);
  }
};

/// Format of an input; of the first of `names` that is present.
inline Dtype dtype_of(const SliceProblem& x, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names)
    if (const auto found = x.problem->inputs->find(std::string(name)); found != x.problem->inputs->end())
      return found->second.dtype;
  return Dtype::fp32;
}

/// True where some gate of the whole problem, not only of the slice, is not zero: what `..._decayed` ask for.
inline bool decays(const SliceProblem& x, std::string_view gate) {
  const auto found = x.problem->inputs->find(std::string(gate));
  if (found == x.problem->inputs->end()) return false;
  for (int64_t i = 0; i < found->second.size(); ++i)
    if (found->second.value(i) != 0) return true;
  return false;
}

/// Half of what may underflow, plus the model's own.
inline double underflow_of(const Arithmetic& a, bool exact) {
  return a.underflow + (exact ? 0 : kOwnUnderflow);
}

/// 1 + the largest magnitude in a row of a matrix; 1 for no columns.
inline double one_plus_largest(const SliceMatrix& m, int64_t row) {
  double largest = 0;
  for (int64_t c = 0; c < m.columns; ++c)
    largest = std::fmax(largest, std::fabs(m.values[static_cast<size_t>(row * m.columns + c)]));
  return 1 + largest;
}
inline double largest_of(const SliceMatrix& m) {
  double largest = 0;
  for (double y : m.values) largest = std::fmax(largest, std::fabs(y));
  return largest;
}
/// Sum of 1 + |x| over a row.
inline double ones_plus_sum(const SliceMatrix& m, int64_t row) {
  double sum = static_cast<double>(m.columns);
  for (int64_t c = 0; c < m.columns; ++c)
    sum += std::fabs(m.values[static_cast<size_t>(row * m.columns + c)]);
  return sum;
}

}  // namespace assay
