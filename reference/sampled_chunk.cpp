#include "reference/sampled_chunk.h"

#include <algorithm>
#include <cmath>

#include "reference/elements.h"

namespace assay {
namespace {

std::vector<float> times(float scale, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = scale * x[i];
  return y;
}

}  // namespace

std::vector<float> squares_of(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i];
  return y;
}

SampledRows::SampledRows(int64_t rows, int64_t columns)
    : columns(columns),
      near(static_cast<size_t>(rows * columns)),
      far(near.size()),
      common(near.size()),
      squares(near.size()),
      moved(near.size()) {}

SampledState::SampledState(int64_t rows, int64_t columns)
    : columns(columns),
      value(static_cast<size_t>(rows * columns)),
      noise(value.size()),
      common(value.size()),
      squares(value.size()),
      moved(value.size()) {}

void SampledState::load(const std::vector<double>& from) {
  std::copy(from.begin(), from.end(), value.begin());
  for (size_t i = 0; i < value.size(); ++i) squares[i] = value[i] * value[i];
}

SampledChunk::SampledChunk(const Slice& s, int64_t rows, double u)
    : rows_(rows),
      key_(mixed(mixed(static_cast<uint64_t>(s.n)) + static_cast<uint64_t>(s.h))),
      u_(static_cast<float>(u)) {
  for (int i = 0; i < kNoiseSamples; ++i)
    common_[i] = static_cast<float>(static_cast<double>(mixed(static_cast<uint64_t>(i))) * 0x1p-63 - 1);
}

void SampledChunk::begin(int64_t chunk, int64_t tokens, const std::vector<double>& a, bool exclusive) {
  const FlushedSubnormals flushed;
  number_ = chunk, tokens_ = tokens, exclusive_ = exclusive;
  a_.assign(a.begin(), a.end());
  into_.resize(a_.size()), after_.resize(a_.size());
  whole_.assign(static_cast<size_t>(rows_), 1);
  for (int64_t t = 0; t < tokens_; ++t)
    for (int64_t c = 0; c < rows_; ++c) {
      float& passed = whole_[static_cast<size_t>(c)];
      const float before = passed;
      passed *= a_[at(t, c)];
      into_[at(t, c)] = exclusive ? before : passed;
    }
  std::vector<float> later(static_cast<size_t>(rows_), 1);
  for (int64_t t = tokens_; t-- > 0;)
    for (int64_t c = 0; c < rows_; ++c) {
      after_[at(t, c)] = later[static_cast<size_t>(c)];
      later[static_cast<size_t>(c)] *= a_[at(t, c)];
    }
}

void SampledChunk::draw(NoiseSource source, int64_t first, const float* amplitudes, int64_t count,
                        Lanes* y) const {
  const uint64_t key = mixed(key_ + static_cast<uint64_t>(source) * 0x9e3779b97f4a7c15) +
                       static_cast<uint64_t>(number_) * 0xd1b54a32d192ed03 +
                       static_cast<uint64_t>(first) * kNextPlace;
  sampled_loops().draw(key, amplitudes, count, y);
}

void SampledChunk::draw(NoiseSource source, int64_t index, float amplitude, Lanes& y) const {
  draw(source, index, &amplitude, 1, &y);
}

float SampledChunk::scaled_size(float x, float size, int64_t c) const {
  return std::fmin(std::fabs(size), std::fabs(x) * (1 - whole_[static_cast<size_t>(c)]) / u_);
}

float SampledChunk::in_score_size(float amplitude, int64_t row, bool wide) const {
  constexpr float kSpread = 0.7355f;  // sqrt(3 / (8 ln 2))
  return kSpread * amplitude * (wide ? 1 : scaled_size(1, 1, row));
}

std::vector<Lanes> SampledChunk::in_scores(NoiseSource source, float amplitude, bool wide) const {
  std::vector<float> amplitudes(a_.size());
  for_each_element(a_.size(), static_cast<size_t>(rows_), [&](size_t i, size_t t, size_t c) {
    amplitudes[i] = t > 0 ? amplitudes[c] : in_score_size(amplitude, static_cast<int64_t>(c), wide);
  });
  return drawn(source, amplitudes);
}

std::vector<Lanes> SampledChunk::drawn(NoiseSource source, const std::vector<float>& amplitudes) const {
  std::vector<Lanes> y(amplitudes.size());
  draw(source, 0, amplitudes.data(), static_cast<int64_t>(y.size()), y.data());
  return y;
}

float SampledChunk::rounding_size(const ChunkOperand& of, size_t i, size_t c, float w, float scale) const {
  const float size = scale * rounded_size(of.x[i] * w);
  return of.amplitude *
         (of.wide ? std::fabs(size) : scaled_size(scale * of.x[i] * w, size, static_cast<int64_t>(c)));
}

