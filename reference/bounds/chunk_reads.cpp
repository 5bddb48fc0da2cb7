#include "reference/bounds/chunk_reads.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

double length_of(const double* key, const std::vector<double>& weights) {
  double square = 0;
  for (size_t c = 0; c < weights.size(); ++c) square += key[c] * key[c] * weights[c] * weights[c];
  return std::sqrt(square) * kReadsUp;
}

}  // namespace

int64_t tile_tokens(const Arithmetic& a) {
  return a.solve_tokens > 0 ? std::min(a.solve_tokens, a.chunk) : a.chunk;
}

bool in_chunks(const Arithmetic& a) {
  return a.chunk > 0 && !claims_exact(a);
}

bool has_pairs(const Arithmetic& a) {
  return a.pairs > 0 || a.pair_sums > 0;
}

TileReads empty_reads(int64_t n, int64_t V) {
  const TileMatrix zeros(n, V);
  return {zeros, zeros, zeros, zeros, zeros, {}, {}, {}, zeros, {}};
}

PassingState::PassingState(const NormState& s, int64_t K, int64_t V, const BoundModel& model)
    : K_(K), V_(V), model_(model), S_(s.S), paths_(s.paths), most_(s.paths), entered_(s.paths) {
  for (size_t i = 0; i < most_.size(); ++i) {
    entered_[i] = std::fmax(s.paths[i] - s.updates[i], 0) + kOwnReads * s.paths[i] + s.excess[i];
    paths_[i] = s.path(i), most_[i] = paths_[i] + s.excess[i];
  }
  weights_.assign(static_cast<size_t>(K), 1), weights_up_ = weights_;
}

void PassingState::decay(const double* g) {
  for (int64_t c = 0; c < K_; ++c) {
    const double e = exponential(g[c]);
    const double up = e * (1 + model_.decay_error(g[c])) * kReadsUp;
    weights_[static_cast<size_t>(c)] *= e * kReadsUp, weights_up_[static_cast<size_t>(c)] *= up;
    for (int64_t j = 0; j < V_; ++j) {
      const auto i = static_cast<size_t>(c * V_ + j);
      S_[i] *= e, paths_[i] *= e, most_[i] *= up, entered_[i] *= up;
    }
  }
}

void PassingState::write(const double* x, const double* columns, double scale) {
  for (int64_t c = 0; c < K_; ++c)
    for (int64_t j = 0; j < V_; ++j) {
      const auto i = static_cast<size_t>(c * V_ + j);
      const double term = scale * x[c] * columns[j];
      S_[i] += term, paths_[i] += std::fabs(term), most_[i] += std::fabs(term) * kReadsUp;
    }
}

void PassingState::read(const double* key, const double* columns, double factor, const Arithmetic& a,
                        const std::vector<double>& off, const std::vector<double>& own, int64_t row,
                        TileReads& y, const PairReads* pairs, double held) const {
  const double length = length_of(key, weights_), length_up = length_of(key, weights_up_);
  const double size = std::fabs(factor);
  for (int64_t j = 0; j < V_; ++j) {
    double sum = 0, terms = 0, most = 0, entered = 0;
    for (int64_t c = 0; c < K_; ++c) {
      const auto i = static_cast<size_t>(c * V_ + j);
      sum += key[c] * S_[i], terms += std::fabs(key[c]) * paths_[i], most += std::fabs(key[c]) * most_[i];
      entered += std::fabs(key[c]) * entered_[i];
    }
    const double given = columns ? columns[j] : 0;
    const auto n = static_cast<size_t>(j);
    y.y(row, j) = factor * (columns ? given - sum : sum);
    y.own(row, j) = size * (length * own[n] + kOwnReads * (std::fabs(given) + most));
    // Of the state's own error: with the length of the key, not entry by entry.
    const double moved =
        (length_up - length) * off[n] + (most - terms) + kOwnReads * (most + length_up * off[n]);
    const double all = std::fabs(given) + most + length_up * off[n];
    const double lost =
        pairs ? a.removal * (entered + length_up * off[n]) + a.pairs * (*pairs)[n] + a.pair_sums * all
              : a.removal * all;
    y.dy(row, j) = size * (lost + moved) * kReadsUp;
    y.held(row, j) = size * held * (entered + length_up * off[n]);
    if (claims_exact(a)) y.dy(row, j) = 0;
    y.size(row, j) =
        (std::fabs(y.y(row, j)) + y.own(row, j) + size * length * off[n] + y.dy(row, j)) * kReadsUp;
  }
}

}  // namespace assay
