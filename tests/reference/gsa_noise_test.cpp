// Samples of gated slot attention's roundings against the roundings themselves, of one chunk written out.
#include "reference/gsa_noise.h"

#include <gtest/gtest.h>

#include "src/base/numerics/format.h"
#include "tests/reference/random_problem.h"
#include "tests/reference/sampled_noise.h"

namespace assay {
namespace gsa_noise_test {

constexpr int64_t T = 64, N = 8;  // tokens of one chunk; channels and slots

/// Rounds to bf16, or does not.
struct Rounding {
  bool on;
  double operator()(double x) const { return on ? round_to(Dtype::bf16, x) : x; }
};

using Values = std::map<std::string, std::vector<double>>;

/// [t][c]
using Rows = std::vector<double>;

double& at(Rows& rows, int64_t t, int64_t c) {
  return rows[static_cast<size_t>(t * N + c)];
}
double at(const Rows& rows, int64_t t, int64_t c) {
  return rows[static_cast<size_t>(t * N + c)];
}
double dot(const Rows& a, int64_t t, const Rows& b, int64_t j) {
  double sum = 0;
  for (int64_t c = 0; c < N; ++c) sum += at(a, t, c) * at(b, j, c);
  return sum;
}

struct OneChunk {
  Rows q, k, v, s, d_o;
  Rows sums;  ///< of g up to a token
  double scale;

  explicit OneChunk(const RandomProblem& p) : scale(p.problem.scale) {
    const auto values = [&](const char* name) {
      const Tensor& tensor = p.inputs.at(name);
      Rows rows;
      for (int64_t i = 0; i < tensor.size(); ++i) rows.push_back(tensor.value(i));
      return rows;
    };
    q = values("q"), k = values("k"), v = values("v"), s = values("s"), d_o = values("do"),
    sums = values("g");
    for (size_t i = N; i < sums.size(); ++i) sums[i] += sums[i - N];
  }
  /// Decay of slot m from token j to t, times s_j.
  double written(int64_t t, int64_t j, int64_t m) const {
    return std::exp(at(sums, t, m) - at(sums, j, m)) * at(s, j, m);
  }

  /// With the declared roundings: the scores of y and of dp, p and dy as they are stored.
  Values run(Rounding round) const {
    Values y;
    for (const char* name : {"o", "dq", "dk", "dv", "ds", "dg"}) y[name].assign(T * N, 0);
    Rows &o = y["o"], &dq = y["dq"], &dk = y["dk"], &dv = y["dv"], &ds = y["ds"], &dg = y["dg"];
    for (int64_t t = 0; t < T; ++t) {
      double p[N] = {}, dp[N] = {}, dy[N], sum = 0, mean = 0;
      for (int64_t j = 0; j <= t; ++j)
        for (int64_t m = 0; m < N; ++m) {
          p[m] += round(scale * dot(q, t, k, j)) * written(t, j, m);
          dp[m] += round(dot(d_o, t, v, j)) * written(t, j, m);
        }
      for (double& w : p) sum += w = std::exp(w);
      for (int64_t m = 0; m < N; ++m) p[m] = round(p[m] / sum), mean += p[m] * dp[m];
      for (int64_t m = 0; m < N; ++m) dy[m] = round(p[m] * (dp[m] - mean));
      for (int64_t j = 0; j <= t; ++j) {
        const double of_keys = scale * dot(q, t, k, j), of_values = dot(d_o, t, v, j);
        for (int64_t m = 0; m < N; ++m) {
          const double w = written(t, j, m), share = w / at(s, j, m);
          for (int64_t c = 0; c < N; ++c) {
            at(o, t, c) += p[m] * w * at(v, j, c), at(dv, j, c) += p[m] * w * at(d_o, t, c);
            at(dq, t, c) += scale * dy[m] * w * at(k, j, c);
            at(dk, j, c) += scale * dy[m] * w * at(q, t, c);
          }
          const double both = of_keys * dy[m] + of_values * p[m];
          at(ds, j, m) += both * share;
          for (int64_t i = j + 1; i <= t; ++i) at(dg, i, m) += both * w;
        }
      }
    }
    return y;
  }
};

void draw(RandomProblem& p, const char* decay, uint64_t seed) {
  RandomShape shape;
  shape.T = T, shape.K = shape.V = shape.M = N, shape.dtype = Dtype::bf16;
  shape.initial_state = false, shape.cotangents = true;
  draw_problem_of(find_operator("gsa"), decay, shape, seed, p);
  const double u = unit_roundoff(Dtype::bf16);
  p.problem.arithmetic.chunk = p.problem.adjoint.state.chunk = p.problem.adjoint.adjoint.chunk = T;
  for (Arithmetic* a : {&p.problem.arithmetic, &p.problem.adjoint.state}) a->logits = a->divide = u;
  p.problem.adjoint.inner = u;
}

TEST(GsaNoise, IsAsLargeAsTheRoundingsItStandsFor) {
  for (const char* decay : {"none", "logsigmoid", "strong"}) {
    std::map<std::string, std::vector<double>> ratios;  // of draws: few terms make most of some
    for (uint64_t seed = 1; seed <= 15; ++seed) {
      RandomProblem p;
      draw(p, decay, seed);
      const OneChunk chunk(p);
      const Values rounded = chunk.run({true}), exact = chunk.run({false});
      std::map<std::string, SampledNoise> predicted = sampled_noise(p.problem, &gsa_forward_noise);
      predicted.merge(sampled_noise(p.problem, &gsa_adjoint_noise));
      for (const auto& [name, values] : rounded) {
        double squares = 0;
        for (size_t i = 0; i < values.size(); ++i) squares += std::pow(values[i] - exact.at(name)[i], 2);
        ratios[name].push_back(predicted.at(name).squares / squares);
      }
    }
    EXPECT_EQ(ratios.size(), 6u);
    for (auto& [name, all] : ratios) {
      std::sort(all.begin(), all.end());
      EXPECT_GT(all[all.size() / 2], 0.5) << decay << " " << name;
      EXPECT_LT(all[all.size() / 2], 2) << decay << " " << name;
    }
  }
}

TEST(GsaNoise, OfLogitsThatAreTooNoisyIsNotBounded) {
  RandomProblem p;
  draw(p, "none", 3);
  EXPECT_TRUE(sampled_noise(p.problem, &gsa_forward_noise).at("o").bounded);
  p.problem.scale = 32;
  EXPECT_FALSE(sampled_noise(p.problem, &gsa_forward_noise).at("o").bounded);
}

/// One slot has nearly all the weight: p hardly moves, and dy by as many nats as its logits.
TEST(GsaNoise, OfWeightsThatAreLeftIsNotBounded) {
  RandomProblem p;
  draw(p, "none", 3);
  p.problem.scale = 200;
  EXPECT_FALSE(sampled_noise(p.problem, &gsa_adjoint_noise).at("dq").bounded);
}

TEST(GsaNoise, IsNotKnownWithoutGates) {
  RandomProblem p;
  draw(p, "absent", 3);
  EXPECT_TRUE(sampled_noise(p.problem, &gsa_forward_noise).empty());
}

}  // namespace gsa_noise_test
}  // namespace assay
