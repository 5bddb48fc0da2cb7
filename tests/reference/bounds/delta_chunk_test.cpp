// Bounds of chunked delta rules against a chunked evaluation whose operands are rounded as it declares.
#include <gtest/gtest.h>

#include <random>

#include "tests/reference/bounds/chunked_run.h"

namespace assay {
namespace bounds_delta_chunk_test {

using namespace chunked_run;

/// Operands to the nearest; else updates, scores of earlier tiles or those of a tile's own matrix alone, all
/// the same way by nearly what is declared, or states, once for each chunk, as `ways` says.
enum class Rounded { operands, updates, scores, matrix, states };

/// sums: backward, dg as sums to the chunk's end; undeclared: the same, as if it were not.
enum Direction { forward, backward, sums, undeclared };

/// One head of kda.
struct Chunked final : ChunkedRun {
  Rows q, k, v, g, d_o;
  std::vector<double> beta;
  /// Makes an inverse of a unit lower triangle.
  Rows (*inverse)(const Rows&);
  Rounded what = Rounded::operands;
  std::vector<bool> ways;  ///< of Rounded::states: of each chunk, key and value channel, is it larger?
  bool gate_sums = false, turned = false;
  Rows o, u_, dq, dk, dv, dg, dbeta, terms;  ///< terms: of dg as a sum, without q dq

  Chunked(const RandomProblem& drawn, Rows (*inverse)(const Rows&)) : ChunkedRun(drawn), inverse(inverse) {
    q = rows_of(drawn, "q", T, K), k = rows_of(drawn, "k", T, K), v = rows_of(drawn, "v", T, V);
    g = rows_of(drawn, "g", T, K), d_o = rows_of(drawn, "do", T, V);
    for (const auto& row : rows_of(drawn, "beta", T, 1)) beta.push_back(row[0]);
    o = u_ = dv = zeros(T, V), dq = dk = dg = terms = zeros(T, K), dbeta = zeros(T, 1);
  }
  double by(Rounded which, double x) const {
    if (what == Rounded::operands) return rounded(x);
    return what == which ? x * (1 + 0.99 * u) : x;
  }
  double operand(double x) const { return by(Rounded::operands, x); }
  double of_update(double x) const { return by(Rounded::updates, x); }
  double score(double x) const { return by(Rounded::scores, x); }
  /// Of `turned` every other diagonal is less.
  double of_matrix(size_t diagonal) const {
    if (what != Rounded::matrix) return 1;
    return 1 + (turned && diagonal % 2 ? -0.99 : 0.99) * u;
  }
  double of_state(const Rows& state, size_t start, size_t c, size_t j) const {
    if (what != Rounded::states) return operand(state[c][j]);
    const bool larger = ways.empty() || ways[(start / chunk * K + c) * V + j];
    return state[c][j] * (1 + (larger ? 0.99 : -0.99) * u);
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
    Rows N = zeros(n, n);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j <= i; ++j)
        N[i][j] = i == j ? 1 : of_matrix(i + j) * beta[first + i] * pair(k, first + i, first + j);
    return inverse(N);
  }
  /// Keys or queries by what they are read with: sum_c x_c e^.. S_cj, S as an operand.
  double read_of(const Rows& state, const Rows& x, size_t start, size_t i, size_t j) const {
    double sum = 0;
    for (size_t c = 0; c < K; ++c) {
      const double w = std::exp(g[start][c]) * weight(start, i, c);
      sum += operand(x[i][c] * w) * of_state(state, start, c, j);
    }
    return sum;
  }
  double read(const Rows& x, size_t start, size_t i, size_t j) const { return read_of(S, x, start, i, j); }

  void read_tile(size_t first, size_t n, size_t start) override {
    const Rows X = inverse_of_tile(first, n);
    for (size_t j = 0; j < V; ++j) {
      std::vector<double> y;
      for (size_t i = first; i < first + n; ++i) {
        y.push_back(v[i][j] - read(k, start, i, j));
        for (size_t m = start; m < first; ++m) y.back() -= score(pair(k, i, m)) * u_[m][j];
      }
      for (size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (size_t m = 0; m <= i; ++m) sum += operand(X[i][m] * beta[first + m]) * operand(y[m]);
        u_[first + i][j] = of_update(sum);
      }
    }
  }
  void read_out(size_t start, size_t end) override {
    for (size_t i = start; i < end; ++i)
      for (size_t j = 0; j < V; ++j) {
        o[i][j] = read(q, start, i, j);
        for (size_t m = start; m <= i; ++m) o[i][j] += score(pair(q, i, m)) * u_[m][j];
        o[i][j] *= p.scale;
      }
  }
  void carry(size_t start, size_t end) override {
    for (size_t c = 0; c < K; ++c)
      for (size_t j = 0; j < V; ++j) {
        S[c][j] *= std::exp(g[start][c]) * weight(start, end - 1, c);
        for (size_t m = start; m < end; ++m) S[c][j] += operand(k[m][c] * weight(m, end - 1, c)) * u_[m][j];
      }
  }

