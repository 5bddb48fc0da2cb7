#include "reference/bounds/chunk_reads.h"

#include <gtest/gtest.h>

#include <random>

namespace assay {
namespace bounds_chunk_reads_test {

Arithmetic of_chunks(int64_t chunk, int64_t tile) {
  Arithmetic a;
  a.chunk = chunk, a.solve_tokens = tile;
  a.removal = 0x1p-7, a.decay_per_nat = 0x1p-6;
  return a;
}

constexpr size_t kKeys = 5, kValues = 3;

/// A state in a chunk whose paths are longer than its entries.
NormState drawn_state(std::mt19937_64& random) {
  std::uniform_real_distribution<double> any(-1, 1);
  NormState s;
  for (size_t i = 0; i < kKeys * kValues; ++i) {
    s.S.push_back(any(random)), s.paths.push_back(std::fabs(s.S.back()) + 0.25 * (1 + any(random)));
    s.excess.push_back(0x1p-6 * (1 + any(random)));
  }
  s.updates.assign(s.S.size(), 0), s.own.assign(kValues, 0), s.reach.assign(kValues, 0),
      s.spread.assign(kKeys, 0);
  for (size_t j = 0; j < kValues; ++j) s.declared.push_back(0x1p-5 * (1 + any(random)));
  return s;
}

/// What a kernel may make of the state: each entry off by its excess, each column by its error, decays and
/// terms by all that is declared, always towards what the key reads.
struct Kernel {
  std::vector<double> S, moved;  ///< exact, and by how much the kernel's may be off towards either side
  std::vector<double> path;      ///< of the entries' magnitudes

  explicit Kernel(const NormState& s) : S(s.S), moved(s.excess), path(s.paths) {}
  void decay(const std::vector<double>& g, const BoundModel& model) {
    for (size_t c = 0; c < kKeys; ++c)
      for (size_t i = c * kValues; i < (c + 1) * kValues; ++i) {
        const double e = std::exp(g[c]), up = e * (1 + model.decay_error(g[c]));
        moved[i] = (path[i] + moved[i]) * up - path[i] * e;
        S[i] *= e, path[i] *= e;
      }
  }
  void write(const std::vector<double>& x, const std::vector<double>& columns) {
    for (size_t i = 0; i < S.size(); ++i)
      S[i] += x[i / kValues] * columns[i % kValues],
          path[i] += std::fabs(x[i / kValues] * columns[i % kValues]);
  }
};

std::vector<double> drawn(std::mt19937_64& random, size_t n, double low, double high) {
  std::uniform_real_distribution<double> any(low, high);
  std::vector<double> y(n);
  for (double& x : y) x = any(random);
  return y;
}

TEST(ChunkReads, of_a_passing_state_are_off_by_what_its_paths_decays_and_sums_may_be_and_hardly_more) {
  const Arithmetic a = of_chunks(8, 4);
  const BoundModel model(a);
  double largest = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    const NormState s = drawn_state(random);
    PassingState passing(s, kKeys, kValues, model);
    Kernel kernel(s);
    TileReads y = empty_reads(4, kValues);
    for (int64_t t = 0; t < 4; ++t) {
      const auto g = drawn(random, kKeys, -2, 0), key = drawn(random, kKeys, -1, 1),
                 given = drawn(random, kValues, -1, 1);
      const double factor = t % 2 ? -0.5 : 2;
      passing.decay(g.data()), kernel.decay(g, model);
      passing.read(key.data(), given.data(), factor, a, s.declared, s.own, t, y);
      for (size_t j = 0; j < kValues; ++j) {
        double exact = given[j], off = 0, terms = std::fabs(given[j]);
        for (size_t c = 0; c < kKeys; ++c) {
          const size_t i = c * kValues + j;
          exact -= key[c] * kernel.S[i], off += std::fabs(key[c]) * kernel.moved[i];
          terms += std::fabs(key[c]) * (kernel.path[i] + kernel.moved[i]);
        }
        const auto n = static_cast<int64_t>(j);
        EXPECT_NEAR(y.y(t, n), factor * exact, 1e-12 * std::fabs(factor) * terms) << seed << ' ' << t;
        const double reached = std::fabs(factor) * (off + a.removal * terms);
        EXPECT_LE(reached, y.dy(t, n)) << seed << ' ' << t;
        EXPECT_LE(std::fabs(factor * exact) + reached, y.size(t, n)) << seed << ' ' << t;
        largest = std::fmax(largest, reached / y.dy(t, n));
      }
      const auto columns = drawn(random, kValues, -1, 1);
      passing.write(key.data(), columns.data(), 1), kernel.write(key, columns);
    }
  }
  EXPECT_GT(largest, 0.9);
}

TEST(ChunkReads, without_given_columns_are_what_the_key_meets) {
  const Arithmetic a = of_chunks(8, 4);
  std::mt19937_64 random(7);
  const NormState s = drawn_state(random);
  const BoundModel model(a);
  const PassingState passing(s, kKeys, kValues, model);
  TileReads y = empty_reads(1, kValues);
  const std::vector<double> key = {0, 0, 1, 0, 0};
  passing.read(key.data(), nullptr, 3, a, s.declared, s.own, 0, y);
  for (int64_t j = 0; j < 3; ++j) EXPECT_EQ(y.y(0, j), 3 * s.S[2 * kValues + static_cast<size_t>(j)]);
}

TEST(ChunkReads, see_an_entry_with_its_paths_inside_a_chunk_and_alone_outside) {
  std::mt19937_64 random(9);
  NormState s = drawn_state(random);
  s.own = {0.25, 0.5, 0.75};
  const NormEntry inside = column_entry(s, 2, 1), whole = whole_entry(s, 2, 1);
  EXPECT_EQ(inside.value, s.S[7]);
  EXPECT_EQ(inside.own, 0.5);
  EXPECT_EQ(inside.error, s.excess[7]);
  EXPECT_EQ(inside.path, s.path(7));
  EXPECT_EQ(whole.error, s.excess[7] + s.declared[1]);
  s.paths.clear();
  EXPECT_EQ(column_entry(s, 2, 1).error, 0);
  EXPECT_EQ(column_entry(s, 2, 1).path, 0);
  EXPECT_EQ(whole_entry(s, 2, 1).error, s.declared[1]);
}

TEST(ChunkReads, are_of_tiles_no_longer_than_their_chunk_and_of_no_exact_arithmetic) {
  EXPECT_EQ(tile_tokens(of_chunks(8, 4)), 4);
  EXPECT_EQ(tile_tokens(of_chunks(8, 16)), 8);
  EXPECT_EQ(tile_tokens(of_chunks(8, 0)), 8);
  EXPECT_TRUE(in_chunks(of_chunks(8, 4)));
  EXPECT_FALSE(in_chunks(of_chunks(0, 4)));
  Arithmetic exact;
  exact.chunk = 8;
  EXPECT_TRUE(claims_exact(exact));
  EXPECT_FALSE(in_chunks(exact));
}

}  // namespace bounds_chunk_reads_test
}  // namespace assay
