// Bounds of chunked delta rules against a chunked evaluation whose operands are rounded as it declares.
#include <gtest/gtest.h>

#include "tests/reference/random_problem.h"

namespace assay {
namespace {

using Rows = std::vector<std::vector<double>>;
Rows zeros(int64_t rows, int64_t columns) {
  return Rows(static_cast<size_t>(rows), std::vector<double>(static_cast<size_t>(columns), 0));
}

constexpr double u = 0x1p-8;  ///< bf16's
constexpr size_t kChunk = 8, kTile = 4;

double rounded(double x) {
  return decode(Dtype::bf16, encode(Dtype::bf16, x));
}

/// One head of kda in chunks of tiles. What tensor cores take is rounded to bf16, all else are doubles.
struct Chunked {
  const Problem& p;
  Rows q, k, v, g, d_o, S, G;
  std::vector<double> beta;
  size_t T, K, V;
  /// Makes an inverse of a unit lower triangle.
  Rows (*inverse)(const Rows&);
  Rows o, u_, r_, dq, dk, dv, dg, dbeta;

  Chunked(const RandomProblem& drawn, Rows (*inverse)(const Rows&)) : p(drawn.problem), inverse(inverse) {
    const auto rows = [&](const char* name, int64_t n, int64_t width) {
      Rows y = zeros(n, width);
      for (int64_t i = 0; i < n * width; ++i)
        y[static_cast<size_t>(i / width)][static_cast<size_t>(i % width)] = drawn.inputs.at(name).value(i);
      return y;
    };
    const Sizes& s = p.sizes;
    T = static_cast<size_t>(s.T), K = static_cast<size_t>(s.K), V = static_cast<size_t>(s.V);
    q = rows("q", s.T, s.K), k = rows("k", s.T, s.K), v = rows("v", s.T, s.V), g = rows("g", s.T, s.K);
    d_o = rows("do", s.T, s.V), S = rows("initial_state", s.K, s.V), G = rows("dfinal_state", s.K, s.V);
    for (const auto& row : rows("beta", s.T, 1)) beta.push_back(row[0]);
    o = u_ = r_ = dv = zeros(s.T, s.V), dq = dk = dg = zeros(s.T, s.K), dbeta = zeros(s.T, 1);
  }
  /// e^{g_{from+1} + .. + g_to}
  double weight(size_t from, size_t to, size_t c) const {
    double sum = 0;
    for (size_t t = from + 1; t <= to; ++t) sum += g[t][c];
    return std::exp(sum);
  }
  double pair(const Rows& x, size_t i, size_t j) const {
    double sum = 0;
    for (size_t c = 0; c < K; ++c) sum += x[i][c] * k[j][c] * weight(j, i, c);
    return sum;
  }
  Rows inverse_of_tile(size_t first, size_t n) const {
    Rows N = zeros(static_cast<int64_t>(n), static_cast<int64_t>(n));
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j <= i; ++j) N[i][j] = i == j ? 1 : beta[first + i] * pair(k, first + i, first + j);
    return inverse(N);
  }
  /// Keys or queries by what they are read with: sum_c x_c e^.. S_cj, S as an operand.
  double read(const Rows& x, size_t start, size_t i, size_t j) const {
    double sum = 0;
    for (size_t c = 0; c < K; ++c) {
      const double w = std::exp(g[start][c]) * weight(start, i, c);
      sum += rounded(x[i][c] * w) * rounded(S[c][j]);
    }
    return sum;
  }

