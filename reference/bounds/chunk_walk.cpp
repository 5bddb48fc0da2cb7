#include "reference/bounds/chunk_walk.h"

#include <algorithm>

namespace assay {

void ChunkWalk::finish(NormState& s) const {
  if (s.in_chunk()) recurrence_.leave_chunk(s);
}

ChunkStates::ChunkStates(const Sizes& sizes, const Arithmetic& a, double underflow)
    : ChunkWalk(sizes, a, underflow) {
  if (chunked()) updates_ = residuals_ = rests_ = TileMatrix(sizes.T, sizes.V);
}

NormState ChunkStates::found_by(int64_t t, const NormState& s) const {
  NormState y = s;
  if (!chunked() || t % arithmetic_.chunk != 0) return y;
  finish(y), recurrence_.enter_chunk(y, passed_[static_cast<size_t>(t / arithmetic_.chunk)], held());
  return y;
}

void ChunkStates::advance(int64_t t, NormState& s) {
  if (!chunked()) return step(t, s);
  const int64_t chunk = arithmetic_.chunk;
  if (t == chunk * static_cast<int64_t>(passed_.size())) {
    for (int64_t i = t; i < std::min(t + chunk, sizes_.T); ++i) pass(i, passages_);
    passed_.push_back(passages_.end_chunk());
  }
  if (t % chunk == 0) s = found_by(t, s);
  if (t == taken_) take_tile(t, s);
  step_in_chunk(t, updates_.row(t), residuals_.row(t), rests_.row(t), s);
}

void ChunkStates::take_tile(int64_t first, const NormState& s) {
  const int64_t in_chunk = first % arithmetic_.chunk;
  const int64_t n = std::min({tile_tokens(arithmetic_), arithmetic_.chunk - in_chunk, sizes_.T - first});
  const TileUpdates made = tile(first, n, s);
  std::ranges::copy(made.update.values, updates_.row(first));
  std::ranges::copy(made.residual.values, residuals_.row(first));
  std::ranges::copy(made.rest.values, rests_.row(first));
  taken_ = first + n;
}

ChunkAdjoints::ChunkAdjoints(const Sizes& sizes, const SliceMatrix& readers, const SliceMatrix& d_o,
                             double scale, const Arithmetic& a, double underflow)
    : ChunkWalk(sizes, a, underflow),
      readers_(readers),
      d_o_(d_o),
      scale_(scale),
      zeros_(static_cast<size_t>(std::max(sizes.K, sizes.V)), 0),
      first_(sizes.T) {}

void ChunkAdjoints::read_out(int64_t t, NormState& G) {
  const double* zeros = zeros_.data();
  // A step with weights one that reads nothing.
  const NormStep step{zeros, zeros, zeros, row(readers_, t), row(d_o_, t), scale_};
  if (!chunked()) return recurrence_.advance(step, {1}, G);
  if (t + 1 == sizes_.T || (t + 1) % arithmetic_.chunk == 0) {
    for (int64_t i = t; i >= t - t % arithmetic_.chunk; --i) pass(i, passages_);
    finish(G), recurrence_.enter_chunk(G, passages_.end_chunk(), held());
  }
  if (t < first_) take_tile(t, G);
  recurrence_.advance_in_chunk(step, {1}, {}, nullptr, nullptr, nullptr, G);
}

void ChunkAdjoints::advance(int64_t t, NormState& G) {
  if (!chunked()) return step(t, G);
  const int64_t i = row_of(t);
  step_in_chunk(t, at_hand_.update.row(i), at_hand_.residual.row(i), at_hand_.rest.row(i), G);
}

void ChunkAdjoints::take_tile(int64_t last, const NormState& G) {
  first_ = last - last % arithmetic_.chunk % tile_tokens(arithmetic_);
  at_hand_ = tile(first_, last - first_ + 1, G);
}

}  // namespace assay
