// What a delta rule's chunked kernel makes of one tile of tokens: their updates by the inverse of a unit
// lower triangle. With P_ij = k_i^T e^{G_i - G_j} k_j below the diagonal, N = diag(beta) P and y = beta
// times the values less what is read before the tile,
//   (1 + N) u = y.
// The kernel has N^ = N + M for the matrix, X^ for the inverse, y^ = y + dy and u^ = X^ y^ + du,
//   |M| <= scores |N| + (1 + scores) (what decays add to |N|),
//   (1 + N^) X^ = 1 + R,    |R| <= solve (1 + |N| + |M|) |X^|,
//   |du| <= solved |X^| |y^| + update |u^|,
// and by (1 + N) X^ = 1 + R - M X^, |X^| <= |X| (1 + |R| + |M| |X^|) is a triangular system itself, so that
// nothing is assumed to be small. Any inverse may err by what `solve` tells: substitution by little, a series
// by as much as its terms grow to.
//
// By the rule token by token u^ misses
//   eps = (1 + N) u^ - y = R y^ + dy + (1 + N) du - M X^ y^,
// as (1 + N^) u^ = (1 + R) y^ + (1 + N^) du and M u^ - M du = M X^ y^. What R loses is per |X^| |y^|, what M
// does per |X^ y^|, which is also |u^ - du|: of keys that are alike updates are far less than the terms that
// they cancel from. The recurrences of norm_recurrence.h take eps from token to token: at most that lies
// between u^ and beta r.
//
// Backwards, du_i = k_i^T G_i, with G of which later tokens have taken theirs, is (1 + N^T) du = y, y what is
// read behind the tile, and the kernel has X^^T. Its residual is the transpose of the left one; with Y =
// (1 + N^)^-1, |Y| <= |X| (1 + |M| |Y|),
//   X^ (1 + N^) = 1 + Y R (1 + N^),    eps = (Y R (1 + N^))^T y^ + dy + (1 + N^T) du - M^T X^^T y^.
//
// Of tokens whose contraction is known what updates are off by because the state is needs no triangle: a step
// with e' = D e + k d, d = eps - beta k^T D e, has
//   |e'|^2 = |D e|^2 - r / beta d^2 + 2 / beta eps d <= |D e|^2 - d^2 / share + 2 (gain eps)^2,
// r = 2 - beta |k|^2, share = 2 beta / r, gain^2 = 1 / (beta r). Summed, sum d^2 / share is at most reach^2 =
// e^2 + 2 sum (gain eps)^2, and row i of |M| |d| at most reach sqrt(sum_m M_im^2 share_m).
#pragma once
#include <cstdint>
#include <vector>

#include "reference/bounds/norm_recurrence.h"

namespace assay {

/// Rows first.
struct TileMatrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> values;

  TileMatrix() = default;
  TileMatrix(int64_t rows, int64_t columns)
      : rows(rows), columns(columns), values(static_cast<size_t>(rows * columns), 0) {}
  double& operator()(int64_t i, int64_t j) { return values[static_cast<size_t>(i * columns + j)]; }
  double operator()(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * columns + j)]; }
  double* row(int64_t i) { return values.data() + i * columns; }
  const double* row(int64_t i) const { return values.data() + i * columns; }
};

/// The matrices of a tile, lower triangles in the order in which its rows are made; all but `system` are of
/// magnitudes, not below the exact ones.
struct DeltaTile {
  TileMatrix system;    ///< 1 + N, in doubles
  TileMatrix unit;      ///< 1 + |N|, term by term
  TileMatrix sums;      ///< 1 + |N|, as the sums are
  TileMatrix exact;     ///< |X|
  TileMatrix inverse;   ///< |X^|
  TileMatrix off;       ///< |M|
  TileMatrix residual;  ///< |R|

  /// `system`: 1 + N; `unit` as above; `decays`: what decays may add to |N|.
  DeltaTile(const TileMatrix& system, const TileMatrix& unit, const TileMatrix& decays, const Arithmetic&);
  /// Of the transposed system, rows in reversed order.
  DeltaTile backwards() const;

 private:
  DeltaTile() = default;
};

/// What is read for a tile, n x V, and how errors of the state go on from row to row.
struct TileReads {
  TileMatrix y;     ///< as doubles have it
  TileMatrix own;   ///< how far that may be off
  TileMatrix size;  ///< at least |y^|
  TileMatrix dy;    ///< at least |dy|
  TileMatrix held;  ///< of that, by what the chunk's first state is held as (norm_recurrence.h)
  /// Of each row: by how much the state's error enters its update, and eps then the state's error; n x V:
  /// what that is multiplied by on the way to the next row.
  std::vector<double> reading, entering;
  std::vector<Contraction> contractions;
  TileMatrix carried;
  /// Where all contractions are known: of what a row's update is off by, squared, what sums to reach^2.
  std::vector<double> shares;
};

struct TileUpdates {
  TileMatrix update;    ///< at least |u|, of tokens of which no contraction is known |u^|
  TileMatrix residual;  ///< at least |eps|
  TileMatrix rest;      ///< at least |eps| without what is held
};

/// `error`: of each column of the state before the tile; `reach`: of that with errors of the chunk's updates
/// so far (NormState::reach).
TileUpdates updates_of(const DeltaTile&, const TileReads&, const Arithmetic&, std::vector<double> error,
                       std::vector<double> reach);

}  // namespace assay
