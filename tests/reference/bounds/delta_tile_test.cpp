// The inverse of a tile's unit lower triangle: bounds of its magnitudes, and of what a kernel's own misses.
#include "reference/bounds/delta_tile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace assay {
namespace bounds_delta_tile_test {

constexpr int64_t n = 12;

/// 1 + N with entries of N up to `size`.
TileMatrix drawn_system(double size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-size, size);
  TileMatrix y(n, n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j) y(i, j) = i == j ? 1 : uniform(random);
  return y;
}
TileMatrix magnitudes(TileMatrix x) {
  for (double& value : x.values) value = std::fabs(value);
  return x;
}
Arithmetic declared(double solve, double scores = 0) {
  Arithmetic a;
  a.solve = solve, a.scores = scores;
  return a;
}
/// By substitution in a type's own arithmetic.
template <typename Real>
std::vector<Real> substituted(const TileMatrix& system) {
  std::vector<Real> x(static_cast<size_t>(n * n), 0);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      Real sum = i == j ? 1 : 0;
      for (int64_t m = j; m < i; ++m)
        sum -= static_cast<Real>(system(i, m)) * x[static_cast<size_t>(m * n + j)];
      x[static_cast<size_t>(i * n + j)] = sum;
    }
  return x;
}
/// Row i, column j of (1 + N) x - 1.
template <typename Real>
long double missed(const TileMatrix& system, const std::vector<Real>& x, int64_t i, int64_t j) {
  long double sum = i == j ? -1 : 0;
  for (int64_t m = j; m <= i; ++m)
    sum +=
        static_cast<long double>(system(i, m)) * static_cast<long double>(x[static_cast<size_t>(m * n + j)]);
  return sum;
}

TEST(DeltaTile, knows_the_exact_inverse_to_ten_digits) {
  for (const double size : {0.1, 1.0, 2.0})
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const TileMatrix system = drawn_system(size, seed);
      const DeltaTile tile(system, magnitudes(system), TileMatrix(n, n), declared(0));
      const auto x = substituted<long double>(system);
      double largest = 0;
      for (int64_t i = 0; i < n * n; ++i)
        largest = std::fmax(largest, tile.exact.values[static_cast<size_t>(i)]);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j <= i; ++j) {
          const auto exact = std::fabs(static_cast<double>(x[static_cast<size_t>(i * n + j)]));
          EXPECT_GE(tile.exact(i, j), exact) << size << " seed " << seed;
          EXPECT_LE(tile.exact(i, j), exact + 0x1p-22 * largest) << size << " seed " << seed;
        }
    }
}

/// A substitution in fp32 has (1 + N) X^ = 1 + R with |R| <= solve (1 + |N|) |X^|: n operations of one sum,
/// each rounded once, of terms that are rounded too, and N rounded to fp32.
TEST(DeltaTile, holds_for_a_substitution_in_fp32) {
  constexpr double solve = (n + 2) * 0x1p-24;
  double closest = 0;
  for (const double size : {0.1, 1.0, 2.0})
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const TileMatrix system = drawn_system(size, seed);
      const DeltaTile tile(system, magnitudes(system), TileMatrix(n, n), declared(solve));
      const auto x = substituted<float>(system);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j <= i; ++j) {
          const double off = std::fabs(static_cast<double>(missed(system, x, i, j)));
          EXPECT_LE(std::fabs(x[static_cast<size_t>(i * n + j)]), tile.inverse(i, j)) << i << ' ' << j;
          EXPECT_LE(off, tile.residual(i, j)) << size << " seed " << seed;
          closest = std::fmax(closest, off / tile.residual(i, j));
        }
    }
  EXPECT_GT(closest, 1.0 / (4 * n));
}

/// The left residual, X^ (1 + N) - 1, in the order in which a backward pass makes its rows.
TEST(DeltaTile, backwards_holds_for_the_transposed_system) {
  constexpr double solve = (n + 2) * 0x1p-24;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const TileMatrix system = drawn_system(1, seed);
    const DeltaTile tile =
        DeltaTile(system, magnitudes(system), TileMatrix(n, n), declared(solve)).backwards();
    const auto x = substituted<float>(system);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        long double off = i == j ? -1 : 0;
        for (int64_t m = j; m <= i; ++m)
          off += static_cast<long double>(x[static_cast<size_t>(i * n + m)]) *
                 static_cast<long double>(system(m, j));
        EXPECT_LE(std::fabs(static_cast<double>(off)), tile.residual(n - 1 - j, n - 1 - i))
            << "seed " << seed;
        EXPECT_EQ(tile.system(n - 1 - j, n - 1 - i), system(i, j));
      }
  }
}

/// A matrix each of whose entries is off by what is declared of scores, one way or the other, and its inverse
/// in fp32: what R and M are is told apart, forwards and backwards.
TEST(DeltaTile, of_scores_that_are_off_tells_apart_what_the_inverse_loses) {
  constexpr double solve = (n + 2) * 0x1p-24, scores = 0x1p-7;
  double closest = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const TileMatrix system = drawn_system(1, seed);
    TileMatrix made = system;
    std::mt19937_64 random(seed);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < i; ++j) made(i, j) *= random() % 2 ? 1 + 0.99 * scores : 1 - 0.99 * scores;
    const DeltaTile tile(system, magnitudes(system), TileMatrix(n, n), declared(solve, scores));
    const DeltaTile back = tile.backwards();
    const auto x = substituted<float>(made);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        long double left = i == j ? -1 : 0;
        for (int64_t m = j; m <= i; ++m)
          left += static_cast<long double>(x[static_cast<size_t>(i * n + m)]) *
                  static_cast<long double>(made(m, j));
        const double moved = std::fabs(made(i, j) - system(i, j)),
                     right = std::fabs(static_cast<double>(missed(made, x, i, j)));
        EXPECT_LE(right, tile.residual(i, j)) << "seed " << seed;
        EXPECT_LE(std::fabs(static_cast<double>(left)), back.residual(n - 1 - j, n - 1 - i))
            << "seed " << seed;
        EXPECT_LE(std::fabs(x[static_cast<size_t>(i * n + j)]), tile.inverse(i, j)) << "seed " << seed;
        EXPECT_LE(moved, tile.off(i, j)) << "seed " << seed;
        EXPECT_EQ(back.off(n - 1 - j, n - 1 - i), tile.off(i, j));
        if (i > j) closest = std::fmax(closest, moved / tile.off(i, j));
      }
  }
  EXPECT_GT(closest, 0.9);
}

/// Where an error may be as large as the system itself nothing is known of the inverse.
TEST(DeltaTile, is_infinite_where_the_declared_solve_says_nothing) {
  const TileMatrix system = drawn_system(1, 1);
  const DeltaTile tile(system, magnitudes(system), TileMatrix(n, n), declared(1));
  EXPECT_TRUE(std::isinf(tile.inverse(0, 0)));
}

}  // namespace bounds_delta_tile_test
}  // namespace assay
