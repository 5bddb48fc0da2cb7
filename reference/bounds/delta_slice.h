// One slice of a delta rule that reads after its decay, and one token's factors as steps of
// norm_recurrence.h.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/bounds/norm_recurrence.h"
#include "reference/slice_problem.h"

namespace assay {

/// Places of what these operators have in common, and of the gate where there is one.
struct DeltaPlaces {
  size_t q, k, v, beta, beta_v, initial_state, inputs;
  size_t g;
  bool gated;
};
template <typename Op>
DeltaPlaces delta_places() {
  using In = typename Op::In;
  DeltaPlaces y{In::q, In::k, In::v, In::beta, In::beta_v, In::initial_state, In::count, 0, false};
  if constexpr (requires { In::g; }) y.g = In::g, y.gated = true;
  return y;
}
struct DeltaSlice {
  const SliceProblem& p;
  const DeltaPlaces at;
  const SliceMatrix &q, &k, &v, &S0;
  int64_t T, K, V;
  bool decaying;
  std::vector<double> zeros;

  DeltaSlice(const SliceProblem& p, const DeltaPlaces& at)
      : p(p),
        at(at),
        q(p.inputs[at.q]),
        k(p.inputs[at.k]),
        v(p.inputs[at.v]),
        S0(p.inputs[at.initial_state]),
        T(p.slice.tokens),
        K(q.columns),
        V(v.columns),
        decaying(at.gated && decays(p, "g")),
        zeros(static_cast<size_t>(std::max(K, V)), 0) {}

  /// Has each value channel a rate of its own?
  bool rates_by_channel() const { return p.inputs[at.beta_v].present; }
  /// Several value heads to one of queries and keys.
  bool grouped() const { return p.heads != p.problem->sizes.H; }
};

/// One token's factors: log decays of all key channels, their decays, decayed keys, minus keys, beta of all
/// value channels.
struct DeltaFactors {
  std::vector<double> g, weight, decayed, minus_decayed, minus, rates, rho;
  double reach;  ///< at least the product of 1 + its magnitudes
  Contraction contraction;

  DeltaFactors(const DeltaSlice& f, int64_t t) {
    const double beta = f.p.inputs[f.at.beta].present ? at(f.p.inputs[f.at.beta], t, 0) : 1;
    double square = 0, widest = 0;
    for (int64_t c = 0; c < f.K; ++c) {
      double log_decay = 0;
      if (f.at.gated) {
        const SliceMatrix& gates = f.p.inputs[f.at.g];
        log_decay = at(gates, t, gates.columns == f.K ? c : 0);
      }
      const double key = at(f.k, t, c), e = exponential(log_decay);
      g.push_back(log_decay), weight.push_back(e);
      decayed.push_back(e * key), minus_decayed.push_back(-e * key);
      minus.push_back(-key), square += key * key, widest = std::fmax(widest, e);
    }
    for (int64_t j = 0; j < f.V; ++j) {
      const SliceMatrix& channels = f.p.inputs[f.at.beta_v];
      const double rate = channels.present ? beta * at(channels, t, j) : beta;
      const double along = std::fabs(1 - rate * square) + 0x1p-40 * std::fabs(rate) * square;
      rates.push_back(rate);
      // Without decay and within the sphere the norm is one, to the last bit.
      rho.push_back(std::fmax(1, along) * widest * (widest == 1 ? 1 : 1 + 0x1p-50));
    }
    contraction = Contraction(rates.empty() ? 0 : rates[0], square, widest);
    reach = (1 + std::fabs(beta)) * ones_plus_sum(f.k, t) * ones_plus_sum(f.v, t);
    if (f.p.inputs[f.at.beta_v].present) reach *= ones_plus_sum(f.p.inputs[f.at.beta_v], t);
  }
  NormStep forward(const DeltaSlice& f, int64_t t) const {
    return {g.data(), minus.data(), decayed.data(),     row(f.k, t), row(f.v, t),
            1,        rates.data(), Removal::of_decayed};
  }
  NormStep backward(const DeltaSlice& f, int64_t t) const {
    return {g.data(), minus_decayed.data(), row(f.k, t),          f.zeros.data(), f.zeros.data(),
            0,        rates.data(),         Removal::then_decayed};
  }
};

}  // namespace assay
