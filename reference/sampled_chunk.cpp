#include "reference/sampled_chunk.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

void add_scaled(Lanes* y, float x, const Lanes* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] += x * from[i];
}

}  // namespace

uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
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

void SampledChunk::draw(NoiseSource source, int64_t index, float amplitude, Lanes& y) const {
  uint64_t bits = mixed(key_ + static_cast<uint64_t>(source) * 0x9e3779b97f4a7c15) +
                  static_cast<uint64_t>(number_) * 0xd1b54a32d192ed03 +
                  static_cast<uint64_t>(index) * 0x8cb92ba72f3d8dd7;
  for (int i = 0; i < kNoiseSamples; i += 4) {
    bits = mixed(bits);
    for (int j = 0; j < 4; ++j)
      y[i + j] = (static_cast<float>(bits >> (16 * j) & 0xffff) - 32767.5f) * (amplitude / 32767.5f);
  }
}

float SampledChunk::scaled_size(float x, float size, int64_t c) const {
  return std::fmin(std::fabs(size), std::fabs(x) * (1 - whole_[static_cast<size_t>(c)]) / u_);
}

float SampledChunk::in_score_size(float amplitude, int64_t row, bool wide) const {
  constexpr float kSpread = 0.7355f;  // sqrt(3 / (8 ln 2))
  return kSpread * amplitude * (wide ? 1 : scaled_size(1, 1, row));
}

std::vector<Lanes> SampledChunk::in_scores(NoiseSource source, float amplitude, bool wide) const {
  std::vector<Lanes> noise(a_.size());
  for (size_t i = 0; i < a_.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    draw(source, place, in_score_size(amplitude, place % rows_, wide), noise[i]);
  }
  return noise;
}

float SampledChunk::rounding_size(const ChunkOperand& of, size_t i, float w, float scale) const {
  const float size = scale * rounded_size(of.x[i] * w);
  return of.amplitude * (of.wide ? std::fabs(size)
                                 : scaled_size(scale * of.x[i] * w, size, static_cast<int64_t>(i) % rows_));
}

void SampledChunk::draw_rounding(const ChunkOperand& of, size_t i, float w, float scale, Lanes& d) const {
  draw(of.source, static_cast<int64_t>(i), rounding_size(of, i, w, scale), d);
}

void SampledChunk::write(SampledState& S, const ChunkOperand& from, const std::vector<float>& weights,
                         const std::vector<float>& values, float scale) const {
  const int64_t columns = S.columns;
  for (int64_t c = 0; c < rows_; ++c) {
    float *const to = S.value.data() + c * columns, *const squares = S.squares.data() + c * columns,
                 *const moved = S.moved.data() + c * columns, *const common = S.common.data() + c * columns;
    Lanes* const noise = S.noise.data() + c * columns;
    const float decay = whole_[static_cast<size_t>(c)];
    for (int64_t v = 0; v < columns; ++v) {
      to[v] *= decay, noise[v] *= decay, common[v] *= decay;
      squares[v] *= decay * decay, moved[v] *= decay * decay;
    }
    for (int64_t t = 0; t < tokens_; ++t) {
      const size_t i = at(t, c);
      const float w = weights[i], x = scale * from.x[i] * w;
      const float* const row = values.data() + t * columns;
      for (int64_t v = 0; v < columns && x != 0; ++v)
        to[v] += x * row[v], squares[v] += x * x * row[v] * row[v];
      if (from.moved) {
        const float off = from.moved[i] * scale * scale * w * w;
        for (int64_t v = 0; v < columns; ++v) moved[v] += off * row[v] * row[v];
      }
      Lanes d = {};
      if (from.amplitude > 0 && x != 0) {
        draw_rounding(from, i, w, scale, d);
        const float off = from.wide ? 0 : alike(w, u_) * roundings_of(from.amplitude, u_) * x;
        for (int64_t v = 0; v < columns; ++v) common[v] += off * row[v];
      }
      if (from.near) d += (from.near[i] + from.far[i]) * (scale * w);
      if (from.near || (from.amplitude > 0 && x != 0))
        for (int64_t v = 0; v < columns; ++v) noise[v] += d * row[v];
    }
  }
}

std::vector<Lanes> SampledChunk::copied(const SampledState& S, NoiseSource source, float amplitude) const {
  std::vector<Lanes> copy(S.noise.size());
  for (size_t i = 0; amplitude > 0 && i < copy.size(); ++i)
    draw(source, static_cast<int64_t>(i), amplitude * rounded_size(S.value[i]), copy[i]);
  return copy;
}

