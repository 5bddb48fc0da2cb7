// Bounds of rwkv7 in chunks against a chunked evaluation whose operands are rounded as it declares.
#include <gtest/gtest.h>

#include <map>

#include "tests/reference/random_problem.h"

namespace assay {
namespace bounds_rwkv7_chunk_test {

using Rows = std::vector<std::vector<double>>;
Rows zeros(size_t rows, size_t columns) {
  return Rows(rows, std::vector<double>(columns, 0));
}

constexpr double u = 0x1p-8;  ///< bf16's
constexpr size_t kChunk = 8, kTile = 4;

double operand(double x) {
  return decode(Dtype::bf16, encode(Dtype::bf16, x));
}

/// One head in chunks of tiles. What tensor cores take is rounded to bf16, all else are doubles.
struct Chunked {
  const Problem& p;
  Rows r, w, k, v, a, b, d_o, S, G;
  size_t T, K, V;
  Rows o, reads, pulls, dr, dw, dk, dv, da, db;
  std::vector<Rows> starts;  ///< S at the start of each chunk

  explicit Chunked(const RandomProblem& drawn) : p(drawn.problem) {
    const Sizes& s = p.sizes;
    T = static_cast<size_t>(s.T), K = static_cast<size_t>(s.K), V = static_cast<size_t>(s.V);
    const auto rows = [&](const char* name, size_t n, size_t width) {
      Rows y = zeros(n, width);
      for (size_t i = 0; i < n * width; ++i)
        y[i / width][i % width] = drawn.inputs.at(name).value(static_cast<int64_t>(i));
      return y;
    };
    r = rows("r", T, K), w = rows("w", T, K), k = rows("k", T, K), a = rows("a", T, K), b = rows("b", T, K);
    v = rows("v", T, V), d_o = rows("do", T, V);
    S = rows("initial_state", K, V), G = rows("dfinal_state", K, V);
    o = reads = pulls = dv = zeros(T, V), dr = dw = dk = da = db = zeros(T, K);
  }
  /// e^{w_from + .. + w_(to - 1)}
  double weight(size_t from, size_t to, size_t c) const {
    double sum = 0;
    for (size_t t = from; t < to; ++t) sum += w[t][c];
    return std::exp(sum);
  }
  /// Of a later token that sees the state before its own decay, or behind it.
  double pair(const Rows& x, const Rows& y, size_t i, size_t j, bool behind) const {
    double sum = 0;
    for (size_t c = 0; c < K; ++c) sum += x[i][c] * y[j][c] * weight(j + 1, i + behind, c);
    return sum;
  }
  Rows inverse_of_tile(size_t first, size_t n) const {
    Rows X = zeros(n, n);
    for (size_t j = 0; j < n; ++j)
      for (size_t i = j; i < n; ++i) {
        X[i][j] = i == j ? 1 : 0;
        for (size_t m = j; m < i; ++m) X[i][j] += pair(a, b, first + i, first + m, false) * X[m][j];
      }
    return X;
  }
  double from_start(const Rows& x, size_t start, size_t i, size_t j, bool behind) const {
    double sum = 0;
    for (size_t c = 0; c < K; ++c) sum += operand(x[i][c] * weight(start, i + behind, c)) * operand(S[c][j]);
    return sum;
  }
  double from_end(const Rows& x, size_t end, size_t i, size_t j) const {
    double sum = 0;
    for (size_t c = 0; c < K; ++c) sum += operand(x[i][c] * weight(i + 1, end, c)) * operand(G[c][j]);
    return sum;
  }

