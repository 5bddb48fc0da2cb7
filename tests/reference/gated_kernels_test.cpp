#include "reference/gated_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "src/base/numerics/exponential.h"

namespace assay {
namespace gated_kernels_test {

constexpr int64_t kTokens = 5, kKeys = 3;

std::vector<double> drawn(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> x(n);
  for (double& y : x) y = normal(random);
  return x;
}

struct Forward {
  std::vector<ForwardCoefficient> coefficients;
  std::vector<double> v = drawn(kTokens * kForwardColumns, 1), S = drawn(kKeys * kForwardColumns, 2), P, E, o,
                      o_abs, o_excess;

  explicit Forward(void (*run)(const ForwardTile&), const double* bonus, const double* bonus_abs) {
    const std::vector<double> x = drawn(3 * kTokens * kKeys, 3);
    for (size_t i = 0; i < kTokens * kKeys; ++i) {
      const double a = std::exp(-std::fabs(x[3 * i])), q = x[3 * i + 1];
      coefficients.push_back({a, x[3 * i + 2], q, std::fabs(q), a * (1 + 0x1p-20), a * 0x1p-20});
    }
    for (double s : S) P.push_back(std::fabs(s));
    E.resize(S.size()), o.resize(v.size()), o_abs.resize(v.size()), o_excess.resize(v.size());
    run({kTokens, kKeys, coefficients.data(), 0x1p-22, v.data(), S.data(), P.data(), E.data(), o.data(),
         o_abs.data(), o_excess.data(), bonus, bonus_abs, 0x1p-21});
  }
};

TEST(GatedKernels, carry_the_recurrence_of_every_column) {
  const Forward got(gated_kernels().forward, nullptr, nullptr);
  const std::vector<double> S0 = drawn(kKeys * kForwardColumns, 2);
  for (int j = 0; j < kForwardColumns; ++j) {
    double S[kKeys], P[kKeys];
    for (int64_t k = 0; k < kKeys; ++k)
      S[k] = S0[static_cast<size_t>(k * kForwardColumns + j)], P[k] = std::fabs(S[k]);
    for (int64_t t = 0; t < kTokens; ++t) {
      const auto at = static_cast<size_t>(t * kForwardColumns + j);
      double o = 0, companion = 0;
      for (int64_t k = 0; k < kKeys; ++k) {
        const ForwardCoefficient& c = got.coefficients[static_cast<size_t>(t * kKeys + k)];
        S[k] = S[k] * c.a + got.v[at] * c.k, P[k] = P[k] * c.a + std::fabs(got.v[at] * c.k);
        o += S[k] * c.q, companion += P[k] * c.q_abs;
      }
      EXPECT_EQ(got.o[at], o) << t << " " << j;
      EXPECT_EQ(got.o_abs[at], companion) << t << " " << j;
      EXPECT_GT(got.o_excess[at], 0x1p-23 * companion);
    }
  }
}

TEST(GatedKernels, read_the_state_before_the_token_and_its_own_term_where_the_readout_is_exclusive) {
  const std::vector<double> u = drawn(kKeys, 5);
  std::vector<double> u_abs;
  for (double x : u) u_abs.push_back(std::fabs(x));
  const Forward got(gated_kernels().forward_exclusive, u.data(), u_abs.data());
  const std::vector<double> S0 = drawn(kKeys * kForwardColumns, 2);
  for (int j = 0; j < kForwardColumns; ++j) {
    double o = 0;
    for (int64_t k = 0; k < kKeys; ++k) {
      const ForwardCoefficient& c = got.coefficients[static_cast<size_t>(k)];
      const double kv = got.v[static_cast<size_t>(j)] * c.k;
      o += (S0[static_cast<size_t>(k * kForwardColumns + j)] + kv * u[static_cast<size_t>(k)]) * c.q;
    }
    EXPECT_EQ(got.o[static_cast<size_t>(j)], o) << j;
  }
}

TEST(GatedKernels, have_the_same_bits_on_every_instruction_set) {
  const Forward expected(runnable_gated_kernels().front().forward, nullptr, nullptr);
  for (const GatedKernels& kernels : runnable_gated_kernels()) {
    const Forward got(kernels.forward, nullptr, nullptr);
    EXPECT_EQ(got.o, expected.o) << kernels.instruction_set;
    EXPECT_EQ(got.E, expected.E) << kernels.instruction_set;
  }
}

TEST(GatedKernels, exponentials_are_those_of_single_numbers) {
  std::vector<double> x = drawn(37, 8), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] *= i % 3 == 0 ? 1 : 400;
  x[1] = -HUGE_VAL, x[2] = HUGE_VAL, x[4] = -0.0;
  for (const GatedKernels& kernels : runnable_gated_kernels()) {
    kernels.exponentials(x.data(), std::ssize(x), y.data());
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(y[i], exponential(x[i])) << kernels.instruction_set << x[i];
  }
}

/// dk = G v and dv = G^T k, G made by one token's readout alone.
TEST(GatedKernels, run_tokens_backwards) {
  constexpr int W = kAdjointColumns;
  const std::vector<double> v = drawn(W, 6), d_o = drawn(W, 7);
  const std::vector<AdjointCoefficient> c(1, {0.5, -3, 3, 2, 2, 0.5, 0, 0.5, 0});
  std::vector<double> states(2 * adjoint_state_size(1)), G(adjoint_state_size(1)), dv(W), dv_abs(W),
      dv_excess(W);
  for (int j = 0; j < W; ++j) states[static_cast<size_t>(j)] = j;  // S_0
  const GatedKernels& kernels = gated_kernels();
  kernels.states({1, 1, c.data(), 0, v.data(), states.data(), true});
  std::vector<AdjointSums> sums(1);
  kernels.reverse({1, 1, c.data(), 0, v.data(), d_o.data(), states.data(), G.data(), sums.data(), dv.data(),
                   dv_abs.data(), dv_excess.data()});
  double dk = 0, dg = 0, dq = 0;
  for (int j = 0; j < W; ++j) {
    const double g = 2 * d_o[static_cast<size_t>(j)];
    dk += g * v[static_cast<size_t>(j)], dg += 0.5 * j * g;
    dq += (0.5 * j - 3 * v[static_cast<size_t>(j)]) * d_o[static_cast<size_t>(j)];
    EXPECT_EQ(dv[static_cast<size_t>(j)], -3 * g);
    EXPECT_EQ(G[static_cast<size_t>(j)], 0.5 * g);
  }
  EXPECT_NEAR(sums[0].dk, dk, 1e-12);
  EXPECT_NEAR(sums[0].dg, dg, 1e-12);
  EXPECT_NEAR(sums[0].dq, dq, 1e-12);
}

}  // namespace gated_kernels_test
}  // namespace assay