void SampledChunk::round(SampledState& S, NoiseSource source, float amplitude) const {
  const std::vector<Lanes> rounding = copied(S, source, amplitude);
  for (size_t i = 0; i < rounding.size(); ++i) S.noise[i] += rounding[i];
}

void SampledChunk::read(const SampledState& S, const std::vector<Lanes>& copy, const ChunkOperand& reads,
                        const std::vector<float>& weights, float scale, bool far, SampledRows& y) const {
  const int64_t columns = S.columns;
  for (int64_t t = 0; t < tokens_; ++t)
    for (int64_t c = 0; c < rows_; ++c) {
      const size_t i = at(t, c);
      const float w = weights[i], x = scale * reads.x[i] * w;
      const auto row = static_cast<size_t>(t * columns), from = static_cast<size_t>(c * columns);
      const float *const state = S.value.data() + from, *const squares = S.squares.data() + from;
      if (reads.near) {
        const Lanes near = reads.near[i] * (scale * w), beyond = reads.far[i] * (scale * w);
        const float moved = reads.moved[i] * scale * scale * w * w;
        for (int64_t v = 0; v < columns; ++v) {
          const size_t to = row + static_cast<size_t>(v);
          y.near[to] += near * state[v], y.far[to] += beyond * state[v];
          y.moved[to] += moved * state[v] * state[v];
        }
      }
      if (x == 0) continue;
      add_scaled(y.near.data() + row, x, copy.data() + from, columns);
      for (int64_t v = 0; v < columns; ++v) {
        const size_t to = row + static_cast<size_t>(v);
        y.squares[to] += x * x * squares[v];
        y.moved[to] += x * x * S.moved[from + static_cast<size_t>(v)];
      }
      for (int64_t v = 0; v < columns && far; ++v)
        y.common[row + static_cast<size_t>(v)] += x * S.common[from + static_cast<size_t>(v)];
      if (far) add_scaled(y.far.data() + row, x, S.noise.data() + from, columns);
      if (reads.amplitude == 0) continue;
      Lanes d;
      draw_rounding(reads, i, w, scale, d);
      const float common = reads.wide ? 0 : alike(w, u_) * roundings_of(reads.amplitude, u_) * x;
      for (int64_t v = 0; v < columns; ++v) {
        const size_t to = row + static_cast<size_t>(v);
        y.near[to] += d * state[v], y.common[to] += common * state[v];
      }
    }
}

template <typename Number>
void SampledChunk::contract_all(const std::vector<Number>& state, const std::vector<float>& values,
                                const std::vector<float>& weights, float scale,
                                std::vector<Number>& y) const {
  const int64_t columns = static_cast<int64_t>(state.size()) / rows_;
  for (int64_t t = 0; t < tokens_; ++t)
    for (int64_t c = 0; c < rows_; ++c) {
      const float w = scale * weights[at(t, c)];
      if (w == 0) continue;
      const Number* const from = state.data() + c * columns;
      const float* const row = values.data() + t * columns;
      Number sum = {};
      for (int64_t v = 0; v < columns; ++v) sum += from[v] * row[v];
      y[at(t, c)] += w * sum;
    }
}
void SampledChunk::contract(const std::vector<Lanes>& state, const std::vector<float>& values,
                            const std::vector<float>& weights, float scale, std::vector<Lanes>& y) const {
  contract_all(state, values, weights, scale, y);
}
void SampledChunk::contract(const std::vector<float>& state, const std::vector<float>& values,
                            const std::vector<float>& weights, float scale, std::vector<float>& y) const {
  contract_all(state, values, weights, scale, y);
}

void SampledChunk::contract_squares(const std::vector<float>& squares, const std::vector<float>& values,
                                    const std::vector<float>& weights, float scale,
                                    std::vector<float>& y) const {
  const int64_t columns = static_cast<int64_t>(squares.size()) / rows_;
  for (int64_t t = 0; t < tokens_; ++t)
    for (int64_t c = 0; c < rows_; ++c) {
      const float w = scale * weights[at(t, c)], *const row = values.data() + t * columns;
      float sum = 0;
      for (int64_t v = 0; v < columns; ++v)
        sum += squares[static_cast<size_t>(c * columns + v)] * row[v] * row[v];
      y[at(t, c)] += w * w * sum;
    }
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

}  // namespace assay