  void read_tile(size_t start, size_t first, size_t n) {
    const Rows X = inverse_of_tile(first, n);
    for (size_t j = 0; j < V; ++j) {
      std::vector<double> y;
      for (size_t i = first; i < first + n; ++i) {
        y.push_back(from_start(a, start, i, j, false));
        for (size_t m = start; m < first; ++m) y.back() += operand(pair(a, b, i, m, false)) * reads[m][j];
        for (size_t m = start; m < i; ++m) y.back() += operand(pair(a, k, i, m, false)) * v[m][j];
      }
      for (size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (size_t m = 0; m <= i; ++m) sum += operand(X[i][m]) * operand(y[m]);
        reads[first + i][j] = operand(sum);
      }
    }
  }
  void forward() {
    for (size_t start = 0; start < T; start += kChunk) {
      const size_t end = std::min(start + kChunk, T);
      starts.push_back(S);
      for (size_t first = start; first < end; first += kTile)
        read_tile(start, first, std::min(kTile, end - first));
      for (size_t i = start; i < end; ++i)
        for (size_t j = 0; j < V; ++j) {
          o[i][j] = from_start(r, start, i, j, true);
          for (size_t m = start; m <= i; ++m)
            o[i][j] +=
                operand(pair(r, b, i, m, true)) * reads[m][j] + operand(pair(r, k, i, m, true)) * v[m][j];
          o[i][j] *= p.scale;
        }
      for (size_t c = 0; c < K; ++c)
        for (size_t j = 0; j < V; ++j) {
          S[c][j] *= weight(start, end, c);
          for (size_t m = start; m < end; ++m)
            S[c][j] += operand(b[m][c] * weight(m + 1, end, c)) * reads[m][j] +
                       operand(k[m][c] * weight(m + 1, end, c)) * v[m][j];
        }
    }
  }

