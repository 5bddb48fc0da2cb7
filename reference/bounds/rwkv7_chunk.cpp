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
  return DeltaTile(system, unit, decays, a);
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

void Rwkv7States::pass(int64_t t, ChunkPassages& y) const {
  y.add(removal(t), slice_.rho_at(t)[0], 1);
}

NormStep Rwkv7States::removal(int64_t t) const {
  const double* zeros = slice_.zeros.data();
  return {row(slice_.w, t), row(slice_.b, t), row(slice_.a, t), zeros, zeros};
}

void Rwkv7States::step(int64_t t, NormState& s) const {
  const Rwkv7Slice& f = slice_;
  recurrence_.advance({row(f.w, t), row(f.b, t), row(f.a, t), row(f.k, t), row(f.v, t)}, f.rho_at(t), s);
}

void Rwkv7States::step_in_chunk(int64_t t, const double* update, const double* residual, const double* rest,
                                NormState& s) const {
  const Rwkv7Slice& f = slice_;
  const double* zeros = f.zeros.data();
  recurrence_.advance_in_chunk(removal(t), f.rho_at(t), {}, update, residual, rest, s);
  recurrence_.advance_in_chunk({zeros, zeros, zeros, row(f.k, t), row(f.v, t)}, {1}, {}, nullptr, nullptr,
                               nullptr, s);
}

TileUpdates Rwkv7States::tile(int64_t first, int64_t n, const NormState& s) {
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
  return updates_of(rwkv7_tile(f, first, n, arithmetic_), reads, arithmetic_, s.declared, s.reach);
}

Rwkv7Adjoints::Rwkv7Adjoints(const Rwkv7Slice& f, const SliceMatrix& d_o, const Arithmetic& a,
                             double underflow)
    : ChunkAdjoints({f.T, f.K, f.V}, f.r, d_o, f.p.scale, a, underflow), slice_(f) {}

void Rwkv7Adjoints::pass(int64_t t, ChunkPassages& y) const {
  y.add(removal(t), slice_.rho_at(t)[0], 1);
}

void Rwkv7Adjoints::step(int64_t t, NormState& G) const {
  recurrence_.advance(removal(t), slice_.rho_at(t), G);
}

void Rwkv7Adjoints::step_in_chunk(int64_t t, const double* update, const double* residual, const double* rest,
                                  NormState& G) const {
  recurrence_.advance_in_chunk(removal(t), slice_.rho_at(t), {}, update, residual, rest, G);
}

NormStep Rwkv7Adjoints::removal(int64_t t) const {
  const double* zeros = slice_.zeros.data();
  return {row(slice_.w, t), row(slice_.a, t), row(slice_.b, t), zeros, zeros, 0};
}

TileUpdates Rwkv7Adjoints::tile(int64_t first, int64_t n, const NormState& G) {
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
  return updates_of(tile, reads, arithmetic_, G.declared, G.reach);
}

}  // namespace assay
