#include "reference/bounds/delta_chunk.h"

#include <algorithm>
#include <cmath>

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
  return DeltaTile(system, unit, decays, a);
}

void pass_token(const DeltaSlice& f, const DeltaFactors& token, const NormStep& step, ChunkPassages& y) {
  if (f.rates_by_channel() || token.rho.empty()) return y.forbid();
  y.add(step, token.rho[0], token.rates[0]);
}

/// A tile has one matrix for all value channels: where their rates differ nothing is promised.
void forbid_rates_by_channel(const DeltaSlice& f, TileUpdates& made) {
  if (f.rates_by_channel()) std::fill(made.residual.values.begin(), made.residual.values.end(), HUGE_VAL);
}

}  // namespace

void ChunkPairs::add(const double* x, const double* columns, double scale, double share) {
  Token y{std::vector<double>(x, x + slice_->K), std::vector<double>(columns, columns + slice_->V), share};
  for (double& value : y.x) value *= scale;
  for (double& value : y.columns) value = std::fabs(value);
  tokens_.push_back(std::move(y));
}

void ChunkPairs::decay(const DeltaFactors& token) {
  if (!slice_->decaying) return;
  for (Token& y : tokens_)
    for (size_t c = 0; c < y.x.size(); ++c) y.x[c] *= token.weight[c];
}

PairReads ChunkPairs::read(const double* key, const std::vector<double>& reach) const {
  PairReads y(reach.size(), 0);
  double square = 0;
  for (const Token& token : tokens_) {
    double sum = 0, size = 0;
    for (size_t c = 0; c < token.x.size(); ++c)
      sum += key[c] * token.x[c], size += std::fabs(key[c] * token.x[c]);
    const double pair = (std::fabs(sum) + kOwn * size) * kUp;
    for (size_t j = 0; j < y.size(); ++j) y[j] += pair * token.columns[j];
    square += token.share * pair * pair;
  }
  const double unsure = std::sqrt(square) * kUp;
  for (size_t j = 0; j < y.size(); ++j) y[j] = (y[j] + (unsure > 0 ? unsure * reach[j] : 0)) * kUp;
  return y;
}

DeltaStates::DeltaStates(const DeltaSlice& f, const Arithmetic& a, double underflow)
    : ChunkStates({f.T, f.K, f.V}, a, underflow), slice_(f), pairs_(f) {}

void DeltaStates::pass(int64_t t, ChunkPassages& y) const {
  const DeltaFactors token(slice_, t);
  pass_token(slice_, token, token.forward(slice_, t), y);
}

void DeltaStates::step(int64_t t, NormState& s) const {
  const DeltaFactors token(slice_, t);
  recurrence_.advance(token.forward(slice_, t), token.rho, s);
}

void DeltaStates::step_in_chunk(int64_t t, const double* update, const double* residual, const double* rest,
                                NormState& s) const {
  const DeltaFactors token(slice_, t);
  recurrence_.advance_in_chunk(token.forward(slice_, t), token.rho, token.contraction, update, residual, rest,
                               s);
}

TileUpdates DeltaStates::tile(int64_t first, int64_t n, const NormState& s) {
  const std::vector<DeltaFactors> tokens = factors_of(slice_, first, n);
  const BoundModel model(arithmetic_);
  PassingState passing(s, slice_.K, slice_.V, model);
  TileReads reads = empty_reads(n, slice_.V);
  if (first % arithmetic_.chunk == 0) pairs_.begin();
  const bool apart = has_pairs(arithmetic_);
  PairReads pairs;
  for (int64_t i = 0; i < n; ++i) {
    const DeltaFactors& token = tokens[static_cast<size_t>(i)];
    const double beta = token.rates[0], *key = row(slice_.k, first + i);
    passing.decay(token.g.data());
    if (apart) pairs_.decay(token), pairs = pairs_.read(key, s.reach);
    passing.read(key, row(slice_.v, first + i), beta, arithmetic_, s.declared, s.own, i, reads,
                 apart ? &pairs : nullptr, held());
    reads.reading.push_back(std::fabs(beta) * norm(token.decayed.data(), slice_.K));
    reads.entering.push_back(norm(row(slice_.k, first + i), slice_.K));
    reads.contractions.push_back(token.contraction), reads.shares.push_back(token.contraction.share);
    std::copy(token.rho.begin(), token.rho.end(), reads.carried.row(i));
  }
  const DeltaTile matrices = tile_of(slice_, first, tokens, arithmetic_);
  TileUpdates made = updates_of(matrices, reads, arithmetic_, s.declared, s.reach);
  forbid_rates_by_channel(slice_, made);
  if (!apart) return made;
  ChunkPairs own(slice_);
  for (int64_t i = 0; i < n; ++i) {
    const DeltaFactors& token = tokens[static_cast<size_t>(i)];
    own.decay(token), own.add(row(slice_.k, first + i), made.update.row(i), 1, token.contraction.share);
  }
  pairs_.append(own);
  return made;
}

