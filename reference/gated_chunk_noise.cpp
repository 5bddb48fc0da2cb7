#include "reference/gated_chunk_noise.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "reference/elements.h"
#include "reference/kept_state.h"

namespace assay {

GatedNoiseModel::GatedNoiseModel(const Problem& p, const GatedForm& form, const Slice& s, bool backward_,
                                 const NoiseVisit& visitor)
    : x(p, form),
      slice(s),
      visit(visitor),
      backward(backward_),
      K(p.sizes.K),
      V(p.sizes.V),
      H(p.sizes.H),
      u(operand_roundoff(x.k.dtype)),
      split(u >= 1),
      scale(static_cast<float>(p.scale)) {
  amplitudes =
      backward ? noise_amplitudes(p.adjoint, u, x.decays()) : noise_amplitudes(p.arithmetic, u, x.decays());
  const int64_t chunk = backward ? p.adjoint.state.chunk : p.arithmetic.chunk;
  length = chunk > 0 ? chunk : std::max<int64_t>(s.tokens, 1);
  if (backward) {
    d_o = &require_input(p, "do", p.sizes.B * p.sizes.T * H * V);
    const int64_t sequences =
        p.cu_seqlens.empty() ? p.sizes.B : static_cast<int64_t>(p.cu_seqlens.size()) - 1;
    dS = find_input(p, "dfinal_state", sequences * H * K * V);
  }
  for (const double of_channel : x.read_bonus(s.h)) bonus.push_back(static_cast<float>(of_channel));
  const double crossed = chunks_crossed();
  rests = backward ? noise_rests(p.adjoint, u, crossed, x.decays())
                   : noise_rests(p.arithmetic, u, crossed, x.decays());
}

double GatedNoiseModel::chunks_crossed() const {
  const auto rows = static_cast<size_t>(K);
  std::vector<double> crossed(rows), whole(rows);
  double most = 0;
  for (int64_t first = 0; first < slice.tokens; first += length) {
    const int64_t tokens = std::min(length, slice.tokens - first);
    std::vector<double> g(static_cast<size_t>(tokens * K)), a(g.size());
    x.read_decays(slice, first, tokens, g.data(), a.data());
    std::fill(whole.begin(), whole.end(), 1);
    for (size_t i = 0; i < a.size(); i += rows)
      for (size_t c = 0; c < rows; ++c) whole[c] *= a[i + c];
    for (size_t c = 0; c < rows; ++c)
      crossed[c] = 1 + whole[c] * crossed[c], most = std::fmax(most, crossed[c]);
  }
  return most;
}

std::vector<double> GatedNoiseModel::decoded_state(const Tensor& tensor) const {
  std::vector<double> row(static_cast<size_t>(K * V));
  decode_run(tensor, (slice.n * H + slice.h) * K * V, K * V, row.data());
  return row;
}

GatedChunkNoise::GatedChunkNoise(const GatedNoiseModel& of, int64_t number)
    : of_(of),
      first_(number * of.length),
      tokens_(std::min(of.length, of.slice.tokens - first_)),
      chunk_(of.slice, of.K, of.u) {
  const auto rows = [&](const Tensor& tensor, int64_t width, std::vector<float>& y) {
    std::vector<double> row(static_cast<size_t>(tokens_ * width));
    decode_rows(tensor, of.slice.first_row + first_, tokens_, of.H, of.slice.h, width, row.data());
    y.assign(row.begin(), row.end());
  };
  rows(of.x.q, of.K, q_), rows(of.x.k, of.K, k_), rows(of.x.v, of.V, v_);
  if (of.backward) rows(*of.d_o, of.V, do_);
  std::vector<double> g(q_.size()), a(q_.size());
  of.x.read_decays(of.slice, first_, tokens_, g.data(), a.data());
  chunk_.begin(number, tokens_, a, of.x.exclusive());
}

void GatedChunkNoise::advance(SampledState& S) const {
  chunk_.write(S, keys(), chunk_.after(), v_, 1);
  if (of_.amplitudes.S_end > 0) chunk_.round(S, NoiseSource::state_end, of_.amplitudes.S_end);
}

void GatedChunkNoise::retreat(SampledState& G) const {
  const ChunkOperand queries{
      .x = q_, .source = NoiseSource::query, .amplitude = of_.amplitudes.query, .wide = of_.split};
  chunk_.write(G, queries, chunk_.into(), do_, of_.scale);
  if (of_.amplitudes.G_end > 0) chunk_.round(G, NoiseSource::adjoint_end, of_.amplitudes.G_end);
}

std::vector<float> GatedChunkNoise::state_reads() const {
  std::vector<float> reads(q_.size());
  for (size_t i = 0; i < reads.size(); ++i) reads[i] = of_.scale * q_[i] * chunk_.into()[i];
  return reads;
}

ChunkOperand GatedChunkNoise::keys() const {
  return {.x = k_, .source = NoiseSource::key, .amplitude = of_.amplitudes.key, .wide = of_.split};
}

void GatedChunkNoise::draw_in_scores() {
  if (!of_.amplitudes.scaled_in_score) return;
  key_noise_ = chunk_.in_scores(NoiseSource::key_in_score, of_.amplitudes.key);
  query_noise_ = chunk_.in_scores(NoiseSource::query_in_score,
                                  of_.backward ? of_.amplitudes.query : of_.amplitudes.read);
}

/// The scores of one token with all up to itself, and what they make of the rows that they are multiplied
/// with.
struct GatedChunkNoise::ScoreRow {
  std::vector<float> value, squares, common;
  std::vector<Lanes> noise;

