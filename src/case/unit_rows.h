// Vectors that a delta rule reads with and writes with: rows of length one, and rows that oppose them, so
// that diag(e^w) + b a^T takes away what it reads and states stay where they are.
#pragma once
#include <vector>

#include "src/case/case.h"
#include "src/case/random.h"

namespace assay {

class UnitRows {
 public:
  /// `stream`: that of the unit argument, whichever of the two is drawn. `channels`: of a row.
  /// `rates`: are any given?
  UnitRows(const Case&, const RandomStream& stream, int64_t channels, bool rates);

  /// Element of a row of length one (to double's precision); zero rows now and then where values are exact.
  /// Values "growing", "reflected": the same row at every token of a head; "repeated": for 16 or 64 tokens,
  /// or for all; "collinear": likewise, but for the sign of one channel in 64.
  double unit(const Coordinates&) const;
  /// As `unit`, of the channels from `first` on.
  void units(const Coordinates& first, int64_t count, double* out) const;
  /// Element of the opposing row: minus the unit row times the token's rate, 0 to 1 (0 and 1 among them); at
  /// one token of 64 every channel has a rate of its own. Values "reflected": a rate of 2, or of 1 beside a
  /// decay; "growing": along the unit row, so that a state grows by 2^40 in the longest sequence there can
  /// be. `length`: tokens of the sequence.
  double opposed(const Coordinates&, int64_t length) const;
  /// Element of a key that is read with and written with: the unit row. Values "growing": a little longer, so
  /// that a state of which twice as much is taken as it holds grows as above; "long-keys": 1/16 to 8 times as
  /// long, or to 1.4 times where no rates are given.
  double key(const Coordinates&, int64_t length) const;
  void keys(const Coordinates& first, int64_t length, int64_t count, double* out) const;
  /// Element of what is read with where the key is written with: the key times at most half, so that no
  /// rate that `replaced` gives takes more than is there; at most one where no rates are given, or values
  /// are exact or ones. Values "growing": against the key, so that a state grows as above.
  double along(const Coordinates&, int64_t length) const;
  /// How much of what a key is bound to is replaced: 0, 1, 2, or anything between, mostly below 1. Values
  /// "repeated" and "collinear": per head 1, 2, or a little below 1, or anything; "reflected": 2;
  /// "long-keys": at most 2 over the square of the key's length (head `key_head`). Never more than
  /// Case::rates, nor than that over the square.
  double replaced(const Coordinates&, int64_t key_head) const;

 private:
  /// What the channels of a row have in common.
  struct Row {
    Coordinates place;    ///< of the token that stands for it
    bool removes = true;  ///< false: a row of zeros
    int64_t channel = 0;  ///< the one that is not zero, or the one that the profile begins with
  };
  Row row(const Coordinates&) const;
  double of_row(const Row&, const Coordinates&) const;
  /// What a key is times its row of length one.
  double key_length(const Coordinates&, int64_t length) const;
  double rate(const Coordinates&, uint64_t lane) const;
  double any_rate(const Coordinates&, int64_t key_head) const;  ///< replaced(), up to 2
  /// What stands for a token among those that share its row.
  int64_t shared_token(const Coordinates&) const;
  double length_of(int64_t b, int64_t t, int64_t h) const;
  /// By what a step along the same row at every token lets a state grow, less one.
  static double growth(int64_t length);

  bool exact_, sparse_, ones_, growing_, collinear_, repeated_, reflected_, long_, rates_, decays_;
  double largest_;
  int64_t tokens_, channels_;
  RandomStream random_;
  std::vector<double> profile_;  ///< magnitudes of one row: normal quantiles, scaled to length one
};

/// Tokens at which exact values remove something, write or read, so that even products of two states fit 8
/// bits.
inline constexpr int64_t kRemovingTokens = 8;

}  // namespace assay
