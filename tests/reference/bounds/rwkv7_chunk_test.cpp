// Bounds of rwkv7 in chunks against a chunked evaluation whose operands are rounded as it declares.
#include <gtest/gtest.h>

#include "tests/reference/bounds/chunked_run.h"

namespace assay {
namespace bounds_rwkv7_chunk_test {

using namespace chunked_run;

struct Chunked final : ChunkedRun {
  Rows r, w, k, v, a, b, d_o;
  Rows o, reads, pulls, dr, dw, dk, dv, da, db;

  explicit Chunked(const RandomProblem& drawn) : ChunkedRun(drawn) {
    r = rows_of(drawn, "r", T, K), w = rows_of(drawn, "w", T, K), k = rows_of(drawn, "k", T, K);
    a = rows_of(drawn, "a", T, K), b = rows_of(drawn, "b", T, K);
    v = rows_of(drawn, "v", T, V), d_o = rows_of(drawn, "do", T, V);
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
    for (size_t c = 0; c < K; ++c) sum += rounded(x[i][c] * weight(start, i + behind, c)) * rounded(S[c][j]);
    return sum;
  }
  double from_end(const Rows& x, size_t end, size_t i, size_t j) const {
    double sum = 0;
    for (size_t c = 0; c < K; ++c) sum += rounded(x[i][c] * weight(i + 1, end, c)) * rounded(G[c][j]);
    return sum;
  }

  void read_tile(size_t first, size_t n, size_t start) override {
    const Rows X = inverse_of_tile(first, n);
    for (size_t j = 0; j < V; ++j) {
      std::vector<double> y;
      for (size_t i = first; i < first + n; ++i) {
        y.push_back(from_start(a, start, i, j, false));
        for (size_t m = start; m < first; ++m) y.back() += rounded(pair(a, b, i, m, false)) * reads[m][j];
        for (size_t m = start; m < i; ++m) y.back() += rounded(pair(a, k, i, m, false)) * v[m][j];
      }
      for (size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (size_t m = 0; m <= i; ++m) sum += rounded(X[i][m]) * rounded(y[m]);
        reads[first + i][j] = rounded(sum);
      }
    }
  }
  void read_out(size_t start, size_t end) override {
    for (size_t i = start; i < end; ++i)
      for (size_t j = 0; j < V; ++j) {
        o[i][j] = from_start(r, start, i, j, true);
        for (size_t m = start; m <= i; ++m)
          o[i][j] +=
              rounded(pair(r, b, i, m, true)) * reads[m][j] + rounded(pair(r, k, i, m, true)) * v[m][j];
        o[i][j] *= p.scale;
      }
  }
  void carry(size_t start, size_t end) override {
    for (size_t c = 0; c < K; ++c)
      for (size_t j = 0; j < V; ++j) {
        S[c][j] *= weight(start, end, c);
        for (size_t m = start; m < end; ++m)
          S[c][j] += rounded(b[m][c] * weight(m + 1, end, c)) * reads[m][j] +
                     rounded(k[m][c] * weight(m + 1, end, c)) * v[m][j];
      }
  }

  void pull_tile(size_t first, size_t n, size_t end) override {
    const Rows X = inverse_of_tile(first, n);
    for (size_t j = 0; j < V; ++j) {
      std::vector<double> y;
      for (size_t i = first; i < first + n; ++i) {
        y.push_back(from_end(b, end, i, j));
        for (size_t m = i; m < end; ++m) y.back() += p.scale * rounded(pair(r, b, m, i, true)) * d_o[m][j];
        for (size_t m = first + n; m < end; ++m) y.back() += rounded(pair(a, b, m, i, false)) * pulls[m][j];
      }
      for (size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (size_t m = i; m < n; ++m) sum += rounded(X[m][i]) * rounded(y[m]);
        pulls[first + i][j] = rounded(sum);
      }
    }
  }
  void gradients(size_t start, size_t end) override {
    for (size_t i = start; i < end; ++i)
      for (size_t j = 0; j < V; ++j) {
        dv[i][j] = from_end(k, end, i, j);
        for (size_t m = i; m < end; ++m) dv[i][j] += p.scale * rounded(pair(r, k, m, i, true)) * d_o[m][j];
        for (size_t m = i + 1; m < end; ++m) dv[i][j] += rounded(pair(a, k, m, i, false)) * pulls[m][j];
      }
    gradients_of_states(start, end);
  }
  /// Token by token from the chunk's ends.
  void gradients_of_states(size_t start, size_t end) {
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
  void carry_back(size_t start, size_t end) override {
    for (size_t c = 0; c < K; ++c)
      for (size_t j = 0; j < V; ++j) {
        G[c][j] *= weight(start, end, c);
        for (size_t m = start; m < end; ++m)
          G[c][j] += p.scale * rounded(r[m][c] * weight(start, m + 1, c)) * d_o[m][j] +
                     rounded(a[m][c] * weight(start, m, c)) * pulls[m][j];
      }
  }
};

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
  judged.judge(find_operator("rwkv7").evaluate_adjoint(p.problem), {{"dr", &chunked.dr},
                                                                    {"dw", &chunked.dw},
                                                                    {"dk", &chunked.dk},
                                                                    {"dv", &chunked.dv},
                                                                    {"da", &chunked.da},
                                                                    {"db", &chunked.db},
                                                                    {"dinitial_state", &chunked.G}});
  return judged;
}

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
