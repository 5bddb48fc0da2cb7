#include "src/verification/diagnosis/meanings/rule_run.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "src/verification/diagnosis/meanings/general_run.h"
#include "src/verification/diagnosis/meanings/rule_slices.h"

namespace assay {
namespace {

using namespace rule_slices;

/// One sequence and value head; rows are tokens.
struct RuleSlice {
  Rows q, k, e, v, d_o, S0, dS;
  std::vector<double> beta;
  double scale;
  int64_t T, K, V;
};

RuleSlice slice_of(const FailingRun& run, int64_t first, int64_t length, int64_t sequence, int64_t head) {
  const Reader in(run, first, length, sequence, head);
  RuleSlice s;
  s.scale = run.problem.scale, s.T = length, s.K = run.problem.sizes.K, s.V = run.problem.sizes.V;
  s.q = in.tokens("q"), s.k = in.tokens("k"), s.v = in.tokens("v");
  s.d_o = run.inputs().count("do") ? in.tokens("do") : zeros(length, s.V);
  s.S0 = in.state("initial_state"), s.dS = in.state("dfinal_state");
  for (const auto& row : in.tokens("beta", 1)) s.beta.push_back(row[0]);
  for (const auto& g : in.tokens("g")) {
    std::vector<double>& e = s.e.emplace_back();
    for (int64_t c = 0; c < s.K; ++c) e.push_back(std::exp(g[g.size() == 1 ? 0 : static_cast<size_t>(c)]));
  }
  return s;
}

/// A tile: its matrix, and the states that its tokens find, with the updates of the tile's own and without.
struct Tile {
  int64_t first, n;
  RuleSquare X{0};
  Rows u;
  std::vector<Rows> found, entered;
};

class RuleRun {
 public:
  RuleRun(const RuleSlice& s, const RuleChange& change) : s_(s), change_(change) {}

  void forward(bool changed, bool keep) {
    Rows S = s_.S0;
    for (int64_t first = 0; first < s_.T; first += change_.tile) {
      Tile tile = tile_at(first, changed);
      solve(tile, S, changed);
      for (int64_t i = 0; i < tile.n; ++i) {
        const auto t = static_cast<size_t>(first + i);
        decay(S, s_.e[t]);
        if (keep) tile.found.push_back(S);
        add(S, s_.k[t], tile.u[static_cast<size_t>(i)], 1);
        o.push_back(read(s_.q[t], S));
        for (double& x : o.back()) x *= s_.scale;
        const bool last = i + 1 == tile.n;
        if (last && changed && change_.last_update_lost) add(S, s_.k[t], tile.u[static_cast<size_t>(i)], -1);
      }
      if (keep) tiles_.push_back(std::move(tile));
    }
    final_state = S;
  }
  void backward(bool changed) {
    dq = dk = zeros(s_.T, s_.K), dg = dq, dv = zeros(s_.T, s_.V), dbeta = zeros(s_.T, 1);
    Rows G = s_.dS;
    for (size_t n = tiles_.size(); n-- > 0;) take(tiles_[n], tile_at(tiles_[n].first, changed).X, changed, G);
    dS0 = G;
  }

  Rows o, final_state, dq, dk, dv, dg, dbeta, dS0;