  explicit ScoreRow(int64_t tokens)
      : value(static_cast<size_t>(tokens)), squares(value), common(value), noise(value.size()) {}

  /// Row t of y gets those of tokens 0 .. t times their rows.
  void add_to_row(int64_t t, const std::vector<float>& rows, const std::vector<float>& row_squares,
                  SampledRows& y) const {
    const int64_t at = t * y.columns;
    add(1, t + 1, rows.data(), row_squares.data(), at, y);
  }
  /// Rows 0 .. t of y get theirs times row t.
  void add_of_row(int64_t t, const std::vector<float>& rows, const std::vector<float>& row_squares,
                  SampledRows& y) const {
    const int64_t at = t * y.columns;
    add(t + 1, 1, rows.data() + at, row_squares.data() + at, 0, y);
  }

 private:
  void add(int64_t rows, int64_t inner, const float* from, const float* from_squares, int64_t at,
           SampledRows& y) const {
    const SampledLoops& loops = sampled_loops();
    loops.samples_times_numbers({rows, inner, y.columns, noise.data(), 1, 1, from, y.near.data() + at});
    loops.numbers_times_numbers({rows, inner, y.columns, common.data(), 1, 1, from, y.common.data() + at});
    loops.numbers_times_numbers(
        {rows, inner, y.columns, squares.data(), 1, 1, from_squares, y.squares.data() + at});
  }
};

/// scale q_t w k_j, of `count` tokens j.
SampledScores GatedChunkNoise::scores(int64_t t, int64_t count, const float* w, ScoreRow& row) const {
  SampledScores y{.K = of_.K, .count = count, .q = q_.data() + t * of_.K, .k = k_.data(), .w = w};
  y.scale = of_.scale, y.u = chunk_.u();
  if (of_.amplitudes.scaled_in_score)
    y.query_noise = query_noise_.data() + t * of_.K, y.key_noise = key_noise_.data();
  y.value = row.value.data(), y.squares = row.squares.data(), y.common = row.common.data();
  y.noise = row.noise.data();
  return y;
}

/// A token's own with the bonus.
void GatedChunkNoise::own_score(int64_t t, ScoreRow& row) const {
  const auto i = static_cast<size_t>(t);
  row.value[i] = row.squares[i] = row.common[i] = 0, row.noise[i] = Lanes{};
  for (int64_t c = 0; c < of_.K; ++c) {
    const float term = q_[key(t, c)] * of_.bonus[static_cast<size_t>(c)] * k_[key(t, c)] * of_.scale;
    row.value[i] += term, row.squares[i] += term * term;
  }
}

/// What a score's rounding is relative to: of split operands also sums on the way to it.
float GatedChunkNoise::score_size(const ScoreRow& row, int64_t j) const {
  const auto i = static_cast<size_t>(j);
  return of_.split ? std::sqrt(row.value[i] * row.value[i] + row.squares[i]) : binade(row.value[i]);
}

/// Variances along a direction of what scores make of it.
struct GatedChunkNoise::ScoreVariance {
  std::vector<float> along;             ///< tokens x tokens: direction_t . v_j
  std::vector<float> by_query, by_key;  ///< tokens x K: what a relative error of either makes
  double roundings = 0;                 ///< of the scores' own
};

/// With the scores' own roundings.
void GatedChunkNoise::add_scores(SampledRows& o, ScoreVariance& variance) const {
  ScoreRow row(tokens_);
  std::vector<float> sizes(row.value.size());
  std::vector<Lanes> rounding(sizes.size());
  const std::vector<float> squares = squares_of(v_);
  const auto add_row = [&](int64_t t) {
    for (int64_t j = 0; j <= t; ++j) sizes[static_cast<size_t>(j)] = of_.amplitudes.o * score_size(row, j);
    chunk_.draw(NoiseSource::score, t * tokens_, sizes.data(), t + 1, rounding.data());
    for (size_t j = 0; j <= static_cast<size_t>(t); ++j) {
      row.noise[j] += rounding[j];
      if (variance.along.empty()) continue;
      const auto own = static_cast<double>(sizes[j] * variance.along[static_cast<size_t>(t * tokens_) + j]);
      variance.roundings += own * own / 3;
    }
    row.add_to_row(t, v_, squares, o);
  };
  chunk_.for_each_row(
      [&](int64_t t, int64_t count, const float* w) {
        SampledScores p = scores(t, count, w, row);
        if (!variance.by_key.empty())
          p.along = variance.along.data() + t * tokens_, p.by_query = variance.by_query.data() + t * of_.K,
          p.by_key = variance.by_key.data();
        sampled_loops().scores(p);
        if (count > t) add_row(t);
      },
      [&](int64_t t) { own_score(t, row), add_row(t); });
}

void GatedChunkNoise::outputs(const SampledState& S, const KeptDirection& kept) {
  draw_in_scores();
  const NoiseAmplitudes& amplitudes = of_.amplitudes;
  SampledRows o(tokens_, of_.V);
  chunk_.read(S, chunk_.copied(S, NoiseSource::state_copy, amplitudes.o), queries(), chunk_.into(), of_.scale,
              of_.noisy_S(), o);
  ScoreVariance scores;
  if (of_.split) {
    add_scores(o, scores);
    return of_.visitor(of_.rests.o).rows("o", first_, o);
  }
  scores.along.resize(static_cast<size_t>(tokens_ * tokens_));
  const std::vector<float> ones(scores.along.size(), 1.0f);
  contract_numbers({tokens_, tokens_, of_.V, ones.data(), v_.data(), kept.rows.data(), scores.along.data()});
  if (amplitudes.scaled_in_score) scores.by_query.resize(q_.size()), scores.by_key.resize(q_.size());
  add_scores(o, scores);
  double variance =
      kept.variance + scores.roundings +
      variance_of_reads(chunk_, S, amplitudes.o, queries(), chunk_.into(), of_.scale, kept.rows);
  for_each_element(scores.by_key.size(), static_cast<size_t>(of_.K), [&](size_t i, size_t, size_t column) {
    const auto c = static_cast<int64_t>(column);
    const auto query = static_cast<double>(chunk_.in_score_size(amplitudes.read, c) * scores.by_query[i]),
               key = static_cast<double>(chunk_.in_score_size(amplitudes.key, c) * scores.by_key[i]);
    variance += (query * query + key * key) / 3;
  });
  const std::vector<float> reads = state_reads();
  const StateReadout readout{reads, chunk_.whole(), kept.rows, variance};
  of_.visitor(of_.rests.o).rows("o", first_, o, &readout);
}

void GatedChunkNoise::gradients(const SampledState& S, const SampledState& G) {
  draw_in_scores();
  const NoiseAmplitudes& amplitudes = of_.amplitudes;
  Gradients y(tokens_, of_.K, of_.V);
  const std::vector<float>&into = chunk_.into(), &after = chunk_.after();
  chunk_.contract(chunk_.copied(S, NoiseSource::state_copy, amplitudes.dq), do_, into, of_.scale, y.dq.near);
  chunk_.contract(chunk_.copied(G, NoiseSource::adjoint_copy, amplitudes.dk), v_, after, 1, y.dk.near);
  if (of_.noisy_S())
    chunk_.contract(S.noise, do_, into, of_.scale, y.dq.far),
        chunk_.contract(S.common, do_, into, of_.scale, y.dq.common);
  if (of_.noisy_G())
    chunk_.contract(G.noise, v_, after, 1, y.dk.far), chunk_.contract(G.common, v_, after, 1, y.dk.common);
  chunk_.read(G, chunk_.copied(G, NoiseSource::adjoint_copy, amplitudes.dv),
              {k_, NoiseSource::read, amplitudes.read}, after, 1, of_.noisy_G(), y.dv);
  chunk_.contract_squares(S.squares, do_, into, of_.scale, y.dq.squares);
  chunk_.contract_squares(G.squares, v_, after, 1, y.dk.squares);
  const bool gates = of_.x.gate && !of_.split;
  if (gates) gates_across(S, G, y);
  add_pairs(y);
  const GatedForm& form = of_.x.form;
  of_.visitor(of_.rests.dq).rows("d" + std::string(form.q), first_, y.dq);
  of_.visitor(of_.rests.dk).rows("d" + std::string(form.k), first_, y.dk);
  of_.visitor(of_.rests.dv).rows("d" + std::string(form.v), first_, y.dv);
  if (gates) visit_gates(y.dg);
}

/// scale do_t . v_j of the tokens 0 .. t; `ones`: as many as values.
void GatedChunkNoise::score_values(int64_t t, const std::vector<float>& ones, ScoreRow& row) const {
  sampled_loops().scores({.K = of_.V,
                          .count = t + 1,
                          .q = do_.data() + t * of_.V,
                          .k = v_.data(),
                          .w = ones.data(),
                          .scale = of_.scale,
                          .value = row.value.data(),
                          .squares = row.squares.data(),
                          .common = row.common.data()});
}

/// What pairs of tokens of the chunk add; the terms with the bonus are made in fp32 in dq and dk.
void GatedChunkNoise::add_pairs(Gradients& y) const {
  ScoreRow row(tokens_), of_values(tokens_);
  const std::vector<float> squares = squares_of(do_), ones(do_.size(), 1.0f);
  std::vector<Lanes>& rounding = of_values.noise;
  const std::vector<float> units(rounding.size(), 1.0f);
  const auto add_row = [&](int64_t t) {
    for (int64_t j = 0; j <= t; ++j)
      row.noise[static_cast<size_t>(j)] +=
          rounding[static_cast<size_t>(j)] * (of_.amplitudes.dv * score_size(row, j));
    row.add_of_row(t, do_, squares, y.dv);
  };
  chunk_.for_each_row(
      [&](int64_t t, int64_t count, const float* w) {
        sampled_loops().scores(scores(t, count, w, row));
        score_values(t, ones, of_values);
        chunk_.draw(NoiseSource::score, t * tokens_, units.data(), t + 1, rounding.data());
        for (int64_t j = 0; j < count; ++j) pair_gradients(t, j, w + j * of_.K, of_values, y);
        if (count > t) add_row(t);
      },
      [&](int64_t t) {
        own_score(t, row), add_row(t);
        const float of_terms = of_values.squares[static_cast<size_t>(t)];
        for (int64_t c = 0; c < of_.K; ++c) {
          const float u = of_.bonus[static_cast<size_t>(c)], q = u * q_[key(t, c)], k = u * k_[key(t, c)];
          y.dq.squares[key(t, c)] += of_terms * k * k, y.dk.squares[key(t, c)] += of_terms * q * q;
        }
      });
}

void GatedChunkNoise::pair_gradients(int64_t t, int64_t j, const float* w, const ScoreRow& of_values,
                                     Gradients& y) const {
  const auto i = static_cast<size_t>(j);
  SampledPair pair{
      .K = of_.K, .q = q_.data() + t * of_.K, .k = k_.data() + j * of_.K, .w = w, .u = chunk_.u()};
  pair.M = of_values.value[i], pair.squares = of_values.squares[i];
  const float size = score_size(of_values, j);
  const Lanes& rounding = of_values.noise[i];
  const NoiseAmplitudes& amplitudes = of_.amplitudes;
  pair.of_dq = rounding * (amplitudes.dq * size), pair.of_dk = rounding * (amplitudes.dk * size);
  pair.of_dg = rounding * (amplitudes.dg * size);
  if (amplitudes.scaled_in_score)
    pair.query_noise = query_noise_.data() + t * of_.K, pair.key_noise = key_noise_.data() + j * of_.K;
  const auto row = [&](SampledRows& of, int64_t token) {
    const int64_t at = token * of_.K;
    return SampledPair::Row{of.near.data() + at, of.common.data() + at, of.squares.data() + at};
  };
  pair.dq = row(y.dq, t), pair.dk = row(y.dk, j);
  const int64_t last = of_.x.exclusive() ? t - 1 : t;  // the last token whose decay the pair crosses
  if (of_.x.gate && !of_.split && last > j) pair.dg_from = row(y.dg, j + 1), pair.dg_to = row(y.dg, last + 1);
  sampled_loops().pair(pair);
}

/// Terms of dg that cross a chunk's end.
void GatedChunkNoise::gates_across(const SampledState& S, const SampledState& G, Gradients& y) const {
  const StateEnds ends{S, G, do_, v_, q_, k_, of_.scale};
  if (of_.amplitudes.dg > 0)
    chunk_.gates_across(ends, chunk_.copied(S, NoiseSource::state_copy, of_.amplitudes.dg),
                        chunk_.copied(G, NoiseSource::adjoint_copy, of_.amplitudes.dg), std::sqrt(0.5f),
                        y.dg.near);
  if (of_.noisy_S() || of_.noisy_G()) {
    chunk_.gates_across(ends, S.noise, G.noise, 1, y.dg.far);
    chunk_.gates_across(ends, S.common, G.common, 1, y.dg.common);
  }
  // Here y.dq and y.dk hold the squares of what crosses the chunk's ends. Sums that end inside are left
  // in: more.
  for (int64_t c = 0; c < of_.K; ++c) {
    float over = 0, reads = 0;
    for (int64_t v = 0; v < of_.V; ++v)
      over += S.squares[static_cast<size_t>(c * of_.V + v)] * G.squares[static_cast<size_t>(c * of_.V + v)];
    const float whole = chunk_.whole()[static_cast<size_t>(c)];
    for (int64_t t = 0; t < tokens_; ++t) {
      const float q = q_[key(t, c)], k = k_[key(t, c)];
      reads += y.dq.squares[key(t, c)] * q * q;
      y.dg.squares[key(t + 1, c)] += y.dk.squares[key(t, c)] * k * k;
    }
    y.dg.squares[key(0, c)] += over * whole * whole + reads;
  }
}

void GatedChunkNoise::visit_gates(SampledRows& dg) const {
  const auto K = static_cast<size_t>(of_.K);
  for (size_t i = K; i < dg.near.size(); ++i)
    dg.near[i] += dg.near[i - K], dg.far[i] += dg.far[i - K], dg.common[i] += dg.common[i - K],
        dg.squares[i] += dg.squares[i - K];
  const std::string name = "d" + std::string(of_.x.form.gate);
  const bool of_channels = of_.x.gate_columns() == of_.K;
  SampledRows y(tokens_, of_channels ? of_.K : 1);
  for (size_t i = 0; i < q_.size(); ++i) {
    const size_t to = of_channels ? i : i / K;
    y.near[to] += dg.near[i], y.far[to] += dg.far[i], y.common[to] += dg.common[i];
    y.squares[to] += dg.squares[i];
  }
  of_.visitor(of_.rests.dg).rows(name, first_, y);
}

}  // namespace assay