  // Backward. dr is dv here.

  /// k_i^T G_i without what the tokens from `taken` on have taken.
  double pulled(size_t i, size_t end, size_t taken, size_t j) const {
    double sum = 0;
    for (size_t c = 0; c < K; ++c)
      sum += operand(k[i][c] * weight(i, end - 1, c)) * of_state(G, end - 1, c, j);
    for (size_t m = i; m < end; ++m) sum += p.scale * score(pair(q, m, i)) * d_o[m][j];
    for (size_t m = taken; m < end; ++m) sum -= score(pair(k, m, i)) * dv[m][j];
    return sum;
  }
  void pull_tile(size_t first, size_t n, size_t end) override {
    const Rows X = inverse_of_tile(first, n);
    for (size_t j = 0; j < V; ++j) {
      std::vector<double> y;
      for (size_t i = first; i < first + n; ++i) y.push_back(pulled(i, end, first + n, j));
      for (size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (size_t m = i; m < n; ++m) sum += operand(X[m][i] * beta[first + i]) * operand(y[m]);
        dv[first + i][j] = of_update(sum);
      }
    }
  }
  void gradients_of(size_t i, size_t start, size_t end) {
    const Rows& S0 = starts[start / chunk];
    for (size_t c = 0; c < K; ++c) {
      dq[i][c] = dk[i][c] = dg[i][c] = 0;
      for (size_t j = 0; j < V; ++j) {
        double before = std::exp(g[start][c]) * weight(start, i, c) * S0[c][j];
        for (size_t m = start; m < i; ++m) before += k[m][c] * weight(m, i, c) * u_[m][j];
        double behind = weight(i, end - 1, c) * G[c][j];
        for (size_t m = i; m < end; ++m) behind += p.scale * q[m][c] * weight(i, m, c) * d_o[m][j];
        for (size_t m = i + 1; m < end; ++m) behind -= k[m][c] * weight(i, m, c) * dv[m][j];
        dq[i][c] += p.scale * operand(before + k[i][c] * u_[i][j]) * d_o[i][j];
        dk[i][c] += behind * u_[i][j] - before * dv[i][j];
        terms[i][c] -= k[i][c] * (behind * u_[i][j] + before * dv[i][j]);
        dg[i][c] += before * (behind - k[i][c] * dv[i][j]);
      }
    }
    for (size_t j = 0; j < V; ++j) {
      double r = v[i][j] - read_of(S0, k, start, i, j);
      for (size_t m = start; m < i; ++m) r -= score(pair(k, i, m)) * u_[m][j];
      dbeta[i][0] += pulled(i, end, i + 1, j) * r;
    }
  }
  /// dg once more, as the sum to the chunk's end and of the states there.
  void sum_gates(size_t start, size_t end) {
    const Rows& S_end = end == T ? S : starts[end / chunk];
    for (size_t c = 0; c < K; ++c) {
      double sum = 0;
      for (size_t j = 0; j < V; ++j) sum += operand(S_end[c][j]) * operand(G[c][j]);
      for (size_t i = end; i-- > start;) dg[i][c] = sum += q[i][c] * dq[i][c] + terms[i][c];
    }
  }
  void gradients(size_t start, size_t end) override {
    for (size_t i = start; i < end; ++i) gradients_of(i, start, end);
    if (gate_sums) sum_gates(start, end);
  }

