// Samples of the gated family's roundings against the roundings themselves, of one chunk written out.
#include "reference/gated_noise.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>

#include "src/base/numerics/format.h"
#include "tests/reference/random_problem.h"
#include "tests/reference/sampled_noise.h"

namespace assay {
namespace gated_noise_test {

constexpr int64_t T = 64, N = 16;
constexpr double u = 0x1p-8;

void draw(RandomProblem& p, const char* decay, int64_t tokens, uint64_t seed, Dtype dtype = Dtype::bf16) {
  RandomShape shape;
  shape.T = tokens, shape.K = shape.V = N, shape.dtype = dtype;
  shape.initial_state = false, shape.cotangents = true;
  draw_problem_of(find_operator("gla"), decay, shape, seed, p);
  p.problem.arithmetic.chunk = p.problem.adjoint.state.chunk = p.problem.adjoint.adjoint.chunk = T;
}

/// o of one chunk whose scores are rounded, less the exact one.
double squares_of_rounded_scores(const RandomProblem& p) {
  const auto at = [&](const char* name, int64_t t, int64_t c) { return p.inputs.at(name).value(t * N + c); };
  double squares = 0;
  for (int64_t t = 0; t < T; ++t) {
    std::vector<double> decay(N, 1), off(N, 0);
    for (int64_t j = t; j >= 0; --j) {
      double score = 0;
      for (int64_t c = 0; c < N; ++c) {
        score += p.problem.scale * at("q", t, c) * decay[static_cast<size_t>(c)] * at("k", j, c);
        decay[static_cast<size_t>(c)] *= std::exp(at("g", j, c));
      }
      const double error = round_to(Dtype::bf16, score) - score;
      for (int64_t v = 0; v < N; ++v) off[static_cast<size_t>(v)] += error * at("v", j, v);
    }
    for (const double x : off) squares += x * x;
  }
  return squares;
}

void sample_forward(const Problem& p, const Slice& s, const NoiseVisit& visit) {
  find_operator("gla").forward_noise(p, s, visit);
}
void sample_adjoint(const Problem& p, const Slice& s, const NoiseVisit& visit) {
  find_operator("gla").adjoint_noise(p, s, visit);
}

TEST(GatedNoise, OfScoresIsAsLargeAsTheirRoundings) {
  for (const char* decay : {"none", "logsigmoid", "strong"}) {
    double squares = 0, predicted = 0;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      RandomProblem p;
      draw(p, decay, T, seed);
      p.problem.arithmetic.readout = u;
      squares += squares_of_rounded_scores(p);
      predicted += sampled_noise(p.problem, &sample_forward).at("o").squares;
    }
    EXPECT_GT(predicted, 0.8 * squares) << decay;
    EXPECT_LT(predicted, 1.25 * squares) << decay;
  }
}

TEST(GatedNoise, OfAnOutputComesFromWhatIsDeclaredForIt) {
  struct {
    double AdjointArithmetic::*member;
    const char* output;
  } constexpr rows[] = {{&AdjointArithmetic::value_readout, "dv"}, {&AdjointArithmetic::gate_readout, "dg"}};
  for (const auto& row : rows) {
    RandomProblem p;
    draw(p, "logsigmoid", 2 * T, 5);
    p.problem.adjoint.*row.member = u;
    for (const auto& [name, noise] : sampled_noise(p.problem, &sample_adjoint))
      EXPECT_EQ(noise.squares > 0, name == row.output) << name;
  }
}

TEST(GatedNoise, OfWrittenKeysReachesLaterChunksOnly) {
  RandomProblem p;
  draw(p, "logsigmoid", 2 * T, 6);
  p.problem.arithmetic.write = u;
  double first = 0, second = 0;
  for (const Slice& slice : slices_of(p.problem))
    sample_forward(p.problem, slice, [&](const NoiseBlock& b) {
      if (b.output != "o") return;
      for (int64_t i = 0; i < b.rows * b.columns * kNoiseSamples; ++i) {
        EXPECT_EQ(b.near[i], 0);
        (b.first == 0 ? first : second) += std::fabs(b.far[i]);
      }
    });
  EXPECT_EQ(first, 0);
  EXPECT_GT(second, 0);
}

TEST(GatedNoise, WhatDecaysAddIsNoneWhereNothingDecays) {
  for (const char* decay : {"none", "logsigmoid"}) {
    RandomProblem p;
    draw(p, decay, 2 * T, 7);
    p.problem.arithmetic.readout_scaled = p.problem.arithmetic.write_scaled = u;
    EXPECT_EQ(sampled_noise(p.problem, &sample_forward).at("o").squares > 0, decay != std::string("none"));
  }
}

/// Towards zero, to 24 bits.
double truncated(double x) {
  const float y = static_cast<float>(x);
  return std::fabs(y) > std::fabs(x) ? static_cast<double>(std::nextafter(y, 0.0f)) : static_cast<double>(y);
}

/// Scores exact and their products with v summed up, each sum truncated: the errors of o, and the exact o.
void truncating_sums(const RandomProblem& p, std::vector<double>& errors, std::vector<double>& exact) {
  const auto at = [&](const char* name, int64_t t, int64_t c) { return p.inputs.at(name).value(t * N + c); };
  for (int64_t t = 0; t < T; ++t) {
    std::vector<double> score(T);
    for (int64_t j = 0; j <= t; ++j)
      for (int64_t c = 0; c < N; ++c)
        score[static_cast<size_t>(j)] += p.problem.scale * at("q", t, c) * at("k", j, c);
    for (int64_t v = 0; v < N; ++v) {
      double sum = 0, kept = 0;
      for (int64_t j = 0; j <= t; ++j) {
        const double term = score[static_cast<size_t>(j)] * at("v", j, v);
        sum += term, kept = truncated(kept + term);
      }
      errors.push_back(kept - sum), exact.push_back(sum);
    }
  }
}

TEST(GatedNoise, OfTruncatingSumsIsTheHalfThatHasEitherSign) {
  double squares = 0, predicted = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    RandomProblem p;
    draw(p, "none", T, seed, Dtype::fp32);
    Arithmetic& a = p.problem.arithmetic;
    a.truncated = a.readout = T * 0x1p-23, a.single = 0x1p-23;
    std::vector<double> errors, exact;
    truncating_sums(p, errors, exact);
    double along = 0, size = 0, allowed = 0;
    for (size_t i = 0; i < errors.size(); ++i) along += errors[i] * exact[i], size += exact[i] * exact[i];
    EXPECT_LT(along, 0);
    sample_forward(p.problem, slices_of(p.problem)[0], [&](const NoiseBlock& b) {
      if (b.output != "o") return;
      EXPECT_LT(b.rest, 0.51 * a.truncated);
      for (size_t i = 0; i < exact.size(); ++i)
        allowed += std::fabs(exact[i]) * b.rest *
                   (std::fabs(exact[i]) + std::sqrt(static_cast<double>(b.squares[i])));
    });
    EXPECT_LT(-along, allowed);
    for (size_t i = 0; i < errors.size(); ++i) {
      const double apart = errors[i] - along / size * exact[i];
      squares += apart * apart;
    }
    predicted += sampled_noise(p.problem, &sample_forward).at("o").squares;
  }
  EXPECT_GT(predicted, squares);
  EXPECT_LT(predicted, 16 * squares);
}