DeltaAdjoints::DeltaAdjoints(const DeltaSlice& f, const SliceMatrix& d_o, const Arithmetic& a,
                             double underflow)
    : ChunkAdjoints({f.T, f.K, f.V}, f.q, d_o, f.p.scale, a, underflow), slice_(f), pairs_(f) {}

void DeltaAdjoints::pass(int64_t t, ChunkPassages& y) const {
  const DeltaFactors token(slice_, t);
  pass_token(slice_, token, token.backward(slice_, t), y);
}

void DeltaAdjoints::step(int64_t t, NormState& G) const {
  const DeltaFactors token(slice_, t);
  recurrence_.advance(token.backward(slice_, t), token.rho, G);
}

void DeltaAdjoints::step_in_chunk(int64_t t, const double* update, const double* residual, const double* rest,
                                  NormState& G) const {
  const DeltaFactors token(slice_, t);
  const double beta = std::fabs(token.rates[0]) * kUp;
  std::vector<double> entering(residual, residual + slice_.V), passing(rest, rest + slice_.V);
  for (double& x : entering) x *= beta;
  for (double& x : passing) x *= beta;
  recurrence_.advance_in_chunk(token.backward(slice_, t), token.rho, token.contraction, update,
                               entering.data(), passing.data(), G);
}

TileUpdates DeltaAdjoints::tile(int64_t first, int64_t n, const NormState& G) {
  const std::vector<DeltaFactors> tokens = factors_of(slice_, first, n);
  const BoundModel model(arithmetic_);
  PassingState passing(G, slice_.K, slice_.V, model);
  TileReads reads = empty_reads(n, slice_.V);
  if (first + n == slice_.T || (first + n) % arithmetic_.chunk == 0) pairs_.begin();
  const bool apart = has_pairs(arithmetic_);
  PairReads pairs;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t t = first + n - 1 - i;
    const DeltaFactors& token = tokens[static_cast<size_t>(t - first)];
    const double beta = std::fabs(token.rates[0]);
    passing.write(row(readers_, t), row(d_o_, t), scale_);
    if (apart) {
      pairs_.add(row(readers_, t), row(d_o_, t), scale_, 0);
      pairs = pairs_.read(row(slice_.k, t), G.reach), pairs_.decay(token);
    }
    passing.read(row(slice_.k, t), nullptr, 1, arithmetic_, G.declared, G.own, i, reads,
                 apart ? &pairs : nullptr, held());
    passing.decay(token.g.data());
    reads.reading.push_back(norm(row(slice_.k, t), slice_.K));
    reads.entering.push_back(beta * norm(token.decayed.data(), slice_.K));
    reads.contractions.push_back(token.contraction);
    reads.contractions.back().gain *= beta;
    // Rows are made without beta, which the state then gets them with.
    reads.shares.push_back(token.contraction.known ? token.contraction.share / (beta * beta) : 0);
    std::copy(token.rho.begin(), token.rho.end(), reads.carried.row(i));
  }
  const DeltaTile tile = tile_of(slice_, first, tokens, arithmetic_).backwards();
  TileUpdates made = updates_of(tile, reads, arithmetic_, G.declared, G.reach);
  // What enters is beta times it.
  for (int64_t i = 0; i < n; ++i) {
    const double beta = std::fabs(tokens[static_cast<size_t>(n - 1 - i)].rates[0]);
    for (int64_t j = 0; j < slice_.V; ++j) made.update(i, j) *= beta * kUp;
  }
  forbid_rates_by_channel(slice_, made);
  if (!apart) return made;
  ChunkPairs own(slice_);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t t = first + n - 1 - i;
    const DeltaFactors& token = tokens[static_cast<size_t>(t - first)];
    own.add(row(slice_.k, t), made.update.row(i), 1, token.contraction.share), own.decay(token);
  }
  pairs_.append(own);
  return made;
}

}  // namespace assay