  // Backward; G: of the chunk's last token, behind it.
  void pull_tile(size_t first, size_t n, size_t end) {
    const Rows X = inverse_of_tile(first, n);
    for (size_t j = 0; j < V; ++j) {
      std::vector<double> y;
      for (size_t i = first; i < first + n; ++i) {
        y.push_back(from_end(b, end, i, j));
        for (size_t m = i; m < end; ++m) y.back() += p.scale * operand(pair(r, b, m, i, true)) * d_o[m][j];
        for (size_t m = first + n; m < end; ++m) y.back() += operand(pair(a, b, m, i, false)) * pulls[m][j];
      }
      for (size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (size_t m = i; m < n; ++m) sum += operand(X[m][i]) * operand(y[m]);
        pulls[first + i][j] = operand(sum);
      }
    }
  }
  /// Token by token from the chunk's ends.
  void gradients(size_t start, size_t end) {
    std::vector<Rows> before = {starts[start / kChunk]};
    for (size_t i = start; i < end; ++i) {
      Rows x = before.back();
      for (size_t c = 0; c < K; ++c)
        for (size_t j = 0; j < V; ++j)
          x[c][j] = std::exp(w[i][c]) * x[c][j] + b[i][c] * reads[i][j] + k[i][c] * v[i][j];
      before.push_back(x);
    }
    Rows g = G;
    for (size_t i = end; i-- > start;)
      for (size_t c = 0; c < K; ++c)
        for (size_t j = 0; j < V; ++j) {
          const double old = before[i - start][c][j], now = before[i - start + 1][c][j];
          g[c][j] += p.scale * r[i][c] * d_o[i][j];
          dr[i][c] += p.scale * now * d_o[i][j], dk[i][c] += g[c][j] * v[i][j];
          da[i][c] += old * pulls[i][j], db[i][c] += g[c][j] * reads[i][j];
          dw[i][c] += std::exp(w[i][c]) * old * g[c][j];
          g[c][j] = std::exp(w[i][c]) * g[c][j] + a[i][c] * pulls[i][j];
        }
  }
  void backward() {
    for (size_t start = (T - 1) / kChunk * kChunk;; start -= kChunk) {
      const size_t end = std::min(start + kChunk, T);
      for (size_t first = start + (end - 1 - start) / kTile * kTile;; first -= kTile) {
        pull_tile(first, std::min(kTile, end - first), end);
        if (first == start) break;
      }
      for (size_t i = start; i < end; ++i)
        for (size_t j = 0; j < V; ++j) {
          dv[i][j] = from_end(k, end, i, j);
          for (size_t m = i; m < end; ++m) dv[i][j] += p.scale * operand(pair(r, k, m, i, true)) * d_o[m][j];
          for (size_t m = i + 1; m < end; ++m) dv[i][j] += operand(pair(a, k, m, i, false)) * pulls[m][j];
        }
      gradients(start, end);
      for (size_t c = 0; c < K; ++c)
        for (size_t j = 0; j < V; ++j) {
          G[c][j] *= weight(start, end, c);
          for (size_t m = start; m < end; ++m)
            G[c][j] += p.scale * operand(r[m][c] * weight(start, m + 1, c)) * d_o[m][j] +
                       operand(a[m][c] * weight(start, m, c)) * pulls[m][j];
        }
      if (start == 0) break;
    }
  }
};

Arithmetic declared() {
  Arithmetic a;
  a.chunk = kChunk, a.solve_tokens = kTile;
  a.removal = a.solved = a.readout = 2.01 * u, a.update = a.write = u;
  a.solve = a.boundary = 0x1p-40, a.decay_per_nat = 0x1p-40;
  a.underflow = 0x1p-133;  // bf16's smallest subnormal number
  return a;
}

/// collinear: one normalised key, and what is removed is all of what it reads; apart: a and b that do not
/// oppose each other.
enum class Kind { drawn, collinear, apart };

void draw(Kind kind, const char* decay, uint64_t seed, RandomProblem& p) {
  RandomShape shape;
  shape.T = 21, shape.K = 5, shape.V = 3, shape.cotangents = true, shape.dtype = Dtype::bf16;
  draw_problem_of(find_operator("rwkv7"), decay, shape, seed, p);
  Tensor &a = p.at("a"), &b = p.at("b");
  for (int64_t i = 0; kind == Kind::collinear && i < a.size(); ++i)
    a.set(i, i % 5 == 0 ? 0.875 : 0.25), b.set(i, -a.value(i));
  for (int64_t i = 0; kind == Kind::apart && i < a.size(); ++i) b.set(i, a.value((i + 1) % a.size()) / 2);
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

Judged judged_run(bool backward, Kind kind, const char* decay, uint64_t seed) {
  RandomProblem p;
  draw(kind, decay, seed, p);
  p.problem.arithmetic = declared();
  AdjointArithmetic& d = p.problem.adjoint;
  d.state = d.adjoint = p.problem.arithmetic;
  d.state.readout = d.adjoint.readout = d.gate_readout = d.inner = 0x1p-40, d.value_readout = 2.01 * u;
  Chunked chunked(p);
  chunked.forward();
  Judged judged;
  if (!backward) {
    const ReferenceResult y = find_operator("rwkv7").evaluate(p.problem);
    judged.judge(y.outputs[0], chunked.o), judged.judge(y.outputs[1], chunked.S);
    return judged;
  }
  chunked.backward();
  const std::map<std::string, const Rows*> got = {
      {"dr", &chunked.dr}, {"dw", &chunked.dw}, {"dk", &chunked.dk},           {"dv", &chunked.dv},
      {"da", &chunked.da}, {"db", &chunked.db}, {"dinitial_state", &chunked.G}};
  for (const ReferenceOutput& out : find_operator("rwkv7").evaluate_adjoint(p.problem).outputs)
    judged.judge(out, *got.at(out.name));
  return judged;
}

const char* const kDecays[] = {"none", "near-one", "logsigmoid", "strong", "reset", "extreme"};

TEST(Rwkv7ChunkBound, holds_for_a_chunked_evaluation_of_operands_in_bf16_and_is_not_vacuous) {
  for (const bool backward : {false, true})
    for (const Kind kind : {Kind::drawn, Kind::collinear, Kind::apart}) {
      double largest = 0;
      for (const char* decay : kDecays)
        for (uint64_t seed = 1; seed <= 12; ++seed) {
          const Judged judged = judged_run(backward, kind, decay, seed);
          EXPECT_EQ(judged.outside, 0) << decay << " seed " << seed << " error / bound " << judged.largest;
          largest = std::fmax(largest, judged.largest);
        }
      EXPECT_GT(largest, 0.05) << backward;
    }
}

}  // namespace bounds_rwkv7_chunk_test
}  // namespace assay
