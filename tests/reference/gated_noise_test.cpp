// Samples of the gated family's roundings against the roundings themselves, of one chunk written out.
#include "reference/gated_noise.h"

#include <gtest/gtest.h>

#include "src/base/numerics/format.h"
#include "tests/reference/random_problem.h"
#include "tests/reference/sampled_noise.h"

namespace assay {
namespace gated_noise_test {

constexpr int64_t T = 64, N = 16;
constexpr double u = 0x1p-8;

void draw(RandomProblem& p, const char* decay, int64_t tokens, uint64_t seed) {
  RandomShape shape;
  shape.T = tokens, shape.K = shape.V = N, shape.dtype = Dtype::bf16;
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

}  // namespace gated_noise_test
}  // namespace assay
