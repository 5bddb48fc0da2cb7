#include "src/verification/diagnosis/meanings/general_run.h"

#include <algorithm>
#include <cmath>

#include "src/verification/diagnosis/meanings/rule_slices.h"

namespace assay {
namespace {

using namespace rule_slices;

/// One sequence and head; rows are tokens.
struct GeneralSlice {
  Rows r, k, v, a, b, e, d_o, S0, dS;
  double scale;
  int64_t T, K, V;
};

GeneralSlice general_slice(const FailingRun& run, int64_t first, int64_t length, int64_t sequence,
                           int64_t head) {
  const Reader in(run, first, length, sequence, head);
  GeneralSlice s;
  s.scale = run.problem.scale, s.T = length, s.K = run.problem.sizes.K, s.V = run.problem.sizes.V;
  s.r = in.tokens("r"), s.k = in.tokens("k"), s.v = in.tokens("v"), s.a = in.tokens("a"),
  s.b = in.tokens("b");
  s.d_o = run.inputs().count("do") ? in.tokens("do") : zeros(length, s.V);
  s.S0 = in.state("initial_state"), s.dS = in.state("dfinal_state");
  for (std::vector<double>& w : s.e = in.tokens("w"))
    for (double& x : w) x = std::exp(x);
  return s;
}

/// A tile: its inverse, what its tokens read, and the states that they find, with what the tile's own reads
/// wrote and without.
struct GeneralTile {
  int64_t first, n;
  RuleSquare X;
  Rows u;
  std::vector<Rows> found, entered;
};

class GeneralRun {
 public:
  GeneralRun(const GeneralSlice& s, const RuleChange& change) : s_(s), change_(change) {}

  void forward(bool changed) {
    Rows S = s_.S0;
    for (int64_t first = 0; first < s_.T; first += change_.tile) {
      GeneralTile tile = tile_at(first, changed);
      solve(tile, S);
      for (int64_t i = 0; i < tile.n; ++i) {
        const auto t = static_cast<size_t>(first + i);
        const std::vector<double>& u = tile.u[static_cast<size_t>(i)];
        tile.found.push_back(S);
        decay(S, s_.e[t]), add(S, s_.b[t], u, 1), add(S, s_.k[t], s_.v[t], 1);
        o.push_back(read(s_.r[t], S));
        for (double& x : o.back()) x *= s_.scale;
        if (i + 1 == tile.n && changed && change_.last_update_lost) add(S, s_.b[t], u, -1);
      }
      tiles_.push_back(std::move(tile));
    }
    final_state = S;
  }
  void backward(bool changed) {
    dr = dw = dk = da = db = zeros(s_.T, s_.K), dv = zeros(s_.T, s_.V);
    Rows G = s_.dS;
    for (size_t n = tiles_.size(); n-- > 0;) take(tiles_[n], tile_at(tiles_[n].first, changed).X, changed, G);
    dS0 = G;
  }

  Rows o, final_state, dr, dw, dk, dv, da, db, dS0;