TEST(GatedNoise, OfSplitOperandsComesFromTheirRoundingsAndLeavesGatesOut) {
  RandomProblem p;
  draw(p, "logsigmoid", 2 * T, 8, Dtype::fp32);
  for (Arithmetic* side : {&p.problem.adjoint.state, &p.problem.adjoint.adjoint})
    side->truncated = 0x1p-20, side->single = 0x1p-22;
  struct {
    void (*declare)(AdjointArithmetic&);
    std::set<std::string> outputs;
  } const rows[] = {
      {[](auto& a) { a.state.write = 0x1p-20; }, {"dq"}},
      {[](auto& a) { a.state.boundary = 0x1p-24; }, {"dq"}},
      {[](auto& a) { a.adjoint.write = 0x1p-20; }, {"dk", "dv"}},
      {[](auto& a) { a.adjoint.boundary = 0x1p-24; }, {"dk", "dv"}},
      {[](auto& a) { a.state.readout = 0x1p-20; }, {"dq"}},
      {[](auto& a) { a.adjoint.readout = 0x1p-20; }, {"dk"}},
      {[](auto& a) { a.value_readout = 0x1p-20; }, {"dv"}},
  };
  const AdjointArithmetic none = p.problem.adjoint;
  for (const auto& row : rows) {
    p.problem.adjoint = none;
    row.declare(p.problem.adjoint);
    std::set<std::string> noisy;
    for (const auto& [name, noise] : sampled_noise(p.problem, &sample_adjoint)) {
      EXPECT_NE(name, "dg");
      if (noise.squares > 0) noisy.insert(name);
    }
    EXPECT_EQ(noisy, row.outputs) << &row - rows;
  }
}

/// All that is handed on of a slice, by output and place.
using Handed = std::map<std::pair<std::string, int64_t>, std::vector<float>>;
Handed handed(const Problem& p, void (*sample)(const Problem&, const Slice&, const NoiseVisit&)) {
  Handed y;
  std::mutex mutex;
  sample(p, slices_of(p).front(), [&](const NoiseBlock& b) {
    const std::lock_guard lock(mutex);
    std::vector<float>& to = y[{std::string(b.output), b.first}];
    EXPECT_TRUE(to.empty());
    const int64_t elements = b.rows * b.columns;
    for (const float* samples : {b.near, b.far})
      if (samples) to.insert(to.end(), samples, samples + elements * kNoiseSamples);
    for (const float* numbers : {b.common, b.squares}) to.insert(to.end(), numbers, numbers + elements);
    to.push_back(static_cast<float>(b.kept_variance));
  });
  return y;
}

TEST(GatedNoise, IsTheSameForAnyNumberOfThreads) {
  for (auto* const sample : {&sample_forward, &sample_adjoint}) {
    RandomProblem p;
    draw(p, "logsigmoid", 21 * T + 5, 3);
    p.problem.arithmetic.readout = p.problem.arithmetic.write_scaled = p.problem.arithmetic.readout_scaled =
        u;
    p.problem.adjoint.state = p.problem.adjoint.adjoint = p.problem.arithmetic;
    p.problem.adjoint.value_readout = p.problem.adjoint.gate_readout = u;
    const Handed alone = handed(p.problem, sample);
    EXPECT_GE(alone.size(), 22u);
    for (const int threads : {2, 5}) {
      p.problem.threads = threads;
      EXPECT_EQ(handed(p.problem, sample), alone) << threads;
    }
  }
}

}  // namespace gated_noise_test
}  // namespace assay
