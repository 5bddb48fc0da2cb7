// The spectral norm of diagonal plus rank one, against power iteration.
#include "reference/bounds/norm_wise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace assay {
namespace {

/// ||M x|| / ||x|| for the best x that many iterations find: never above the norm, and close to it.
double largest_stretch(const std::vector<double>& d, const std::vector<double>& a,
                       const std::vector<double>& b, std::mt19937_64& random) {
  const size_t n = d.size();
  std::normal_distribution<double> normal;
  double best = 0;
  for (int start = 0; start < 4; ++start) {
    std::vector<double> x(n), y(n);
    for (double& v : x) v = normal(random);
    for (int i = 0; i < 300; ++i) {
      double size = 0, dot = 0, grown = 0, back = 0;
      for (double v : x) size += v * v;
      for (double& v : x) v /= std::sqrt(size);
      for (size_t c = 0; c < n; ++c) dot += a[c] * x[c];
      for (size_t c = 0; c < n; ++c)
        y[c] = d[c] * x[c] + b[c] * dot, grown += y[c] * y[c], back += b[c] * y[c];
      best = std::fmax(best, std::sqrt(grown));
      for (size_t c = 0; c < n; ++c) x[c] = d[c] * y[c] + a[c] * back;  // M^T M x
    }
  }
  return best;
}

TEST(NormWise, bounds_the_spectral_norm_and_stays_close_to_it) {
  std::mt19937_64 random(20);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  for (int run = 0; run < 400; ++run) {
    const size_t n = 1 + random() % 12;
    std::vector<double> d(n), a(n), b(n);
    double size = 0;
    for (size_t c = 0; c < n; ++c)
      d[c] = run % 7 ? uniform(random) : 0, a[c] = normal(random), size += a[c] * a[c];
    // Removals as rwkv7 makes them, and anything.
    for (size_t c = 0; c < n; ++c) {
      if (run % 2) a[c] /= std::sqrt(size);
      b[c] = run % 2 ? -a[c] * uniform(random) : normal(random);
    }
    const double bound = diagonal_plus_rank_one_norm(d, a.data(), b.data()),
                 found = largest_stretch(d, a, b, random);
    EXPECT_GE(bound, found) << "run " << run;
    const double least = std::fmax(found, *std::max_element(d.begin(), d.end()));
    EXPECT_LE(bound, least * (1 + 0x1p-8) + 1e-300) << "run " << run;
  }
}

TEST(NormWise, of_nothing_removed_is_the_largest_weight) {
  const std::vector<double> d = {0.25, 0.75, 0.5}, zeros(3, 0), ones(3, 1);
  EXPECT_GE(diagonal_plus_rank_one_norm(d, zeros.data(), ones.data()), 0.75);
  EXPECT_LE(diagonal_plus_rank_one_norm(d, zeros.data(), ones.data()), 0.75 * (1 + 0x1p-30));
}

}  // namespace
}  // namespace assay
