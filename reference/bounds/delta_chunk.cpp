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
    : slice_(f), arithmetic_(a), recurrence_(f.K, f.V, a, underflow) {
  if (!in_chunks(a)) return;
  for (int64_t t = 0; t < f.T; t += a.chunk)
    wholes_.push_back(norm_of_tokens(f, t, std::min(a.chunk, f.T - t)));
  updates_ = residuals_ = TileMatrix(f.T, f.V);
}

NormState DeltaStates::found_by(int64_t t, const NormState& s) const {
  NormState y = s;
  if (!in_chunks(arithmetic_) || t % arithmetic_.chunk != 0) return y;
  finish(y), recurrence_.enter_chunk(y, wholes_[static_cast<size_t>(t / arithmetic_.chunk)]);
  return y;
}

void DeltaStates::finish(NormState& s) const {
  if (s.in_chunk()) recurrence_.leave_chunk(s);
}

double DeltaStates::residual(int64_t t, int64_t j) const {
  return in_chunks(arithmetic_) ? residuals_(t, j) : 0;
}

void DeltaStates::advance(int64_t t, NormState& s) {
  const DeltaFactors token(slice_, t);
  const NormStep step = token.forward(slice_, t);
  if (!in_chunks(arithmetic_)) return recurrence_.advance(step, token.rho, s);
  if (t % arithmetic_.chunk == 0) s = found_by(t, s);
  if (t == taken_) take_tile(t, s);
  recurrence_.advance_in_chunk(step, token.rho, token.contraction, updates_.row(t), residuals_.row(t), s);
}

void DeltaStates::take_tile(int64_t first, const NormState& s) {
  const int64_t in_chunk = first % arithmetic_.chunk;
  const int64_t n = std::min({tile_tokens(arithmetic_), arithmetic_.chunk - in_chunk, slice_.T - first});
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
  std::copy(made.update.values.begin(), made.update.values.end(), updates_.row(first));
  std::copy(made.residual.values.begin(), made.residual.values.end(), residuals_.row(first));
  taken_ = first + n;
}

DeltaAdjoints::DeltaAdjoints(const DeltaSlice& f, const SliceMatrix& d_o, const Arithmetic& a,
                             double underflow)
    : slice_(f), d_o_(d_o), arithmetic_(a), recurrence_(f.K, f.V, a, underflow), first_(f.T) {}

void DeltaAdjoints::finish(NormState& s) const {
  if (s.in_chunk()) recurrence_.leave_chunk(s);
}

void DeltaAdjoints::read_out(int64_t t, NormState& G) {
  const double* zeros = slice_.zeros.data();
  // A step with weights one that reads nothing.
  const NormStep step{zeros, zeros, zeros, row(slice_.q, t), row(d_o_, t), slice_.p.scale};
  if (!in_chunks(arithmetic_)) return recurrence_.advance(step, {1}, G);
  if (t + 1 == slice_.T || (t + 1) % arithmetic_.chunk == 0) {
    const int64_t first = t - t % arithmetic_.chunk;
    finish(G), recurrence_.enter_chunk(G, norm_of_tokens(slice_, first, t + 1 - first));
  }
  if (t < first_) take_tile(t, G);
  recurrence_.advance_in_chunk(step, {1}, {}, nullptr, nullptr, G);
}

void DeltaAdjoints::advance(int64_t t, NormState& G) {
  const DeltaFactors token(slice_, t);
  const NormStep step = token.backward(slice_, t);
  if (!in_chunks(arithmetic_)) return recurrence_.advance(step, token.rho, G);
  const int64_t i = first_ + updates_.rows - 1 - t;
  std::vector<double> entering(static_cast<size_t>(slice_.V));
  for (size_t j = 0; j < entering.size(); ++j)
    entering[j] = std::fabs(token.rates[0]) * residuals_(i, static_cast<int64_t>(j)) * kUp;
  recurrence_.advance_in_chunk(step, token.rho, token.contraction, updates_.row(i), entering.data(), G);
}

double DeltaAdjoints::residual(int64_t t, int64_t j) const {
  return in_chunks(arithmetic_) ? residuals_(first_ + residuals_.rows - 1 - t, j) : 0;
}

void DeltaAdjoints::take_tile(int64_t last, const NormState& G) {
  first_ = last - last % arithmetic_.chunk % tile_tokens(arithmetic_);
  const int64_t n = last - first_ + 1;
  const std::vector<DeltaFactors> tokens = factors_of(slice_, first_, n);
  const BoundModel model(arithmetic_);
  PassingState passing(G, slice_.K, slice_.V, model);
  TileReads reads = empty_reads(n, slice_.V);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t t = last - i;
    const DeltaFactors& token = tokens[static_cast<size_t>(t - first_)];
    const double beta = std::fabs(token.rates[0]);
    passing.write(row(slice_.q, t), row(d_o_, t), slice_.p.scale);
    passing.read(row(slice_.k, t), nullptr, 1, arithmetic_, G.declared, G.own, i, reads);
    passing.decay(token.g.data());
    reads.reading.push_back(norm(row(slice_.k, t), slice_.K));
    reads.entering.push_back(beta * norm(token.decayed.data(), slice_.K));
    reads.contractions.push_back(token.contraction);
    reads.contractions.back().gain *= beta;
    std::copy(token.rho.begin(), token.rho.end(), reads.carried.row(i));
  }
  const DeltaTile tile = tile_of(slice_, first_, tokens, arithmetic_).backwards();
  TileUpdates made = updates_of(tile, reads, arithmetic_, G.declared);
  // What enters is beta times it.
  for (int64_t i = 0; i < n; ++i) {
    const double beta = std::fabs(tokens[static_cast<size_t>(last - i - first_)].rates[0]);
    for (int64_t j = 0; j < slice_.V; ++j) made.update(i, j) *= beta * kUp;
  }
  forbid_rates_by_channel(slice_, made);
  updates_ = made.update, residuals_ = made.residual;
}

}  // namespace assay