  void forward() {
    for (size_t start = 0; start < T; start += kChunk) {
      const size_t end = std::min(start + kChunk, T);
      for (size_t first = start; first < end; first += kTile) {
        const size_t n = std::min(kTile, end - first);
        const Rows X = inverse_of_tile(first, n);
        for (size_t j = 0; j < V; ++j) {
          std::vector<double> y;
          for (size_t i = first; i < first + n; ++i) {
            y.push_back(v[i][j] - read(k, start, i, j));
            for (size_t m = start; m < first; ++m) y.back() -= rounded(pair(k, i, m)) * u_[m][j];
          }
          for (size_t i = 0; i < n; ++i) {
            double sum = 0;
            for (size_t m = 0; m <= i; ++m) sum += rounded(X[i][m] * beta[first + m]) * rounded(y[m]);
            u_[first + i][j] = rounded(sum);
          }
        }
      }
      for (size_t i = start; i < end; ++i)
        for (size_t j = 0; j < V; ++j) {
          o[i][j] = read(q, start, i, j);
          for (size_t m = start; m <= i; ++m) o[i][j] += rounded(pair(q, i, m)) * u_[m][j];
          o[i][j] *= p.scale;
        }
      for (size_t c = 0; c < K; ++c)
        for (size_t j = 0; j < V; ++j) {
          S[c][j] *= std::exp(g[start][c]) * weight(start, end - 1, c);
          for (size_t m = start; m < end; ++m) S[c][j] += rounded(k[m][c] * weight(m, end - 1, c)) * u_[m][j];
        }
    }
  }
};

/// By substitution in doubles.
Rows substituted(const Rows& N) {
  Rows X = zeros(static_cast<int64_t>(N.size()), static_cast<int64_t>(N.size()));
  for (size_t j = 0; j < N.size(); ++j)
    for (size_t i = j; i < N.size(); ++i) {
      X[i][j] = i == j ? 1 : 0;
      for (size_t m = j; m < i; ++m) X[i][j] -= N[i][m] * X[m][j];
    }
  return X;
}
/// The same, every number rounded to bf16.
Rows substituted_coarsely(const Rows& N) {
  Rows X = zeros(static_cast<int64_t>(N.size()), static_cast<int64_t>(N.size()));
  for (size_t j = 0; j < N.size(); ++j)
    for (size_t i = j; i < N.size(); ++i) {
      X[i][j] = i == j ? 1 : 0;
      for (size_t m = j; m < i; ++m) X[i][j] = rounded(X[i][j] - rounded(rounded(N[i][m]) * X[m][j]));
    }
  return X;
}

Arithmetic declared() {
  Arithmetic a;
  a.chunk = kChunk, a.solve_tokens = kTile;
  a.removal = a.solved = a.readout = 2.01 * u, a.update = a.write = u;
  a.solve = a.boundary = 0x1p-40, a.decay_per_nat = 0x1p-40;
  return a;
}

enum class Kind { drawn, collinear, twice };

void draw(Kind kind, const char* decay, uint64_t seed, RandomProblem& p) {
  RandomShape shape;
  shape.T = 21, shape.K = 5, shape.V = 3, shape.cotangents = true, shape.dtype = Dtype::bf16;
  draw_problem_of(find_operator("kda"), decay, shape, seed, p);
  Tensor &k = p.at("k"), &beta = p.at("beta");
  for (int64_t i = 0; kind != Kind::drawn && i < k.size(); ++i)
    k.set(i, (i % 5 == 0 ? 0.875 : 0.25) + (i % 11 == 0 ? 0.01 : 0));
  for (int64_t i = 0; kind != Kind::drawn && i < beta.size(); ++i) beta.set(i, kind == Kind::twice ? 2 : 1);
}

struct Judged {
  int64_t outside = 0;
  double largest = 0;  ///< error over bound

  void judge(const ReferenceOutput& out, const Rows& got) {
    const size_t width = got[0].size();
    for (size_t i = 0; i < out.mid.size(); ++i) {
      const double error = std::fabs(got[i / width][i % width] - out.mid[i]) - out.rad[i];
      outside += !(error <= out.bound[i]);
      largest = std::fmax(largest, error / out.bound[i]);
    }
  }
};

Judged judged_forward(Kind kind, const char* decay, uint64_t seed, Rows (*inverse)(const Rows&)) {
  RandomProblem p;
  draw(kind, decay, seed, p);
  p.problem.arithmetic = declared();
  const ReferenceResult y = find_operator("kda").evaluate(p.problem);
  Chunked chunked(p, inverse);
  chunked.forward();
  Judged judged;
  judged.judge(y.outputs[0], chunked.o), judged.judge(y.outputs[1], chunked.S);
  return judged;
}

TEST(DeltaChunkBound, holds_for_a_chunked_evaluation_of_operands_in_bf16_and_is_not_vacuous) {
  for (const Kind kind : {Kind::drawn, Kind::collinear, Kind::twice}) {
    double largest = 0;
    for (const char* decay : {"none", "near-one", "logsigmoid", "strong", "reset", "extreme"})
      for (uint64_t seed = 1; seed <= 20; ++seed) {
        const Judged judged = judged_forward(kind, decay, seed, &substituted);
        EXPECT_EQ(judged.outside, 0) << decay << " seed " << seed << " error / bound " << judged.largest;
        largest = std::fmax(largest, judged.largest);
      }
    EXPECT_GT(largest, 0.05);
    std::printf("kind %d: largest error / bound %.4f\n", static_cast<int>(kind), largest);
  }
}

TEST(DeltaChunkBound, of_an_inverse_declared_precise_sees_one_that_is_not) {
  int64_t outside = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed)
    outside += judged_forward(Kind::twice, "none", seed, &substituted_coarsely).outside;
  EXPECT_GT(outside, 0);
}

}  // namespace
}  // namespace assay