  Judged judged_by(Direction direction, const ReferenceResult& expected) {
    ChunkedRun::forward();
    if (direction != assay::bounds_delta_chunk_test::forward) ChunkedRun::backward();
    Judged judged;
    judged.judge(expected, {{"o", &o},
                            {"final_state", &S},
                            {"dq", &dq},
                            {"dk", &dk},
                            {"dv", &dv},
                            {"dg", &dg},
                            {"dbeta", &dbeta},
                            {"dinitial_state", &G}});
    return judged;
  }
  void carry_back(size_t start, size_t end) override {
    for (size_t c = 0; c < K; ++c)
      for (size_t j = 0; j < V; ++j) {
        G[c][j] *= std::exp(g[start][c]) * weight(start, end - 1, c);
        for (size_t m = start; m < end; ++m) {
          const double w = std::exp(g[start][c]) * weight(start, m, c);
          G[c][j] += p.scale * operand(q[m][c] * w) * d_o[m][j] - operand(k[m][c] * w) * dv[m][j];
        }
      }
  }
};

ReferenceResult expected(Direction direction, const Problem& p) {
  const Operator& kda = find_operator("kda");
  return direction == forward ? kda.evaluate(p) : kda.evaluate_adjoint(p);
}

/// By substitution in doubles.
Rows substituted(const Rows& N) {
  Rows X = zeros(N.size(), N.size());
  for (size_t j = 0; j < N.size(); ++j)
    for (size_t i = j; i < N.size(); ++i) {
      X[i][j] = i == j ? 1 : 0;
      for (size_t m = j; m < i; ++m) X[i][j] -= N[i][m] * X[m][j];
    }
  return X;
}
/// A series cut short: 1 - L + L^2.
Rows cut_short(const Rows& N) {
  const size_t n = N.size();
  Rows X = zeros(n, n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j <= i; ++j) {
      X[i][j] = i == j ? 1 : -N[i][j];
      for (size_t m = j + 1; m < i; ++m) X[i][j] += N[i][m] * N[m][j];
    }
  return X;
}

/// Scores by themselves.
Arithmetic apart(double of_pairs) {
  Arithmetic a = declared();
  a.pairs = of_pairs, a.pair_sums = 0x1p-40;
  return a;
}

/// Where updates alone are rounded, or scores.
Arithmetic of_updates() {
  Arithmetic a = declared();
  a.removal = a.solved = a.readout = a.write = 0x1p-40;
  return a;
}

Arithmetic of_scores() {
  Arithmetic a = of_updates();
  a.update = 0x1p-40, a.readout = a.pairs = u, a.pair_sums = 0x1p-40;
  return a;
}

/// Where the matrices of tiles alone are.
Arithmetic of_matrix(double solve, double scores) {
  Arithmetic a = of_updates();
  a.update = 0x1p-40, a.solve = solve, a.scores = scores;
  return a;
}

/// Where states alone are rounded.
Arithmetic of_states(double held) {
  Arithmetic a = of_updates();
  a.update = 0x1p-40, a.removal = a.readout = u + 0x1p-38, a.held = held;
  a.pairs = a.pair_sums = 0x1p-40, a.chunk = 64, a.solve_tokens = 16;
  return a;
}

/// narrow: one key channel, values at one token of each tile, and what they write soon replaced; ramp: of one
/// key, values and cotangents by which all updates are as large, and all off the same way.
enum class Kind { drawn, collinear, twice, narrow, ramp };

void draw(Kind kind, const char* decay, uint64_t seed, RandomProblem& p, int64_t tokens = 21) {
  RandomShape shape;
  shape.T = tokens, shape.K = kind == Kind::narrow || kind == Kind::ramp ? 1 : 5, shape.V = 3,
  shape.cotangents = true, shape.dtype = Dtype::bf16;
  draw_problem_of(find_operator("kda"), decay, shape, seed, p);
  Tensor &k = p.at("k"), &beta = p.at("beta");
  for (int64_t i = 0; (kind == Kind::collinear || kind == Kind::twice) && i < k.size(); ++i)
    k.set(i, (i % 5 == 0 ? 0.875 : 0.25) + (i % 11 == 0 ? 0.01 : 0));
  for (int64_t i = 0; kind != Kind::drawn && i < beta.size(); ++i)
    beta.set(i, kind == Kind::twice ? 2 : kind == Kind::narrow ? 0.75 : 1);
  Tensor& v = p.at("v");
  for (int64_t i = 0; kind == Kind::narrow && i < v.size(); ++i)
    if (i / 3 % 4 != 0) v.set(i, 0);
  if (kind != Kind::ramp) return;
  for (const char* name : {"initial_state", "dfinal_state", "do"})
    for (int64_t i = 0; i < p.at(name).size(); ++i) p.at(name).set(i, name[1] == 'o' ? 1 : 0);
  for (int64_t t = 0; t < shape.T; ++t) {
    k.set(t, 1), beta.set(t, 1), p.at("q").set(t, 1);
    for (int64_t j = 0; j < 3; ++j) v.set(3 * t + j, static_cast<double>(t + 1));
  }
}

Judged judged_run(Direction direction, Kind kind, const char* decay, uint64_t seed,
                  Rows (*inverse)(const Rows&), const Arithmetic& arithmetic = declared(),
                  Rounded what = Rounded::operands, bool turned = false) {
  RandomProblem p;
  draw(kind, decay, seed, p);
  p.problem.arithmetic = arithmetic;
  AdjointArithmetic& d = p.problem.adjoint;
  if (kind == Kind::ramp) p.problem.arithmetic = of_updates();
  d.state = d.adjoint = p.problem.arithmetic;
  d.value_readout = d.gate_readout = 0x1p-40, d.inner = kind == Kind::ramp ? 0x1p-40 : 2.01 * u;
  if (direction == sums) d.gate_sums = kind == Kind::ramp ? 0x1p-40 : 2.01 * u;
  Chunked chunked(p, inverse);
  chunked.gate_sums = direction == sums || direction == undeclared;
  chunked.what = kind == Kind::ramp ? Rounded::updates : what, chunked.turned = turned;
  return chunked.judged_by(direction, expected(direction, p.problem));
}

TEST(DeltaChunkBound, holds_for_a_chunked_evaluation_of_operands_in_bf16_and_is_not_vacuous) {
  for (const Direction direction : {forward, backward, sums})
    for (const Kind kind : {Kind::drawn, Kind::collinear, Kind::twice, Kind::narrow, Kind::ramp}) {
      double largest = 0;
      for (const char* decay : kDecays)
        for (uint64_t seed = 1; seed <= 12; ++seed) {
          const Judged judged = judged_run(direction, kind, decay, seed, &substituted);
          EXPECT_EQ(judged.outside, 0) << decay << " seed " << seed << " error / bound " << judged.largest;
          largest = std::fmax(largest, judged.largest);
        }
      EXPECT_GT(largest, 0.05);
    }
}

TEST(DeltaChunkBound, of_scores_declared_apart_holds_and_is_less) {
  const auto of_state = [](const Arithmetic& a) {
    RandomProblem p;
    draw(Kind::drawn, "none", 1, p);
    p.problem.arithmetic = a;
    double sum = 0;
    for (const double bound : find_operator("kda").evaluate(p.problem).outputs[1].bound) sum += bound;
    return sum;
  };
  EXPECT_LT(of_state(apart(1.01 * u)), 0.9 * of_state(declared()));
  for (const Direction direction : {forward, backward})
    for (const Kind kind : {Kind::drawn, Kind::collinear, Kind::twice, Kind::narrow})
      for (const char* decay : kDecays)
        for (uint64_t seed = 1; seed <= 12; ++seed) {
          const Judged judged = judged_run(direction, kind, decay, seed, &substituted, apart(1.01 * u));
          EXPECT_EQ(judged.outside, 0) << decay << " seed " << seed << " error / bound " << judged.largest;
        }
}

TEST(DeltaChunkBound, of_scores_alone_sees_what_each_loses) {
  for (const Direction direction : {forward, backward}) {
    double largest = 0;
    for (const Kind kind : {Kind::drawn, Kind::collinear, Kind::twice})
      for (const char* decay : kDecays)
        for (uint64_t seed = 1; seed <= 12; ++seed) {
          const Judged judged =
              judged_run(direction, kind, decay, seed, &substituted, of_scores(), Rounded::scores);
          EXPECT_EQ(judged.outside, 0) << decay << " seed " << seed << " error / bound " << judged.largest;
          largest = std::fmax(largest, judged.largest);
        }
    EXPECT_GT(largest, 0.2);
  }
}

TEST(DeltaChunkBound, of_a_tiles_matrix_alone_sees_what_each_of_its_scores_loses) {
  for (const Direction direction : {forward, backward}) {
    double largest = 0;
    for (const Kind kind : {Kind::drawn, Kind::collinear, Kind::twice, Kind::narrow})
      for (const char* decay : kDecays)
        for (uint64_t seed = 1; seed <= 12; ++seed) {
          const Judged judged = judged_run(direction, kind, decay, seed, &substituted, of_matrix(0x1p-40, u),
                                           Rounded::matrix, seed % 2 == 0);
          EXPECT_EQ(judged.outside, 0) << decay << " seed " << seed << " error / bound " << judged.largest;
          largest = std::fmax(largest, judged.largest);
        }
    EXPECT_GT(largest, 0.2);
  }
}

/// Of keys that are alike updates are less than what they cancel from.
TEST(DeltaChunkBound, of_a_matrix_declared_apart_from_its_inverse_is_less) {
  const auto of_state = [](const Arithmetic& a) {
    RandomProblem p;
    draw(Kind::twice, "near-one", 1, p, 64);
    p.problem.arithmetic = a, p.problem.arithmetic.chunk = 64, p.problem.arithmetic.solve_tokens = 16;
    double sum = 0;
    for (const double bound : find_operator("kda").evaluate(p.problem).outputs[1].bound) sum += bound;
    return sum;
  };
  EXPECT_LT(of_state(of_matrix(0x1p-40, u)), 0.5 * of_state(of_matrix(u, 0)));
}

struct Climbed {
  int64_t outside = 0;
  double largest = 0;
};
/// Turns the rounding of one element of one chunk's state after the other, keeping what makes the largest
/// error larger.
Climbed climbed(Direction direction, Kind kind, uint64_t seed, int64_t tokens, int tries) {
  RandomProblem p;
  draw(kind, "none", seed, p, tokens);
  p.problem.arithmetic = of_states(u);
  AdjointArithmetic& d = p.problem.adjoint;
  d.state = d.adjoint = p.problem.arithmetic, d.inner = 1.01 * u;
  d.value_readout = d.gate_readout = 0x1p-40;
  const ReferenceResult y = expected(direction, p.problem);
  const auto places = static_cast<size_t>((tokens + 63) / 64 * p.problem.sizes.K * p.problem.sizes.V);
  std::mt19937_64 random(seed);
  std::vector<bool> ways(places);
  for (size_t i = 0; i < places; ++i) ways[i] = random() % 2;
  Climbed best;
  for (int i = 0; i < tries; ++i) {
    Chunked chunked(p, &substituted);
    const size_t turned = random() % places;
    chunked.chunk = 64, chunked.tile = 16;
    chunked.what = Rounded::states, chunked.ways = ways, chunked.ways[turned] = !ways[turned];
    const Judged judged = chunked.judged_by(direction, y);
    best.outside += judged.outside;
    if (judged.largest >= best.largest) ways = chunked.ways, best.largest = judged.largest;
  }
  return best;
}

TEST(DeltaChunkBound, of_states_read_as_one_operand_holds_whatever_way_they_are_rounded) {
  for (const Direction direction : {forward, backward}) {
    double largest = 0;
    for (const Kind kind : {Kind::drawn, Kind::collinear, Kind::twice})
      for (uint64_t seed = 1; seed <= 2; ++seed) {
        const Climbed best = climbed(direction, kind, seed, 150, 40);
        EXPECT_EQ(best.outside, 0) << "seed " << seed << " error / bound " << best.largest;
        largest = std::fmax(largest, best.largest);
      }
    EXPECT_GT(largest, 0.2);
  }
}

TEST(DeltaChunkBound, of_states_read_as_one_operand_is_less) {
  const auto of_state = [](double held) {
    RandomProblem p;
    draw(Kind::drawn, "none", 1, p, 400);
    p.problem.arithmetic = of_states(held);
    double sum = 0;
    for (const double bound : find_operator("kda").evaluate(p.problem).outputs[1].bound) sum += bound;
    return sum;
  };
  EXPECT_LT(of_state(u), 0.8 * of_state(0));
}

/// The largest of the final state, rates up to 2 and unit keys in all directions, without decay.
double bound_of_state(int64_t tokens) {
  RandomProblem p;
  RandomShape shape;
  shape.T = tokens, shape.K = 5, shape.V = 3, shape.dtype = Dtype::bf16;
  draw_problem_of(find_operator("kda"), "none", shape, 1, p);
  p.problem.arithmetic = declared();
  double largest = 0;
  for (const double bound : find_operator("kda").evaluate(p.problem).outputs[1].bound)
    largest = std::fmax(largest, bound);
  return largest;
}

TEST(DeltaChunkBound, of_unit_keys_without_decay_grows_no_faster_than_their_number) {
  EXPECT_LT(bound_of_state(8192), 8 * bound_of_state(1024));
}

TEST(DeltaChunkBound, of_gates_made_as_a_recurrence_sees_that_they_are_sums) {
  int64_t outside = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed)
    outside += judged_run(undeclared, Kind::drawn, "extreme", seed, &substituted).outside;
  EXPECT_GT(outside, 0);
}

TEST(DeltaChunkBound, of_an_inverse_declared_precise_sees_a_series_that_is_cut_short) {
  for (const Direction direction : {forward, backward}) {
    int64_t outside = 0;
    for (uint64_t seed = 1; seed <= 5; ++seed)
      outside += judged_run(direction, Kind::twice, "none", seed, &cut_short).outside;
    EXPECT_GT(outside, 0) << direction;
  }
}

}  // namespace bounds_delta_chunk_test
}  // namespace assay