SampledChunk::ScaledOperand SampledChunk::scaled(const ChunkOperand& of, const std::vector<float>& weights,
                                                 float scale) const {
  const FlushedSubnormals flushed;
  ScaledOperand y;
  y.x.resize(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) y.x[i] = scale * of.x[i] * weights[i];
  y.squares = squares_of(y.x);
  if (of.moved) {
    y.moved.resize(weights.size());
    for (size_t i = 0; i < weights.size(); ++i)
      y.moved[i] = of.moved[i] * scale * scale * weights[i] * weights[i];
  }
  if (of.amplitude == 0) return y;
  std::vector<float> sizes(weights.size());
  y.common.resize(weights.size());
  const float roundings = roundings_of(of.amplitude, u_);
  for_each_element(weights.size(), static_cast<size_t>(rows_), [&](size_t i, size_t, size_t c) {
    if (y.x[i] != 0) sizes[i] = rounding_size(of, i, c, weights[i], scale);
    if (!of.wide) y.common[i] = alike(weights[i], u_) * roundings * y.x[i];
  });
  y.rounding = drawn(of.source, sizes);
  return y;
}

void SampledChunk::write(SampledState& S, const ChunkOperand& from, const std::vector<float>& weights,
                         const std::vector<float>& values, float scale) const {
  const FlushedSubnormals flushed;
  const int64_t columns = S.columns;
  for (int64_t c = 0; c < rows_; ++c) {
    const float decay = whole_[static_cast<size_t>(c)];
    for (size_t i = static_cast<size_t>(c * columns), end = i + static_cast<size_t>(columns); i < end; ++i) {
      S.value[i] *= decay, S.noise[i] *= decay, S.common[i] *= decay;
      S.squares[i] *= decay * decay, S.moved[i] *= decay * decay;
    }
  }
  ScaledOperand x = scaled(from, weights, scale);
  const std::vector<float> squares = squares_of(values);
  // Row c of the state takes channel c of every token.
  const auto add = [&](const auto& loop, const auto& factors, const std::vector<float>& rows, auto& y) {
    if (!factors.empty()) loop({rows_, tokens_, columns, factors.data(), 1, rows_, rows.data(), y.data()});
  };
  const SampledLoops& loops = sampled_loops();
  add(loops.numbers_times_numbers, x.x, values, S.value);
  add(loops.numbers_times_numbers, x.squares, squares, S.squares);
  add(loops.numbers_times_numbers, x.moved, squares, S.moved);
  add(loops.numbers_times_numbers, x.common, values, S.common);
  if (from.near) {
    x.rounding.resize(weights.size());
    for (size_t i = 0; i < weights.size(); ++i)
      x.rounding[i] += (from.near[i] + from.far[i]) * (scale * weights[i]);
  }
  add(loops.samples_times_numbers, x.rounding, values, S.noise);
}

std::vector<Lanes> SampledChunk::copied(const SampledState& S, NoiseSource source, float amplitude) const {
  if (amplitude == 0) return std::vector<Lanes>(S.noise.size());
  std::vector<float> sizes(S.noise.size());
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = amplitude * rounded_size(S.value[i]);
  return drawn(source, sizes);
}

void SampledChunk::round(SampledState& S, NoiseSource source, float amplitude) const {
  const std::vector<Lanes> rounding = copied(S, source, amplitude);
  for (size_t i = 0; i < rounding.size(); ++i) S.noise[i] += rounding[i];
}

void SampledChunk::read(const SampledState& S, const std::vector<Lanes>& copy, const ChunkOperand& reads,
                        const std::vector<float>& weights, float scale, bool far, SampledRows& y) const {
  const ScaledOperand x = scaled(reads, weights, scale);
  const auto add = [&](const auto& loop, const auto& factors, const auto& state, auto& to) {
    if (!factors.empty())
      loop({tokens_, rows_, S.columns, factors.data(), rows_, 1, state.data(), to.data()});
  };
  const SampledLoops& loops = sampled_loops();
  if (reads.near) {
    std::vector<Lanes> near(weights.size()), beyond(weights.size());
    for (size_t i = 0; i < weights.size(); ++i) {
      near[i] = reads.near[i] * (scale * weights[i]), beyond[i] = reads.far[i] * (scale * weights[i]);
    }
    add(loops.samples_times_numbers, near, S.value, y.near);
    add(loops.samples_times_numbers, beyond, S.value, y.far);
    add(loops.numbers_times_numbers, x.moved, squares_of(S.value), y.moved);
  }
  add(loops.numbers_times_samples, x.x, copy, y.near);
  add(loops.samples_times_numbers, x.rounding, S.value, y.near);
  add(loops.numbers_times_numbers, x.common, S.value, y.common);
  add(loops.numbers_times_numbers, x.squares, S.squares, y.squares);
  add(loops.numbers_times_numbers, x.squares, S.moved, y.moved);
  if (!far) return;
  add(loops.numbers_times_samples, x.x, S.noise, y.far);
  add(loops.numbers_times_numbers, x.x, S.common, y.common);
}

