// What a state kept in the operands' format carries, against states that are rounded; variances along it
// against those of samples.
#include "reference/kept_state.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/base/numerics/format.h"
#include "tests/reference/random_problem.h"

namespace assay {
namespace kept_state_test {

constexpr int64_t N = 16, T = 64;
constexpr float u = 0x1p-8f;

std::vector<float> drawn(size_t count, std::mt19937_64& random, double size = 1) {
  std::vector<float> x(count);
  for (float& y : x)
    y = static_cast<float>(round_to(Dtype::bf16, size * std::normal_distribution<double>()(random)));
  return x;
}

/// Chunks that decay by 2^-6 of themselves per token and read by `reads`; with keys that are not rounded.
struct Chunks {
  std::mt19937_64 random{1};
  SampledChunk chunk{Slice{}, N, u};
  KeptState state{N, N, u};
  std::vector<float> reads = drawn(T * N, random);
  std::vector<double> exact = std::vector<double>(N * N), kept = exact;

  /// One chunk; what it carries, rows of its tokens, as the rounded states themselves say.
  std::vector<double> next(double key_size) {
    const std::vector<float> k = drawn(T * N, random, key_size), v = drawn(T * N, random);
    chunk.begin(0, T, std::vector<double>(T * N, 1 - 0x1p-6), false);
    const std::vector<float> seen = moved_by(chunk, state.carried(), reads, N);
    std::vector<double> off(T * N);
    for (int64_t t = 0; t < T; ++t)
      for (int64_t c = 0; c < N; ++c)
        for (int64_t j = 0; j < N; ++j)
          off[static_cast<size_t>(t * N + j)] += static_cast<double>(reads[static_cast<size_t>(t * N + c)]) *
                                                 carried[static_cast<size_t>(c * N + j)];
    for (size_t i = 0; i < off.size(); ++i) EXPECT_NEAR(static_cast<double>(seen[i]), off[i], 1e-4) << i;
    state.advance(chunk, state.written(chunk, {k, NoiseSource::key}, v));
    for (int64_t c = 0; c < N; ++c)
      for (int64_t j = 0; j < N; ++j) {
        const auto i = static_cast<size_t>(c * N + j);
        double added = 0;
        for (int64_t t = 0; t < T; ++t)
          added += static_cast<double>(k[chunk.at(t, c)]) * static_cast<double>(v[chunk.at(t, j)]) *
                   std::pow(1 - 0x1p-6, T - 1 - t);
        const double w = std::pow(1 - 0x1p-6, T);
        // Rounded where the chunk before ended; what that leaves behind this one, where this one adds enough.
        const double S = w * exact[i] + added, fresh = 4 * ulp(Dtype::bf16, S);
        carried[i] = std::fabs(added) < fresh ? 0 : w * (kept[i] - exact[i]);
        exact[i] = S, kept[i] = round_to(Dtype::bf16, S + carried[i]);
      }
    return off;
  }
  std::vector<double> carried = std::vector<double>(N * N);
};

TEST(KeptState, CarriesWhatItsRoundingsLeaveOfEarlierChunks) {
  Chunks of;
  double squares = 0;
  for (int i = 0; i < 6; ++i) {
    const std::vector<double> off = of.next(1);
    squares = 0;
    for (const double x : off) squares += x * x;
    EXPECT_EQ(squares > 0, i > 1)
        << i;  // the first state is none, the second is rounded and read as a copy is
  }
}

TEST(KeptState, CarriesNothingWhereAChunkAddsLessThanRoundsItAnew) {
  Chunks of;
  for (int i = 0; i < 4; ++i) of.next(1);
  const std::vector<float> k(T * N, 0x1p-30f), v = drawn(T * N, of.random);
  of.state.advance(of.chunk, of.state.written(of.chunk, {k, NoiseSource::key}, v));
  for (const float x : of.state.carried()) EXPECT_EQ(x, 0);
}

TEST(KeptState, VariancesAlongItAreThoseOfTheSamples) {
  for (const char* decay : {"none", "near-one", "logsigmoid"}) {
    double predicted = 0, sampled = 0, length = 0;
    RandomShape shape;
    shape.T = 4 * T, shape.H = 12, shape.K = shape.V = N, shape.dtype = Dtype::bf16, shape.decay = decay;
    RandomProblem p;
    draw_problem(shape, 5, p);
    Arithmetic& a = p.problem.arithmetic;
    a.chunk = T, a.readout = u, a.write_scaled = u, a.readout_scaled = u, a.write = u;
    for (const Slice& slice : slices_of(p.problem)) {
      double along[kNoiseSamples] = {};
      find_operator("gla").forward_noise(p.problem, slice, [&](const NoiseBlock& b) {
        if (!b.kept) return;
        predicted += b.kept_variance;
        for (int64_t i = 0; i < b.rows * b.columns; ++i) {
          length += static_cast<double>(b.kept[i] * b.kept[i]);
          for (int64_t s = 0; s < kNoiseSamples; ++s)
            along[s] += static_cast<double>(b.kept[i]) *
                        static_cast<double>(b.near[i * kNoiseSamples + s] + b.far[i * kNoiseSamples + s]);
        }
      });
      for (const double y : along) sampled += y * y / kNoiseSamples;
    }
    EXPECT_GT(length, 0) << decay;
    // 192 squares of normal numbers: their mean is 0.1 off in one standard deviation.
    EXPECT_NEAR(sampled / predicted, 1, 0.4) << decay;
  }
}

}  // namespace kept_state_test
}  // namespace assay