 private:
  GeneralTile tile_at(int64_t first, bool changed) const {
    GeneralTile tile{first, std::min(change_.tile, s_.T - first), RuleSquare(0), {}, {}, {}};
    RuleSquare N(tile.n);
    std::vector<double> own;
    const PairDecay pairs = changed ? change_.pairs : PairDecay::right;
    for (int64_t j = 0; j < tile.n; ++j) {
      const auto from = static_cast<size_t>(first + j);
      own.push_back(-dot(s_.a[from], s_.b[from]));
      std::vector<double> x = s_.b[from];
      const auto pass = [&](size_t t) {
        for (size_t c = 0; c < x.size(); ++c) x[c] *= s_.e[t][c];
      };
      if (pairs == PairDecay::with_earlier) pass(from);
      for (int64_t i = j + 1; i < tile.n; ++i) {
        const auto t = static_cast<size_t>(first + i);
        if (pairs == PairDecay::with_later) pass(t);
        N(i, j) = -dot(s_.a[t], x);
        if (pairs != PairDecay::with_later) pass(t);
      }
    }
    tile.X = changed && change_.inverse ? change_.inverse(N, own) : inverse_of_one_plus(N);
    return tile;
  }
  void solve(GeneralTile& tile, const Rows& S) const {
    Rows R = S, y;
    for (int64_t i = 0; i < tile.n; ++i) {
      const auto t = static_cast<size_t>(tile.first + i);
      tile.entered.push_back(R), y.push_back(read(s_.a[t], R));
      decay(R, s_.e[t]), add(R, s_.k[t], s_.v[t], 1);
    }
    tile.u = zeros(tile.n, s_.V);
    for (int64_t i = 0; i < tile.n; ++i)
      for (int64_t m = 0; m < tile.n; ++m)
        for (size_t j = 0; j < y[0].size(); ++j)
          tile.u[static_cast<size_t>(i)][j] += tile.X(i, m) * y[static_cast<size_t>(m)][j];
  }
  /// G: behind the tile on entry, before it on exit.
  void take(const GeneralTile& tile, const RuleSquare& X, bool changed, Rows& G) {
    std::vector<Rows> passing(static_cast<size_t>(tile.n));  // without what the tile's own tokens pull
    Rows R = G, y = zeros(tile.n, s_.V);
    for (int64_t i = tile.n; i-- > 0;) {
      const auto t = static_cast<size_t>(tile.first + i), n = static_cast<size_t>(i);
      add(R, s_.r[t], s_.d_o[t], s_.scale);
      passing[n] = R, y[n] = read(s_.b[t], R);
      decay(R, s_.e[t]);
    }
    const bool whole = !changed || change_.gradient_of_solve;
    for (int64_t i = tile.n; i-- > 0;) {
      const auto t = static_cast<size_t>(tile.first + i), n = static_cast<size_t>(i);
      std::vector<double> z(static_cast<size_t>(s_.V), 0);
      for (int64_t m = 0; m < tile.n; ++m)
        for (size_t j = 0; j < z.size(); ++j) z[j] += X(m, i) * y[static_cast<size_t>(m)][j];
      add(G, s_.r[t], s_.d_o[t], s_.scale);
      gradients(tile, n, t, z, G, whole ? G : passing[n], whole);
      decay(G, s_.e[t]), add(G, s_.a[t], z, 1);
    }
  }
  /// `of_writers`: G, or without what the tile's tokens pull.
  void gradients(const GeneralTile& tile, size_t n, size_t t, const std::vector<double>& z, const Rows& G,
                 const Rows& of_writers, bool whole) {
    const Rows &S = tile.found[n], &of_readers = whole ? S : tile.entered[n];
    Rows after = S;
    decay(after, s_.e[t]), add(after, s_.b[t], tile.u[n], 1), add(after, s_.k[t], s_.v[t], 1);
    dr[t] = times(after, s_.d_o[t]);
    for (double& x : dr[t]) x *= s_.scale;
    dk[t] = times(G, s_.v[t]), dv[t] = read(s_.k[t], G);
    da[t] = times(of_readers, z), db[t] = times(of_writers, tile.u[n]);
    for (size_t c = 0; c < G.size(); ++c) {
      double sum = dot(S[c], G[c]);
      if (!whole)  // what the tile's reads wrote and its pulls take meets only through its matrix
        for (size_t j = 0; j < z.size(); ++j)
          sum -= (S[c][j] - of_readers[c][j]) * (G[c][j] - of_writers[c][j]);
      dw[t][c] = s_.e[t][c] * sum;
    }
  }

  const GeneralSlice& s_;
  const RuleChange& change_;
  std::vector<GeneralTile> tiles_;
};

}  // namespace

bool is_general_rule(const FailingRun& run) {
  const bool reads_and_writes = run.argument("a") != nullptr && run.argument("b") != nullptr;
  return reads_and_writes && run.argument("w") != nullptr && is_small_rule(run);
}

std::optional<Prediction> evaluate_general(const FailingRun& run, const RuleChange& change) {
  Results results(run);
  int64_t sequence = 0;
  for (const auto& [first, length] : run.spans()) {
    for (int64_t head = 0; head < run.problem.sizes.HV; ++head) {
      const GeneralSlice s = general_slice(run, first, length, sequence, head);
      if (run.forward) {
        GeneralRun of(s, change);
        of.forward(true);
        results.add_tokens("o", of.o, first, head);
        results.add_state("final_state", of.final_state, sequence, head);
      }
      if (!run.backward) continue;
      GeneralRun of(s, change);
      of.forward(change.in_states), of.backward(change.in_adjoints);
      for (const auto& [name, rows] :
           {std::pair("dr", &of.dr), std::pair("dw", &of.dw), std::pair("dk", &of.dk),
            std::pair("dv", &of.dv), std::pair("da", &of.da), std::pair("db", &of.db)})
        results.add_tokens(name, *rows, first, head);
      results.add_state("dinitial_state", of.dS0, sequence, head);
    }
    ++sequence;
  }
  return results.prediction();
}

}  // namespace assay
