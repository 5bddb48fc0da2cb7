// The recurrences of a delta rule's bounds as chunk_walk.h walks them: u_t = beta_t r_t forward, beta_t du_t,
// du_t = k_t^T G_t, backward.
#pragma once
#include "reference/bounds/chunk_walk.h"
#include "reference/bounds/delta_slice.h"

namespace assay {

/// The chunk at hand: its tokens so far in the order of the recurrence, what each brought to the state, and
/// what a token reads of them.
class ChunkPairs {
 public:
  explicit ChunkPairs(const DeltaSlice& slice) : slice_(&slice) {}

  void begin() { tokens_.clear(); }
  /// One that writes scale x columns^T: at least |columns| of each value channel; `share` of what its square
  /// may be unsure (NormState::reach).
  void add(const double* x, const double* columns, double scale, double share);
  void append(const ChunkPairs& later) {
    tokens_.insert(tokens_.end(), later.tokens_.begin(), later.tokens_.end());
  }
  /// The state decays, after all that was added.
  void decay(const DeltaFactors&);
  PairReads read(const double* key, const std::vector<double>& reach) const;

 private:
  struct Token {
    std::vector<double> x, columns;
    double share;
  };
  const DeltaSlice* slice_;
  std::vector<Token> tokens_;
};

/// Where decays run, a state is another operand to each of a chunk's tokens.
inline double held_in_chunks(const DeltaSlice& f, const Arithmetic& a) {
  return f.decaying ? 0 : std::fmin(a.held, a.removal);
}

class DeltaStates final : public ChunkStates {
 public:
  DeltaStates(const DeltaSlice&, const Arithmetic&, double underflow);

 private:
  void pass(int64_t t, ChunkPassages&) const override;
  void step(int64_t t, NormState&) const override;
  void step_in_chunk(int64_t t, const double* update, const double* residual, const double* rest,
                     NormState&) const override;
  double held() const override { return held_in_chunks(slice_, arithmetic_); }
  TileUpdates tile(int64_t first, int64_t tokens, const NormState&) override;

  const DeltaSlice& slice_;
  ChunkPairs pairs_;  ///< of the tiles before
};

class DeltaAdjoints final : public ChunkAdjoints {
 public:
  DeltaAdjoints(const DeltaSlice&, const SliceMatrix& d_o, const Arithmetic&, double underflow);

 private:
  void pass(int64_t t, ChunkPassages&) const override;
  void step(int64_t t, NormState&) const override;
  void step_in_chunk(int64_t t, const double* update, const double* residual, const double* rest,
                     NormState&) const override;
  double held() const override { return held_in_chunks(slice_, arithmetic_); }
  TileUpdates tile(int64_t first, int64_t tokens, const NormState&) override;

  const DeltaSlice& slice_;
  ChunkPairs pairs_;  ///< of the tiles before, and of the cotangents that this one read
};

}  // namespace assay
