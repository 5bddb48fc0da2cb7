// The recurrences of rwkv7's bounds as chunk_walk.h walks them. In chunks a tile's updates are what its
// tokens read, u_i = a_i^T S_{i-1}, and with N_ij = -a_i^T e^{G_{i-1} - G_j} b_j below the diagonal
// (1 + N) u = y, y what is read of the state that passes the tile with what its tokens write beside, k v, but
// without their updates: as in delta_tile.h. Backward they are b_i^T G_i, and what is written beside is
// scale r do.
#pragma once
#include <algorithm>
#include <vector>

#include "reference/bounds/chunk_walk.h"
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
  std::vector<double> rho_at(int64_t t) const { return {rho[static_cast<size_t>(t)]}; }
};

class Rwkv7States final : public ChunkStates {
 public:
  Rwkv7States(const Rwkv7Slice&, const Arithmetic&, double underflow);

 private:
  void pass(int64_t t, ChunkPassages&) const override;
  void step(int64_t t, NormState&) const override;
  void step_in_chunk(int64_t t, const double* update, const double* residual, const double* rest,
                     NormState&) const override;
  NormStep removal(int64_t t) const;
  TileUpdates tile(int64_t first, int64_t tokens, const NormState&) override;

  const Rwkv7Slice& slice_;
};

class Rwkv7Adjoints final : public ChunkAdjoints {
 public:
  Rwkv7Adjoints(const Rwkv7Slice&, const SliceMatrix& d_o, const Arithmetic&, double underflow);

 private:
  void pass(int64_t t, ChunkPassages&) const override;
  void step(int64_t t, NormState&) const override;
  void step_in_chunk(int64_t t, const double* update, const double* residual, const double* rest,
                     NormState&) const override;
  NormStep removal(int64_t t) const;
  TileUpdates tile(int64_t first, int64_t tokens, const NormState&) override;

  const Rwkv7Slice& slice_;
};

}  // namespace assay
