// What the tiles of a chunk read of the states that stand for a kernel's (norm_recurrence.h), whatever rule
// the tokens follow.
#pragma once
#include <vector>

#include "reference/bounds/delta_tile.h"

namespace assay {

/// Of sums in doubles over all key channels, and of weights as products of a tile's.
inline constexpr double kOwnReads = 0x1p-42, kReadsUp = 1 + 0x1p-38;

/// Is the arithmetic that of a chunked kernel?
bool in_chunks(const Arithmetic&);
int64_t tile_tokens(const Arithmetic&);

/// Are scores declared apart?
bool has_pairs(const Arithmetic&);

/// An element of a state as its column sees it: without the error that the column has as a whole.
inline NormEntry column_entry(const NormState& s, int64_t c, int64_t j) {
  const auto n = static_cast<size_t>(j), row = static_cast<size_t>(c), i = row * s.own.size() + n;
  if (!s.in_chunk()) return {s.S[i], s.own[n]};
  const double path = s.paths[i] + NormState::unsure(std::sqrt(s.spread[row]), s.reach[n]);
  return {s.S[i], s.own[n], s.excess[i], path};
}
/// And with that.
inline NormEntry whole_entry(const NormState& s, int64_t c, int64_t j) {
  NormEntry y = column_entry(s, c, j);
  y.error += s.declared[static_cast<size_t>(j)];
  return y;
}

TileReads empty_reads(int64_t tokens, int64_t V);

/// A state on its way from token to token of a tile, without the tile's own updates.
/// What a token's scores of its own chunk lose by themselves (Arithmetic::pairs): at least
/// sum_j |P_ij| |u^_j| of each value channel.
using PairReads = std::vector<double>;

class PassingState {
 public:
  PassingState(const NormState&, int64_t K, int64_t V, const BoundModel&);

  void decay(const double* g);
  void write(const double* x, const double* columns, double scale);
  /// Row i of `y`: factor (columns - key^T S), or factor key^T S where `columns` is null. `off`, `own`: what
  /// the state's columns are off by, as declared and in doubles. `pairs`: where they are declared apart;
  /// `held`: of `removal`, what the chunk's first state loses once for all that read it.
  void read(const double* key, const double* columns, double factor, const Arithmetic&,
            const std::vector<double>& off, const std::vector<double>& own, int64_t row, TileReads& y,
            const PairReads* pairs = nullptr, double held = 0) const;

 private:
  int64_t K_, V_;
  const BoundModel& model_;
  /// `entered_`: of `most_`, the paths from the chunk's start.
  std::vector<double> S_, paths_, most_, entered_, weights_, weights_up_;
};

}  // namespace assay
