// The recurrences of a delta rule's bounds, token by token as the declared arithmetic makes them: each state
// from the one before, or in chunks of tiles (delta_tile.h).
#pragma once
#include "reference/bounds/chunk_reads.h"
#include "reference/bounds/delta_slice.h"

namespace assay {

/// At least the norm of the product of the transitions of `tokens` from `first` on, or infinite: of keys in
/// the sphere, where the tokens are enough to reach all directions.
double norm_of_tokens(const DeltaSlice&, int64_t first, int64_t tokens);

/// S_t, first token first.
class DeltaStates {
 public:
  DeltaStates(const DeltaSlice&, const Arithmetic&, double underflow);

  NormState start() const { return recurrence_.start(slice_.S0.values); }
  /// From the state after token t - 1 to that after token t; for the first time in the tokens' order, when
  /// tiles get what they are off by.
  void advance(int64_t t, NormState&);
  /// The state after token t - 1 as token t finds it.
  NormState found_by(int64_t t, const NormState&) const;
  /// The final state, from that after the last token.
  void finish(NormState&) const;
  /// At least |u^_t - beta_t r_t| of a value channel, r_t of the states that stand for the kernel's; 0
  /// where it goes token by token.
  double residual(int64_t t, int64_t j) const;

 private:
  void take_tile(int64_t first, const NormState&);

  const DeltaSlice& slice_;
  const Arithmetic arithmetic_;
  const NormRecurrence recurrence_;
  std::vector<double> wholes_;      ///< norms of the chunks' transitions
  int64_t taken_ = 0;               ///< tokens whose tiles are known
  TileMatrix updates_, residuals_;  ///< T x V, in chunks
};

/// G_t = dL/dS_t, last token first.
class DeltaAdjoints {
 public:
  DeltaAdjoints(const DeltaSlice&, const SliceMatrix& d_o, const Arithmetic&, double underflow);

  NormState start(const std::vector<double>& dS) const { return recurrence_.start(dS); }
  /// From what token t + 1 left to G_t: the write of scale q_t do_t.
  void read_out(int64_t t, NormState&);
  /// From G_t to what token t leaves.
  void advance(int64_t t, NormState&);
  /// At least |du^_t - k_t^T G_t| likewise, of the tile at hand.
  double residual(int64_t t, int64_t j) const;
  void finish(NormState&) const;

 private:
  void take_tile(int64_t last, const NormState&);

  const DeltaSlice& slice_;
  const SliceMatrix& d_o_;
  const Arithmetic arithmetic_;
  const NormRecurrence recurrence_;
  int64_t first_ = 0;               ///< of the tile at hand
  TileMatrix updates_, residuals_;  ///< of its rows, last first; |beta du^| and as residual() says
};

}  // namespace assay