 private:
  Tile tile_at(int64_t first, bool changed) const {
    Tile tile{first, std::min(change_.tile, s_.T - first), RuleSquare(0), {}, {}, {}};
    RuleSquare N(tile.n);
    std::vector<double> own;
    for (int64_t j = 0; j < tile.n; ++j) {
      const std::vector<double>& kj = s_.k[static_cast<size_t>(first + j)];
      own.push_back(rate(first + j, changed) * dot(kj, kj));
      const bool earlier = changed && change_.pairs == PairDecay::with_earlier;
      std::vector<double> w =
          earlier ? s_.e[static_cast<size_t>(first + j)] : std::vector<double>(kj.size(), 1);
      for (int64_t i = j + 1; i < tile.n; ++i) {
        const auto t = static_cast<size_t>(first + i);
        const std::vector<double> before = w;
        for (size_t c = 0; c < w.size(); ++c) w[c] *= s_.e[t][c];
        const bool lacks = changed && (change_.pairs == PairDecay::without_own || change_.read_before_decay);
        for (size_t c = 0; c < w.size(); ++c) N(i, j) += s_.k[t][c] * kj[c] * (lacks ? before : w)[c];
        N(i, j) *= rate(first + i, changed);
      }
    }
    tile.X = changed && change_.inverse ? change_.inverse(N, own) : inverse_of_one_plus(N);
    return tile;
  }
  double rate(int64_t t, bool changed) const {
    const double beta = s_.beta[static_cast<size_t>(t)];
    return changed && change_.taken ? change_.taken(beta) : beta;
  }
  void solve(Tile& tile, const Rows& S, bool changed) const {
    Rows R = S, y;
    for (int64_t i = 0; i < tile.n; ++i) {
      const auto t = static_cast<size_t>(tile.first + i);
      const bool early = changed && change_.read_before_decay;
      const Rows before = early ? R : Rows{};
      decay(R, s_.e[t]);
      tile.entered.push_back(R);
      const std::vector<double> sum = read(s_.k[t], early ? before : R);
      const double written = changed && change_.written ? change_.written(s_.beta[t]) : s_.beta[t];
      std::vector<double>& row = y.emplace_back();
      for (size_t j = 0; j < sum.size(); ++j)
        row.push_back(written * s_.v[t][j] - rate(tile.first + i, changed) * sum[j]);
    }
    tile.u = zeros(tile.n, s_.V);
    for (int64_t i = 0; i < tile.n; ++i)
      for (int64_t m = 0; m < tile.n; ++m)
        for (size_t j = 0; j < y[0].size(); ++j)
          tile.u[static_cast<size_t>(i)][j] += tile.X(i, m) * y[static_cast<size_t>(m)][j];
  }
  /// G: behind the tile on entry, before it on exit.
  void take(const Tile& tile, const RuleSquare& X, bool changed, Rows& G) {
    std::vector<Rows> passing(static_cast<size_t>(tile.n));  // of readouts alone
    Rows R = G, y = zeros(tile.n, s_.V);
    for (int64_t i = tile.n; i-- > 0;) {
      const auto t = static_cast<size_t>(tile.first + i), n = static_cast<size_t>(i);
      add(R, s_.q[t], s_.d_o[t], s_.scale);
      passing[n] = R, y[n] = read(s_.k[t], R);
      decay(R, s_.e[t]);
    }
    for (int64_t i = tile.n; i-- > 0;) {
      const auto t = static_cast<size_t>(tile.first + i), n = static_cast<size_t>(i);
      std::vector<double> du(static_cast<size_t>(s_.V), 0), r = s_.v[t];
      for (int64_t m = 0; m < tile.n; ++m)
        for (size_t j = 0; j < du.size(); ++j) du[j] += X(m, i) * y[static_cast<size_t>(m)][j];
      add(G, s_.q[t], s_.d_o[t], s_.scale);
      Rows after = tile.found[n];
      add(after, s_.k[t], tile.u[n], 1);
      dq[t] = times(after, s_.d_o[t]);
      for (double& x : dq[t]) x *= s_.scale;
      for (size_t j = 0; j < du.size(); ++j) dv[t][j] = s_.beta[t] * du[j];
      const bool whole = !changed || change_.gradient_of_solve;
      const Rows &S = whole ? tile.found[n] : tile.entered[n], &of_G = whole ? G : passing[n];
      const std::vector<double> kw = times(of_G, tile.u[n]), kr = times(S, dv[t]), sum = read(s_.k[t], S);
      for (size_t c = 0; c < kw.size(); ++c) dk[t][c] = kw[c] - kr[c];
      for (size_t j = 0; j < r.size(); ++j) dbeta[t][0] += du[j] * (r[j] - sum[j]);
      add(G, s_.k[t], dv[t], -1);
      for (size_t c = 0; c < G.size(); ++c) dg[t][c] = dot(tile.found[n][c], G[c]);
      decay(G, s_.e[t]);
    }
  }

  const RuleSlice& s_;
  const RuleChange& change_;
  std::vector<Tile> tiles_;
};

}  // namespace

bool is_delta_rule(const FailingRun& run) {
  const ArgumentSpec *rates = run.argument("beta"), *keys = run.argument("k");
  const bool one_write = keys != nullptr && keys->axes.size() == 4;  // per token
  return rates != nullptr && one_write && is_small_rule(run) && run.inputs().count("beta_v") == 0;
}

std::optional<Prediction> evaluate_rule(const FailingRun& run, const RuleChange& change) {
  if (is_general_rule(run)) return evaluate_general(run, change);
  Results results(run);
  int64_t sequence = 0;
  for (const auto& [first, length] : run.spans()) {
    for (int64_t head = 0; head < run.problem.sizes.HV; ++head) {
      const RuleSlice s = slice_of(run, first, length, sequence, head);
      if (run.forward) {
        RuleRun of(s, change);
        of.forward(true, false);
        results.add_tokens("o", of.o, first, head),
            results.add_state("final_state", of.final_state, sequence, head);
      }
      if (!run.backward) continue;
      RuleRun of(s, change);
      of.forward(change.in_states, true), of.backward(change.in_adjoints);
      results.add_tokens("dq", of.dq, first, head), results.add_tokens("dk", of.dk, first, head);
      results.add_tokens("dv", of.dv, first, head), results.add_tokens("dg", of.dg, first, head);
      results.add_tokens("dbeta", of.dbeta, first, head);
      results.add_state("dinitial_state", of.dS0, sequence, head);
    }
    ++sequence;
  }
  return results.prediction();
}

}  // namespace assay
