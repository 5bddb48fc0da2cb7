// The recurrence's errors by column norms, against the same recurrence in fp32.
#include "reference/bounds/norm_recurrence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace assay {
namespace bounds_norm_recurrence_test {

constexpr int64_t K = 6, V = 3;
constexpr double u = 0x1p-24;

/// One step's vectors: weights up to 1, a removal that opposes its read, rates of columns.
struct Drawn {
  std::vector<double> w, x, y, written, columns, rates, rho;

  explicit Drawn(std::mt19937_64& random) : rates(V) {
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    const auto draw = [&](int64_t count, auto value) {
      std::vector<double> made(static_cast<size_t>(count));
      for (double& v : made) v = static_cast<float>(value());
      return made;
    };
    w = draw(K, [&] { return -uniform(random); });
    y = draw(K, [&] { return normal(random) / std::sqrt(double{K}); });
    x = y, written = draw(K, [&] { return normal(random); }),
    columns = draw(V, [&] { return normal(random); });
    for (double& v : x) v = -v;
    for (double& r : rates) r = static_cast<float>(uniform(random));
    // ||D + rate x y^T|| <= 1 + rate |x| |y|
    for (const double rate : rates) rho.push_back(1 + rate * norm(x.data(), K) * norm(y.data(), K));
  }
  NormStep step() const {
    NormStep s{w.data(), x.data(), y.data(), written.data(), columns.data()};
    s.rates = rates.data();
    return s;
  }
};

/// S <- D S + rate (x (y^T S) + written columns^T), operation by operation in `Real`.
template <typename Real>
void advance(const Drawn& d, std::vector<Real>& S) {
  const auto of = [](double value) { return static_cast<Real>(value); };
  for (size_t j = 0; j < V; ++j) {
    Real read = 0;
    for (size_t c = 0; c < K; ++c) read += of(d.y[c]) * S[c * V + j];
    for (size_t c = 0; c < K; ++c) {
      const Real kept = std::exp(of(d.w[c])) * S[c * V + j];
      const Real added = of(d.rates[j]) * (of(d.x[c]) * read + of(d.written[c]) * of(d.columns[j]));
      S[c * V + j] = kept + added;
    }
  }
}

/// Each operation of advance<float> has an error of u, std::exp one of 2 u.
Arithmetic of_fp32() {
  Arithmetic a;
  a.decay = 4 * u, a.write = 4 * u, a.step = 2 * u, a.removal = (K + 4) * u;
  return a;
}

struct Columns {
  double declared, own, error, own_error;
};
Columns column(const NormState& s, const std::vector<float>& kernel, const std::vector<long double>& exact,
               size_t j) {
  Columns y{s.declared[j], s.own[j], 0, 0};
  for (size_t c = 0; c < K; ++c) {
    const size_t i = c * V + j;
    y.error += std::pow(static_cast<double>(kernel[i] - exact[i]), 2);
    y.own_error += std::pow(static_cast<double>(s.S[i] - exact[i]), 2);
  }
  y.error = std::sqrt(y.error), y.own_error = std::sqrt(y.own_error);
  return y;
}

TEST(NormRecurrence, bounds_the_error_of_every_column_of_fp32_and_of_itself) {
  double closest = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    const NormRecurrence recurrence(K, V, of_fp32(), 0x1p-149);
    std::normal_distribution<double> normal;
    std::vector<double> S0(K * V);
    for (double& v : S0) v = static_cast<float>(normal(random));
    NormState s = recurrence.start(S0);
    std::vector<float> kernel(S0.begin(), S0.end());
    std::vector<long double> exact(S0.begin(), S0.end());
    for (int t = 0; t < 20; ++t) {
      const Drawn d(random);
      recurrence.advance(d.step(), d.rho, s);
      advance(d, kernel), advance(d, exact);
      for (size_t j = 0; j < V; ++j) {
        const Columns now = column(s, kernel, exact, j);
        ASSERT_LE(now.error, now.declared + now.own) << "seed " << seed << " token " << t;
        ASSERT_LE(now.own_error, now.own) << "seed " << seed << " token " << t;
        closest = std::fmax(closest, now.error / now.declared);
      }
    }
  }
  EXPECT_GT(closest, 0.02);
}

/// In a chunk a state's error is what its updates miss, and no operation of the steps between its ends.
TEST(NormRecurrence, in_a_chunk_adds_the_residuals_and_at_its_end_the_boundary) {
  std::mt19937_64 random(7);
  Arithmetic a;
  a.boundary = 0x1p-20;
  const NormRecurrence recurrence(K, V, a, 0);
  NormState s = recurrence.start(std::vector<double>(K * V, 1));
  recurrence.enter_chunk(s, {});
  EXPECT_TRUE(s.in_chunk());
  const Drawn d(random);
  const std::vector<double> update(V, 0.5), none(V, 0), residual(V, 0x1p-10);
  const std::vector<double> kept(V, 1);
  recurrence.advance_in_chunk(d.step(), kept, {}, update.data(), none.data(), nullptr, s);
  for (const double e : s.declared) EXPECT_EQ(e, 0);
  recurrence.advance_in_chunk(d.step(), kept, {}, update.data(), residual.data(), nullptr, s);
  const double length = norm(d.x.data(), K);
  for (const double e : s.declared) EXPECT_NEAR(e, length * 0x1p-10, 1e-8 * length);
  const NormState inside = s;
  recurrence.leave_chunk(s);
  EXPECT_FALSE(s.in_chunk());
  for (size_t j = 0; j < V; ++j) {
    double paths = 0;
    for (size_t c = 0; c < K; ++c) paths += std::pow(inside.paths[c * V + j], 2);
    EXPECT_NEAR(s.declared[j] - inside.declared[j], 0x1p-20 * std::sqrt(paths), 1e-8 * std::sqrt(paths));
  }
}

/// What all tokens read wrong alike reaches the chunk's end as it is and as the chunk's transitions make it.
TEST(NormRecurrence, in_a_chunk_counts_once_what_all_tokens_read_wrong_alike) {
  std::mt19937_64 random(7);
  const NormRecurrence recurrence(K, V, Arithmetic(), 0);
  const Drawn d(random);
  const std::vector<double> update(V, 0.5), none(V, 0), residual(V, 1), zeros(K, 0);
  ChunkPassage passage;
  passage.whole = 0.25, passage.response = 1, passage.lengthened = 1;
  const auto left = [&](double held) {
    NormState s = recurrence.start(std::vector<double>(K * V, 1));
    s.declared.assign(V, 0x1p-4);
    recurrence.enter_chunk(s, passage, held);
    NormStep step = d.step();
    step.w = zeros.data();
    recurrence.advance_in_chunk(step, d.rho, {}, update.data(), residual.data(), none.data(), s);
    recurrence.leave_chunk(s);
    return s.declared[0];
  };
  EXPECT_NEAR(left(0x1p-10), 0.25 * 0x1p-4 + 2 * 0x1p-10 * (std::sqrt(double{K}) + 0x1p-4), 1e-8);
}

TEST(NormRecurrence, a_state_beyond_fp32_has_no_bound) {
  const NormRecurrence recurrence(1, 1, of_fp32(), 0);
  const double w = 0, x = 0, y = 0, written = 1, column = 1e38;
  NormStep step{&w, &x, &y, &written, &column};
  NormState s = recurrence.start({0});
  for (int t = 0; t < 8; ++t) recurrence.advance(step, {1}, s);
  EXPECT_TRUE(std::isinf(s.declared[0])) << s.declared[0];
}

}  // namespace bounds_norm_recurrence_test
}  // namespace assay
