// The recurrences of rwkv7's bounds, token by token as the declared arithmetic makes them: each state from
// the one before, or in chunks of tiles. In chunks a tile's updates are what its tokens read, u_i = a_i^T
// S_{i-1}, and with N_ij = -a_i^T e^{G_{i-1} - G_j} b_j below the diagonal (1 + N) u = y, y what is read of
// the state that passes the tile with what its tokens write beside, k v, but without their updates: as in
// delta_tile.h. Backward they are b_i^T G_i, and what is written beside is scale r do.
#pragma once
#include <algorithm>
#include <vector>

#include "reference/bounds/chunk_reads.h"
#include "reference/bounds/norm_wise.h"
#include "reference/operators/rwkv7.h"
#include "reference/slice_problem.h"

namespace assay {

struct Rwkv7Slice {
  const SliceProblem& p;
  const SliceMatrix &r, &w, &k, &v, &a, &b, &S0;
  int64_t T, K, V;

  std::vector<double> zeros, rho;  ///< rho: norms of the tokens' transitions

  explicit Rwkv7Slice(const SliceProblem& p)
      : p(p),
        r(p.inputs[Rwkv7::In::r]),
        w(p.inputs[Rwkv7::In::w]),
        k(p.inputs[Rwkv7::In::k]),
        v(p.inputs[Rwkv7::In::v]),
        a(p.inputs[Rwkv7::In::a]),
        b(p.inputs[Rwkv7::In::b]),
        S0(p.inputs[Rwkv7::In::initial_state]),
        T(p.slice.tokens),
        K(r.columns),
        V(v.columns),
        zeros(static_cast<size_t>(std::max(K, V)), 0) {
    std::vector<double> weights(static_cast<size_t>(K));
    for (int64_t t = 0; t < T; ++t) {
      for (int64_t c = 0; c < K; ++c) weights[static_cast<size_t>(c)] = exponential(at(w, t, c));
      rho.push_back(diagonal_plus_rank_one_norm(weights, row(a, t), row(b, t)));
    }
  }
};

/// S_t, first token first.
class Rwkv7States {
 public:
  Rwkv7States(const Rwkv7Slice&, const Arithmetic&, double underflow);

  NormState start() const { return recurrence_.start(slice_.S0.values); }
  /// From the state after token t - 1 to that after token t; for the first time in the tokens' order, when
  /// tiles get what they are off by.
  void advance(int64_t t, NormState&);
  /// The state after token t - 1 as token t finds it.
  NormState found_by(int64_t t, const NormState&) const;
  /// The final state, from that after the last token.
  void finish(NormState&) const;
  /// At least |u^_t - a_t^T S_{t-1}| of a value channel, S of the states that stand for the kernel's; 0 where
  /// it goes token by token.
  double residual(int64_t t, int64_t j) const;

 private:
  void take_tile(int64_t first, const NormState&);

  const Rwkv7Slice& slice_;
  const Arithmetic arithmetic_;
  const NormRecurrence recurrence_;
  std::vector<double> wholes_;      ///< norms of the chunks' transitions
  int64_t taken_ = 0;               ///< tokens whose tiles are known
  TileMatrix updates_, residuals_;  ///< T x V, in chunks
};

/// G_t = dL/dS_t, last token first.
class Rwkv7Adjoints {
 public:
  Rwkv7Adjoints(const Rwkv7Slice&, const SliceMatrix& d_o, const Arithmetic&, double underflow);

  NormState start(const std::vector<double>& dS) const { return recurrence_.start(dS); }
  /// From what token t + 1 left to G_t: the write of scale r_t do_t.
  void read_out(int64_t t, NormState&);
  /// From G_t to what token t leaves.
  void advance(int64_t t, NormState&);
  /// At least |u^_t - b_t^T G_t| likewise, of the tile at hand.
  double residual(int64_t t, int64_t j) const;
  void finish(NormState&) const;

 private:
  void take_tile(int64_t last, const NormState&);

  const Rwkv7Slice& slice_;
  const SliceMatrix& d_o_;
  const Arithmetic arithmetic_;
  const NormRecurrence recurrence_;
  int64_t first_ = 0;               ///< of the tile at hand
  TileMatrix updates_, residuals_;  ///< of its rows, last first
};

}  // namespace assay
