#include "reference/kept_state.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

/// Spacings of the format that a chunk adds at least, where roundings before and behind it are no more alike.
constexpr float kFresh = 4;

/// To nearest in a format of unit roundoff u; its smallest numbers aside.
float rounded(float x, float u) {
  const float spacing = 2 * u * binade(x);
  return spacing > 0 ? std::nearbyint(x / spacing) * spacing : x;
}

double square(double x) {
  return x * x;
}

}  // namespace

KeptState::KeptState(int64_t rows, int64_t columns, float u)
    : columns_(columns), u_(u), S_(static_cast<size_t>(rows * columns)), carried_(S_) {}

void KeptState::load(const std::vector<double>& S) {
  S_.assign(S.begin(), S.end());
}

std::vector<float> KeptState::carried(const SampledChunk& chunk, const std::vector<float>& reads) const {
  const auto rows = static_cast<int64_t>(chunk.whole().size());
  std::vector<float> y(static_cast<size_t>(chunk.tokens() * columns_));
  for (int64_t t = 0; t < chunk.tokens(); ++t)
    for (int64_t c = 0; c < rows; ++c) {
      const float x = reads[chunk.at(t, c)], *const from = carried_.data() + c * columns_;
      float* const to = y.data() + t * columns_;
      for (int64_t v = 0; v < columns_; ++v) to[v] += x * from[v];
    }
  return y;
}

void KeptState::advance(const SampledChunk& chunk, const ChunkOperand& keys,
                        const std::vector<float>& values) {
  const std::vector<float>& after = chunk.after();
  std::vector<float> added(static_cast<size_t>(columns_));
  for (int64_t c = 0; c < static_cast<int64_t>(chunk.whole().size()); ++c) {
    std::fill(added.begin(), added.end(), 0.0f);
    for (int64_t t = 0; t < chunk.tokens(); ++t) {
      const size_t i = chunk.at(t, c);
      const float scaled = keys.x[i] * after[i], x = keys.amplitude > 0 ? rounded(scaled, u_) : scaled;
      const float* const row = values.data() + t * columns_;
      for (size_t v = 0; v < added.size(); ++v) added[v] += x * row[v];
    }
    const float w = chunk.whole()[static_cast<size_t>(c)];
    for (size_t v = 0; v < added.size(); ++v) {
      float &S = S_[static_cast<size_t>(c * columns_) + v],
            &carried = carried_[static_cast<size_t>(c * columns_) + v];
      const float D = stored_ ? rounded(carried + S, u_) - S : 0;
      S = w * S + added[v];
      const bool fresh = std::fabs(added[v]) >= kFresh * 2 * u_ * binade(S);
      carried = fresh ? w * D : 0;
    }
  }
  stored_ = true;
}

double KeptKeys::variance(const SampledChunk& chunk, const ChunkOperand& keys,
                          const std::vector<float>& values, const std::vector<float>& reads,
                          const std::vector<float>& direction) {
  double sum = 0;
  for (int64_t c = 0; c < static_cast<int64_t>(chunk.whole().size()); ++c) {
    float* const G = G_.data() + c * columns_;
    for (int64_t t = 0; t < chunk.tokens() && keys.amplitude > 0; ++t) {
      const size_t i = chunk.at(t, c);
      const float* const row = values.data() + t * columns_;
      float derivative = 0;
      for (int64_t v = 0; v < columns_; ++v) derivative += row[v] * G[v];
      sum += square(double{chunk.rounding_size(keys, i, chunk.after()[i], 1)} * double{derivative}) / 3;
    }
    const float w = chunk.whole()[static_cast<size_t>(c)];
    for (int64_t v = 0; v < columns_; ++v) G[v] *= w;
    for (int64_t t = 0; t < chunk.tokens(); ++t) {
      const float x = reads[chunk.at(t, c)], *const d = direction.data() + t * columns_;
      for (int64_t v = 0; v < columns_; ++v) G[v] += x * d[v];
    }
  }
  return sum;
}

double variance_of_reads(const SampledChunk& chunk, const SampledState& S, float copy_amplitude,
                         const ChunkOperand& queries, const std::vector<float>& weights, float scale,
                         const std::vector<float>& direction) {
  const int64_t columns = S.columns;
  double sum = 0;
  std::vector<float> derivatives(static_cast<size_t>(columns));
  for (int64_t c = 0; c < static_cast<int64_t>(chunk.whole().size()); ++c) {
    const float* const state = S.value.data() + c * columns;
    std::fill(derivatives.begin(), derivatives.end(), 0.0f);
    for (int64_t t = 0; t < chunk.tokens(); ++t) {
      const size_t i = chunk.at(t, c);
      const float x = scale * queries.x[i] * weights[i], *const d = direction.data() + t * columns;
      for (size_t v = 0; v < derivatives.size(); ++v) derivatives[v] += x * d[v];
      if (queries.amplitude == 0 || x == 0) continue;
      float along = 0;
      for (int64_t v = 0; v < columns; ++v) along += state[v] * d[v];
      sum += square(double{chunk.rounding_size(queries, i, weights[i], scale)} * double{along}) / 3;
    }
    for (size_t v = 0; v < derivatives.size(); ++v)
      sum += square(double{copy_amplitude * binade(state[v])} * double{derivatives[v]}) / 3;
  }
  return sum;
}

}  // namespace assay
