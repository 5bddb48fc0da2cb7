#include "reference/kept_state.h"

#include <algorithm>
#include <cmath>

#include "reference/elements.h"

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

/// y_t += sum over the rows c of x_tc S_c.
void add_reads(const SampledChunk& chunk, const std::vector<float>& x, const std::vector<float>& S,
               int64_t columns, std::vector<float>& y) {
  const auto rows = static_cast<int64_t>(chunk.whole().size());
  sampled_loops().numbers_times_numbers(
      {chunk.tokens(), rows, columns, x.data(), rows, 1, S.data(), y.data()});
}

/// S_c += sum over the tokens t of x_tc values_t.
void add_writes(const SampledChunk& chunk, const std::vector<float>& x, const std::vector<float>& values,
                int64_t columns, std::vector<float>& S) {
  const auto rows = static_cast<int64_t>(chunk.whole().size());
  sampled_loops().numbers_times_numbers(
      {rows, chunk.tokens(), columns, x.data(), 1, rows, values.data(), S.data()});
}

/// Tokens x rows: S_c . values_t.
std::vector<float> read_along(const SampledChunk& chunk, const std::vector<float>& S,
                              const std::vector<float>& values, int64_t columns) {
  const auto rows = static_cast<int64_t>(chunk.whole().size());
  std::vector<float> y(static_cast<size_t>(chunk.tokens() * rows));
  const std::vector<float> ones(y.size(), 1.0f);
  contract_numbers({chunk.tokens(), rows, columns, ones.data(), S.data(), values.data(), y.data()});
  return y;
}

}  // namespace

KeptState::KeptState(int64_t rows, int64_t columns, float u)
    : columns_(columns), u_(u), S_(static_cast<size_t>(rows * columns)), carried_(S_) {}

void KeptState::load(const std::vector<double>& S) {
  S_.assign(S.begin(), S.end());
}

std::vector<float> KeptState::written(const SampledChunk& chunk, const ChunkOperand& keys,
                                      const std::vector<float>& values) const {
  const std::vector<float>& after = chunk.after();
  std::vector<float> x(after.size()), added(S_.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const float scaled = keys.x[i] * after[i];
    x[i] = keys.amplitude > 0 ? rounded(scaled, u_) : scaled;
  }
  add_writes(chunk, x, values, columns_, added);
  return added;
}

void KeptState::advance(const SampledChunk& chunk, const std::vector<float>& added) {
  for_each_element(added.size(), static_cast<size_t>(columns_), [&](size_t i, size_t row, size_t) {
    const float w = chunk.whole()[row];
    const float D = stored_ ? rounded(carried_[i] + S_[i], u_) - S_[i] : 0;
    S_[i] = w * S_[i] + added[i];
    const bool fresh = std::fabs(added[i]) >= kFresh * 2 * u_ * binade(S_[i]);
    carried_[i] = fresh ? w * D : 0;
  });
  stored_ = true;
}

std::vector<float> moved_by(const SampledChunk& chunk, const std::vector<float>& carried,
                            const std::vector<float>& reads, int64_t columns) {
  std::vector<float> y(static_cast<size_t>(chunk.tokens() * columns));
  add_reads(chunk, reads, carried, columns, y);
  return y;
}

double KeptKeys::variance(const SampledChunk& chunk, const ChunkOperand& keys,
                          const std::vector<float>& values, const std::vector<float>& derivatives) {
  double sum = 0;
  if (!(keys.amplitude > 0)) return sum;
  const auto columns = static_cast<int64_t>(derivatives.size() / chunk.whole().size());
  const std::vector<float> along = read_along(chunk, derivatives, values, columns);
  for_each_element(along.size(), chunk.whole().size(), [&](size_t i, size_t, size_t c) {
    sum += square(double{chunk.rounding_size(keys, i, c, chunk.after()[i], 1)} * double{along[i]}) / 3;
  });
  return sum;
}

void KeptKeys::advance(const SampledChunk& chunk, const std::vector<float>& reads,
                       const std::vector<float>& direction) {
  for_each_element(G_.size(), static_cast<size_t>(columns_),
                   [&](size_t i, size_t row, size_t) { G_[i] *= chunk.whole()[row]; });
  add_writes(chunk, reads, direction, columns_, G_);
}

double variance_of_reads(const SampledChunk& chunk, const SampledState& S, float copy_amplitude,
                         const ChunkOperand& queries, const std::vector<float>& weights, float scale,
                         const std::vector<float>& direction) {
  double sum = 0;
  std::vector<float> x(weights.size()), derivatives(S.value.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = scale * queries.x[i] * weights[i];
  add_writes(chunk, x, direction, S.columns, derivatives);
  if (queries.amplitude > 0) {
    const std::vector<float> along = read_along(chunk, S.value, direction, S.columns);
    for_each_element(x.size(), chunk.whole().size(), [&](size_t i, size_t, size_t c) {
      if (x[i] != 0)
        sum += square(double{chunk.rounding_size(queries, i, c, weights[i], scale)} * double{along[i]}) / 3;
    });
  }
  for (size_t i = 0; i < derivatives.size(); ++i)
    sum += square(double{copy_amplitude * binade(S.value[i])} * double{derivatives[i]}) / 3;
  return sum;
}

}  // namespace assay
