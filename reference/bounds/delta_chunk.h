// The recurrences of a delta rule's bounds as chunk_walk.h walks them: u_t = beta_t r_t forward, beta_t du_t,
// du_t = k_t^T G_t, backward.
#pragma once
#include "reference/bounds/chunk_walk.h"
#include "reference/bounds/delta_slice.h"

namespace assay {

/// At least the norm of the product of the transitions of `tokens` from `first` on, or infinite: of keys in
/// the sphere, where the tokens are enough to reach all directions.
double norm_of_tokens(const DeltaSlice&, int64_t first, int64_t tokens);

class DeltaStates final : public ChunkStates {
 public:
  DeltaStates(const DeltaSlice&, const Arithmetic&, double underflow);

 private:
  double norm_of_tokens(int64_t first, int64_t tokens) const override;
  void step(int64_t t, NormState&) const override;
  void step_in_chunk(int64_t t, const double* update, const double* residual, NormState&) const override;
  TileUpdates tile(int64_t first, int64_t tokens, const NormState&) const override;

  const DeltaSlice& slice_;
};

class DeltaAdjoints final : public ChunkAdjoints {
 public:
  DeltaAdjoints(const DeltaSlice&, const SliceMatrix& d_o, const Arithmetic&, double underflow);

 private:
  double norm_of_tokens(int64_t first, int64_t tokens) const override;
  void step(int64_t t, NormState&) const override;
  void step_in_chunk(int64_t t, const double* update, const double* residual, NormState&) const override;
  TileUpdates tile(int64_t first, int64_t tokens, const NormState&) const override;

  const DeltaSlice& slice_;
};

}  // namespace assay
