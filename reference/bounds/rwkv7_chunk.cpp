#include "reference/bounds/rwkv7_chunk.h"

#include <cmath>

namespace assay {
namespace {

/// The matrices of `n` tokens from `first` on.
DeltaTile rwkv7_tile(const Rwkv7Slice& f, int64_t first, int64_t n, const Arithmetic& a) {
  const BoundModel model(a);
  TileMatrix system(n, n), unit(n, n), decays(n, n);
  for (int64_t j = 0; j < n; ++j) {
    std::vector<double> w(static_cast<size_t>(f.K), 1), with_errors = w;
    system(j, j) = unit(j, j) = 1;
    for (int64_t i = j + 1; i < n; ++i) {
      double sum = 0, size = 0, most = 0;
      for (int64_t c = 0; c < f.K; ++c) {
        const auto m = static_cast<size_t>(c);
        const double x = at(f.a, first + i, c) * at(f.b, first + j, c), g = at(f.w, first + i, c);
        sum -= x * w[m], size += std::fabs(x) * w[m], most += std::fabs(x) * with_errors[m];
        // Of the token's own decay what is behind it has a part.
        const double e = exponential(g);
        w[m] *= e, with_errors[m] *= e * (1 + model.decay_error(g));
      }
      system(i, j) = sum, unit(i, j) = size * kReadsUp;
      decays(i, j) = std::fmax(most - size, 0) + kOwnReads * most;
    }
  }
  return DeltaTile(system, unit, decays, a.solve);
}

/// At least the norm of the product of the transitions of `tokens` from `first` on, or infinite: where the
/// tokens are enough to reach all directions. Each step of doubles adds errors of (K + 8) 2^-53 (1 + |a||b|)
/// of the product so far, in the Frobenius norm, which later steps make larger by their norms at most.
double norm_of_chunk(const Rwkv7Slice& f, int64_t first, int64_t tokens) {
  if (f.K > tokens || f.K > 64) return HUGE_VAL;
  const auto K = static_cast<size_t>(f.K);
  double growth = 1, pull = 0;
  for (int64_t t = first; t < first + tokens; ++t) {
    growth *= std::fmax(1, f.rho[static_cast<size_t>(t)]);
    pull = std::fmax(pull, norm(row(f.a, t), f.K) * norm(row(f.b, t), f.K));
  }
  if (!(growth * growth * (1 + pull) <= 0x1p16)) return HUGE_VAL;
  std::vector<double> y(K * K, 0), read(K);
  for (size_t i = 0; i < K; ++i) y[i * K + i] = 1;
  for (int64_t t = first; t < first + tokens; ++t) {
    std::fill(read.begin(), read.end(), 0);
    for (size_t c = 0; c < K; ++c)
      for (size_t j = 0; j < K; ++j) read[j] += row(f.a, t)[c] * y[c * K + j];
    for (size_t c = 0; c < K; ++c) {
      const double weight = exponential(row(f.w, t)[c]), b = row(f.b, t)[c];
      for (size_t j = 0; j < K; ++j) y[c * K + j] = weight * y[c * K + j] + b * read[j];
    }
  }
  const double steps = static_cast<double>(tokens) * static_cast<double>(f.K + 8);
  return spectral_norm(y, K) +
         steps * 0x1p-52 * (1 + pull) * growth * growth * std::sqrt(static_cast<double>(K));
}

/// How errors go on through a token of a tile.
void add_token(const Rwkv7Slice& f, int64_t t, const double* reader, const double* writer, int64_t row,
               TileReads& y) {
  y.reading.push_back(norm(reader, f.K)), y.entering.push_back(norm(writer, f.K));
  y.contractions.emplace_back();
  std::fill_n(y.carried.row(row), f.V, f.rho[static_cast<size_t>(t)]);
}

}  // namespace

Rwkv7States::Rwkv7States(const Rwkv7Slice& f, const Arithmetic& a, double underflow)
    : ChunkStates({f.T, f.K, f.V}, a, underflow), slice_(f) {}

double Rwkv7States::norm_of_tokens(int64_t first, int64_t tokens) const {
  return norm_of_chunk(slice_, first, tokens);
}

void Rwkv7States::step(int64_t t, NormState& s) const {
  const Rwkv7Slice& f = slice_;
  recurrence_.advance({row(f.w, t), row(f.b, t), row(f.a, t), row(f.k, t), row(f.v, t)}, f.rho_at(t), s);
}

void Rwkv7States::step_in_chunk(int64_t t, const double* update, const double* residual, NormState& s) const {
  const Rwkv7Slice& f = slice_;
  const double* zeros = f.zeros.data();
  recurrence_.advance_in_chunk({row(f.w, t), row(f.b, t), row(f.a, t), zeros, zeros}, f.rho_at(t), {}, update,
                               residual, s);
  recurrence_.advance_in_chunk({zeros, zeros, zeros, row(f.k, t), row(f.v, t)}, {1}, {}, nullptr, nullptr, s);
}

TileUpdates Rwkv7States::tile(int64_t first, int64_t n, const NormState& s) const {
  const Rwkv7Slice& f = slice_;
  const BoundModel model(arithmetic_);
  PassingState passing(s, f.K, f.V, model);
  TileReads reads = empty_reads(n, f.V);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t t = first + i;
    passing.read(row(f.a, t), nullptr, 1, arithmetic_, s.declared, s.own, i, reads);
    passing.decay(row(f.w, t)), passing.write(row(f.k, t), row(f.v, t), 1);
    add_token(f, t, row(f.a, t), row(f.b, t), i, reads);
  }
  return updates_of(rwkv7_tile(f, first, n, arithmetic_), reads, arithmetic_, s.declared);
}

Rwkv7Adjoints::Rwkv7Adjoints(const Rwkv7Slice& f, const SliceMatrix& d_o, const Arithmetic& a,
                             double underflow)
    : ChunkAdjoints({f.T, f.K, f.V}, f.r, d_o, f.p.scale, a, underflow), slice_(f) {}

double Rwkv7Adjoints::norm_of_tokens(int64_t first, int64_t tokens) const {
  return norm_of_chunk(slice_, first, tokens);
}

void Rwkv7Adjoints::step(int64_t t, NormState& G) const {
  recurrence_.advance(removal(t), slice_.rho_at(t), G);
}

void Rwkv7Adjoints::step_in_chunk(int64_t t, const double* update, const double* residual,
                                  NormState& G) const {
  recurrence_.advance_in_chunk(removal(t), slice_.rho_at(t), {}, update, residual, G);
}

NormStep Rwkv7Adjoints::removal(int64_t t) const {
  const double* zeros = slice_.zeros.data();
  return {row(slice_.w, t), row(slice_.a, t), row(slice_.b, t), zeros, zeros, 0};
}

TileUpdates Rwkv7Adjoints::tile(int64_t first, int64_t n, const NormState& G) const {
  const Rwkv7Slice& f = slice_;
  const BoundModel model(arithmetic_);
  PassingState passing(G, f.K, f.V, model);
  TileReads reads = empty_reads(n, f.V);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t t = first + n - 1 - i;
    passing.write(row(f.r, t), row(d_o_, t), scale_);
    passing.read(row(f.b, t), nullptr, 1, arithmetic_, G.declared, G.own, i, reads);
    passing.decay(row(f.w, t));
    add_token(f, t, row(f.b, t), row(f.a, t), i, reads);
  }
  const DeltaTile tile = rwkv7_tile(f, first, n, arithmetic_).backwards();
  return updates_of(tile, reads, arithmetic_, G.declared);
}

}  // namespace assay
