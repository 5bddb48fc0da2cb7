// How errors pass through windows of chunks, against errors that pass through their transitions one by one.
#include "reference/bounds/chunk_passage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "reference/bounds/norm_recurrence.h"

namespace assay {
namespace bounds_chunk_passage_test {

constexpr size_t K = 4;
constexpr int kTokens = 8;  ///< of a chunk

/// I - beta k k^T with |k| = 1, or decayed before.
struct Token {
  std::vector<double> w, x, y;
  double beta, rho;

  Token(std::mt19937_64& random, double most_beta, double log_decay) : w(K, log_decay), x(K), y(K) {
    std::normal_distribution<double> normal;
    beta = most_beta * std::uniform_real_distribution<double>()(random);
    for (double& value : y) value = normal(random);
    const double length = norm(y.data(), K);
    for (size_t c = 0; c < K; ++c) x[c] = -y[c] / length, y[c] = std::exp(log_decay) * -x[c];
    rho = std::exp(log_decay) * std::fmax(1, std::fabs(1 - beta)) + 0x1p-30;
  }
  NormStep step() const { return {w.data(), x.data(), y.data(), nullptr, nullptr}; }
  double pull() const { return beta * norm(x.data(), K) * norm(y.data(), K); }
  void pass(std::vector<double>& e, double eps) const {
    double read = 0;
    for (size_t c = 0; c < K; ++c) read += y[c] * e[c];
    for (size_t c = 0; c < K; ++c) e[c] = std::exp(w[c]) * e[c] + x[c] * (beta * read + eps);
  }
};

/// What a passage promises of these errors.
double promised(const ChunkPassage& p, double start, double squares) {
  return p.whole * start + p.response * std::sqrt(squares);
}

TEST(ChunkPassage, bounds_errors_of_every_window_and_is_near_them) {
  double closest = 0;
  int windows = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    const double most_beta = seed % 3 == 0 ? 2 : 1.2, log_decay = seed % 2 ? 0 : -0.01;
    ChunkPassages passages(K);
    std::vector<double> e(K, 0);
    double start = 0, squares = 0;
    bool begins = true;
    for (int chunk = 0; chunk < 12; ++chunk) {
      if (begins) {
        if (seed % 4 == 0) e.assign(K, 0), e[seed % K] = 1;
        start = norm(e.data(), K), squares = 0;
      }
      for (int i = 0; i < kTokens; ++i) {
        const Token token(random, most_beta, log_decay);
        const double eps = seed % 4 == 0 ? 0 : normal(random) * std::sqrt(token.beta);
        token.pass(e, eps), squares += eps * eps / passage_weight(token.beta, token.pull());
        passages.add(token.step(), token.rho, token.beta);
      }
      const ChunkPassage passage = passages.end_chunk();
      EXPECT_EQ(passage.begins, begins) << chunk;
      begins = passage.whole <= 0.25, windows += begins;
      if (!(passage.whole < HUGE_VAL)) continue;
      const double error = norm(e.data(), K), most = promised(passage, start, squares);
      ASSERT_LE(error, most * (1 + 1e-12)) << "seed " << seed << " chunk " << chunk;
      closest = std::fmax(closest, error / most);
    }
  }
  EXPECT_GT(closest, 0.5);
  EXPECT_GT(windows, 100);
}

/// Keys of one direction turn no other error away.
TEST(ChunkPassage, of_keys_that_leave_a_direction_out_has_the_norm_one) {
  ChunkPassages passages(K);
  const std::vector<double> zeros(K, 0), x = {-1, 0, 0, 0}, y = {1, 0, 0, 0};
  for (int i = 0; i < kTokens; ++i) passages.add({zeros.data(), x.data(), y.data(), nullptr, nullptr}, 1, 1);
  const ChunkPassage passage = passages.end_chunk();
  EXPECT_NEAR(passage.whole, 1, 0.02);
  EXPECT_NEAR(passage.response, 1, 0.02);
}

TEST(ChunkPassage, promises_nothing_before_all_directions_are_reached_nor_where_errors_grow) {
  std::mt19937_64 random(1);
  ChunkPassages passages(K);
  passages.add(Token(random, 1, 0).step(), 1, 1);
  EXPECT_TRUE(std::isinf(passages.end_chunk().whole));
  ChunkPassages growing(K);
  for (int i = 0; i < kTokens; ++i) growing.add(Token(random, 1, 0).step(), 4, 1);
  EXPECT_TRUE(std::isinf(growing.end_chunk().whole));
  for (int i = 0; i < kTokens; ++i) growing.add(Token(random, 1, 0).step(), 1, 1);
  const ChunkPassage next = growing.end_chunk();
  EXPECT_TRUE(next.begins);
  EXPECT_LT(next.whole, 2);
}

}  // namespace bounds_chunk_passage_test
}  // namespace assay