template <typename Number>
SampledContraction<Number> SampledChunk::contraction(const std::vector<Number>& state,
                                                     const std::vector<float>& values,
                                                     const std::vector<float>& weights,
                                                     std::vector<Number>& y) const {
  return {tokens_,       rows_,   static_cast<int64_t>(state.size()) / rows_, weights.data(), state.data(),
          values.data(), y.data()};
}
void SampledChunk::contract(const std::vector<Lanes>& state, const std::vector<float>& values,
                            const std::vector<float>& weights, float scale, std::vector<Lanes>& y) const {
  sampled_loops().contract_samples(contraction(state, values, times(scale, weights), y));
}
void SampledChunk::contract(const std::vector<float>& state, const std::vector<float>& values,
                            const std::vector<float>& weights, float scale, std::vector<float>& y) const {
  contract_numbers(contraction(state, values, times(scale, weights), y));
}

void SampledChunk::contract_squares(const std::vector<float>& squares, const std::vector<float>& values,
                                    const std::vector<float>& weights, float scale,
                                    std::vector<float>& y) const {
  contract_numbers(contraction(squares, squares_of(values), squares_of(times(scale, weights)), y));
}

namespace {

/// `from`: with all that is the same for its blocks of rows, and its first row's places.
void visit_blocks(const NoiseVisit& visit, const NoiseBlock& from) {
  for (int64_t r = 0; r < from.rows; r += kNoiseBlock) {
    NoiseBlock b = from;
    const int64_t at = r * b.columns;
    b.first += r, b.rows = std::min(kNoiseBlock, from.rows - r);
    for (const float** samples : {&b.near, &b.far})
      if (*samples) *samples += at * kNoiseSamples;
    b.common += at, b.squares += at, b.moved += at;
    visit(b);
  }
}

const float* samples_of(const std::vector<Lanes>& noise) {
  return reinterpret_cast<const float*>(noise.data());
}

}  // namespace

void NoiseVisitor::rows(std::string_view output, int64_t first, SampledRows& y,
                        const StateReadout* readout) const {
  NoiseBlock all{.output = output, .first = first, .columns = y.columns};
  all.rows = static_cast<int64_t>(y.far.size()) / y.columns;
  all.near = samples_of(y.near), all.far = samples_of(y.far);
  all.common = y.common.data(), all.squares = y.squares.data(), all.moved = y.moved.data(), all.rest = rest;
  if (kNoiseBlock % chunk != 0 || all.rows > kNoiseBlock) {
    for (size_t i = 0; i < y.far.size(); ++i) y.far[i] += y.near[i];
    all.near = nullptr;
  }
  if (chunk == kNoiseBlock && readout) {
    all.reads = readout->reads.data(), all.left = readout->left.data();
    all.states = static_cast<int64_t>(readout->left.size());
    all.kept = readout->kept.data(), all.kept_variance = readout->kept_variance;
  }
  visit_blocks(visit, all);
}

void NoiseVisitor::state(std::string_view output, int64_t rows, const SampledState& S,
                         bool rows_apart) const {
  NoiseBlock all{.output = output, .rows = rows, .columns = S.columns, .far = samples_of(S.noise)};
  all.rows_apart = rows_apart;
  all.common = S.common.data(), all.squares = S.squares.data(), all.moved = S.moved.data(), all.rest = rest;
  visit_blocks(visit, all);
}

SampledState transposed(const SampledState& S) {
  const int64_t rows = static_cast<int64_t>(S.value.size()) / S.columns;
  SampledState y(S.columns, rows);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < S.columns; ++c) {
      const auto from = static_cast<size_t>(r * S.columns + c), to = static_cast<size_t>(c * rows + r);
      y.value[to] = S.value[from], y.noise[to] = S.noise[from], y.common[to] = S.common[from];
      y.squares[to] = S.squares[from], y.moved[to] = S.moved[from];
    }
  return y;
}

template <typename Number>
void SampledChunk::gates_across(const StateEnds& ends, const std::vector<Number>& of_S,
                                const std::vector<Number>& of_G, float both, std::vector<Number>& dg) const {
  std::vector<Number> reads(ends.x.size()), writes(ends.y.size());
  contract(of_S, ends.d, into_, ends.scale, reads);
  contract(of_G, ends.c, after_, 1, writes);
  const int64_t columns = ends.S.columns;
  for (int64_t c = 0; c < rows_; ++c) {
    Number over = {};
    for (int64_t v = 0; v < columns; ++v) {
      const auto i = static_cast<size_t>(c * columns + v);
      over += of_S[i] * ends.G.value[i] + of_G[i] * ends.S.value[i];
    }
    dg[at(0, c)] += over * (both * whole_[static_cast<size_t>(c)]);
    for (int64_t t = 0; t < tokens_; ++t) {
      const Number read = reads[at(t, c)] * ends.x[at(t, c)], written = writes[at(t, c)] * ends.y[at(t, c)];
      dg[at(0, c)] += read, dg[at(exclusive_ ? t : t + 1, c)] -= read;
      dg[at(t + 1, c)] += written;
    }
  }
}
template void SampledChunk::gates_across(const StateEnds&, const std::vector<Lanes>&,
                                         const std::vector<Lanes>&, float, std::vector<Lanes>&) const;
template void SampledChunk::gates_across(const StateEnds&, const std::vector<float>&,
                                         const std::vector<float>&, float, std::vector<float>&) const;

}  // namespace assay
