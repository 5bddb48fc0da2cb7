#include "reference/bounds/delta_chunk.h"

#include <algorithm>
#include <cmath>

#include "reference/bounds/norm_wise.h"

namespace assay {
namespace {

constexpr double kOwn = kOwnReads, kUp = kReadsUp;

std::vector<DeltaFactors> factors_of(const DeltaSlice& f, int64_t first, int64_t n) {
  std::vector<DeltaFactors> y;
  for (int64_t i = 0; i < n; ++i) y.emplace_back(f, first + i);
  return y;
}

/// The matrices of the tokens from `first` on.
DeltaTile tile_of(const DeltaSlice& f, int64_t first, const std::vector<DeltaFactors>& tokens,
                  const Arithmetic& a) {
  const auto n = static_cast<int64_t>(tokens.size());
  const BoundModel model(a);
  TileMatrix system(n, n), unit(n, n), decays(n, n);
  for (int64_t j = 0; j < n; ++j) {
    std::vector<double> w(static_cast<size_t>(f.K), 1), with_errors = w;
    system(j, j) = unit(j, j) = 1;
    for (int64_t i = j + 1; i < n; ++i) {
      const DeltaFactors& token = tokens[static_cast<size_t>(i)];
      double sum = 0, size = 0, most = 0;
      for (int64_t c = 0; c < f.K; ++c) {
        const auto m = static_cast<size_t>(c);
        const double e = exponential(token.g[m]), x = at(f.k, first + i, c) * at(f.k, first + j, c);
        w[m] *= e, with_errors[m] *= e * (1 + model.decay_error(token.g[m]));
        sum += x * w[m], size += std::fabs(x) * w[m], most += std::fabs(x) * with_errors[m];
      }
      const double beta = token.rates[0];
      system(i, j) = beta * sum, unit(i, j) = std::fabs(beta) * size * kUp;
      decays(i, j) = std::fabs(beta) * (std::fmax(most - size, 0) + kOwn * most);
    }
  }
  return DeltaTile(system, unit, decays, a.solve);
}

/// A tile has one matrix for all value channels: where their rates differ nothing is promised.
void forbid_rates_by_channel(const DeltaSlice& f, TileUpdates& made) {
  if (f.rates_by_channel()) std::fill(made.residual.values.begin(), made.residual.values.end(), HUGE_VAL);
}

}  // namespace

/// By columns; each token adds errors of (n + 8) 2^-50 of the product's Frobenius norm, which is at most sqrt
/// K.
double norm_of_tokens(const DeltaSlice& f, int64_t first, int64_t tokens) {
  if (f.K > tokens || f.K > 64 || f.rates_by_channel()) return HUGE_VAL;
  const auto K = static_cast<size_t>(f.K);
  std::vector<double> y(K * K, 0), read(K);
  for (size_t i = 0; i < K; ++i) y[i * K + i] = 1;
  for (int64_t t = first; t < first + tokens; ++t) {
    const DeltaFactors token(f, t);
    if (token.rho.empty() || !(token.rho[0] <= 1 + 0x1p-30)) return HUGE_VAL;
    const double *key = row(f.k, t), beta = token.rates[0];
    std::fill(read.begin(), read.end(), 0);
    for (size_t c = 0; c < K; ++c) {
      const double weight = exponential(token.g[c]);
      for (size_t j = 0; j < K; ++j) y[c * K + j] *= weight, read[j] += key[c] * y[c * K + j];
    }
    for (size_t c = 0; c < K; ++c)
      for (size_t j = 0; j < K; ++j) y[c * K + j] -= beta * key[c] * read[j];
  }
  return spectral_norm(y, K) + 0x1p-28;
}

DeltaStates::DeltaStates(const DeltaSlice& f, const Arithmetic& a, double underflow)
    : ChunkStates({f.T, f.K, f.V}, a, underflow), slice_(f) {}

double DeltaStates::norm_of_tokens(int64_t first, int64_t tokens) const {
  return assay::norm_of_tokens(slice_, first, tokens);
}

void DeltaStates::step(int64_t t, NormState& s) const {
  const DeltaFactors token(slice_, t);
  recurrence_.advance(token.forward(slice_, t), token.rho, s);
}

void DeltaStates::step_in_chunk(int64_t t, const double* update, const double* residual, NormState& s) const {
  const DeltaFactors token(slice_, t);
  recurrence_.advance_in_chunk(token.forward(slice_, t), token.rho, token.contraction, update, residual, s);
}

TileUpdates DeltaStates::tile(int64_t first, int64_t n, const NormState& s) const {
  const std::vector<DeltaFactors> tokens = factors_of(slice_, first, n);
  const BoundModel model(arithmetic_);
  PassingState passing(s, slice_.K, slice_.V, model);
  TileReads reads = empty_reads(n, slice_.V);
  for (int64_t i = 0; i < n; ++i) {
    const DeltaFactors& token = tokens[static_cast<size_t>(i)];
    const double beta = token.rates[0];
    passing.decay(token.g.data());
    passing.read(row(slice_.k, first + i), row(slice_.v, first + i), beta, arithmetic_, s.declared, s.own, i,
                 reads);
    reads.reading.push_back(std::fabs(beta) * norm(token.decayed.data(), slice_.K));
    reads.entering.push_back(norm(row(slice_.k, first + i), slice_.K));
    reads.contractions.push_back(token.contraction);
    std::copy(token.rho.begin(), token.rho.end(), reads.carried.row(i));
  }
  TileUpdates made = updates_of(tile_of(slice_, first, tokens, arithmetic_), reads, arithmetic_, s.declared);
  forbid_rates_by_channel(slice_, made);
  return made;
}

DeltaAdjoints::DeltaAdjoints(const DeltaSlice& f, const SliceMatrix& d_o, const Arithmetic& a,
                             double underflow)
    : ChunkAdjoints({f.T, f.K, f.V}, f.q, d_o, f.p.scale, a, underflow), slice_(f) {}

double DeltaAdjoints::norm_of_tokens(int64_t first, int64_t tokens) const {
  return assay::norm_of_tokens(slice_, first, tokens);
}

void DeltaAdjoints::step(int64_t t, NormState& G) const {
  const DeltaFactors token(slice_, t);
  recurrence_.advance(token.backward(slice_, t), token.rho, G);
}

void DeltaAdjoints::step_in_chunk(int64_t t, const double* update, const double* residual,
                                  NormState& G) const {
  const DeltaFactors token(slice_, t);
  std::vector<double> entering(residual, residual + slice_.V);
  for (double& x : entering) x = std::fabs(token.rates[0]) * x * kUp;
  recurrence_.advance_in_chunk(token.backward(slice_, t), token.rho, token.contraction, update,
                               entering.data(), G);
}

TileUpdates DeltaAdjoints::tile(int64_t first, int64_t n, const NormState& G) const {
  const std::vector<DeltaFactors> tokens = factors_of(slice_, first, n);
  const BoundModel model(arithmetic_);
  PassingState passing(G, slice_.K, slice_.V, model);
  TileReads reads = empty_reads(n, slice_.V);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t t = first + n - 1 - i;
    const DeltaFactors& token = tokens[static_cast<size_t>(t - first)];
    const double beta = std::fabs(token.rates[0]);
    passing.write(row(readers_, t), row(d_o_, t), scale_);
    passing.read(row(slice_.k, t), nullptr, 1, arithmetic_, G.declared, G.own, i, reads);
    passing.decay(token.g.data());
    reads.reading.push_back(norm(row(slice_.k, t), slice_.K));
    reads.entering.push_back(beta * norm(token.decayed.data(), slice_.K));
    reads.contractions.push_back(token.contraction);
    reads.contractions.back().gain *= beta;
    std::copy(token.rho.begin(), token.rho.end(), reads.carried.row(i));
  }
  const DeltaTile tile = tile_of(slice_, first, tokens, arithmetic_).backwards();
  TileUpdates made = updates_of(tile, reads, arithmetic_, G.declared);
  // What enters is beta times it.
  for (int64_t i = 0; i < n; ++i) {
    const double beta = std::fabs(tokens[static_cast<size_t>(n - 1 - i)].rates[0]);
    for (int64_t j = 0; j < slice_.V; ++j) made.update(i, j) *= beta * kUp;
  }
  forbid_rates_by_channel(slice_, made);
  return made;
}

}  // namespace assay
