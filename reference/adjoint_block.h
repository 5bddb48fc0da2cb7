// Rung 0 of the adjoint evaluation: plain double, with companions and excesses.
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "reference/adjoint_problem.h"
#include "reference/gated_kernels.h"

namespace assay {

/// The value columns v0 .. v0 + kAdjointColumns of one slice, all its tokens. Memory: about 2 sqrt(T) states.
class AdjointBlock {
 public:
  AdjointBlock(const AdjointProblem&, const Slice&, int64_t v0);

  /// Adds this block's share to sums (tokens x K); writes its columns of dv, dS0 (mid), their companions and,
  /// where the bound goes in the end, their excesses.
  void run(std::vector<AdjointSums>& sums);

 private:
  void load(const Tensor&, std::vector<double>& state) const;
  void read(int64_t first, int64_t tokens);
  /// A state that is stored: as it was before, in the next place as what follows is made of.
  struct Kept {
    std::vector<double> states;
    std::vector<int64_t> place;  ///< of the state before each token of the segment, and after the last
  };
  void run_states(int64_t first, int64_t tokens, double* state, std::vector<double>& own, Kept*);
  void run_reverse(int64_t first, int64_t tokens, const Kept&, std::vector<AdjointSums>& sums);
  const std::vector<double>& decayed(int64_t first, int64_t tokens);
  double written(const BoundModel&, int64_t t);
  void end_chunk(const BoundModel&, int64_t chunk, int64_t first, double* state);
  void store_state(int64_t stored, int64_t first, int64_t n, double* state, std::vector<double>& own);
  void store_dv(int64_t first, int64_t tokens);
  void store_dS0();

  const AdjointProblem& f_;
  const Slice slice_;
  const int64_t v0_, width_, size_;
  const int64_t state_chunk_, adjoint_chunk_;  ///< tokens per chunk; 0: no chunk costs anything
  int64_t segment_;
  std::vector<double> q_, k_, g_, a_, v_, d_o_, dv_, dv_abs_, dv_excess_, G_, own_of_G_;
  std::vector<AdjointCoefficient> coefficients_;
  std::map<std::pair<int64_t, int64_t>, std::vector<double>> decayed_;  ///< by first token and their number
};

}  // namespace assay
