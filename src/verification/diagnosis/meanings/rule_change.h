// What may be otherwise in a delta rule that is evaluated tile by tile, and the matrices of its solve.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "src/verification/diagnosis/prediction.h"

namespace assay {

/// Rows first, n x n.
struct RuleSquare {
  int64_t n = 0;
  std::vector<double> values;

  explicit RuleSquare(int64_t n) : n(n), values(static_cast<size_t>(n * n), 0) {}
  double& operator()(int64_t i, int64_t j) { return values[static_cast<size_t>(i * n + j)]; }
  double operator()(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * n + j)]; }
};

/// Which tokens' decays lie between a key and a later one of its tile: without the later token's, with the
/// earlier one's too; of a rule that reads before it decays with the later one's.
enum class PairDecay { right, without_own, with_earlier, with_later };

/// What is otherwise than the operator says.
struct RuleChange {
  int64_t tile = 64;  ///< tokens whose updates are solved for together
  /// In place of (1 + N)^-1; `own`: beta |k|^2 of each token.
  std::function<RuleSquare(const RuleSquare& N, const std::vector<double>& own)> inverse = {};
  std::function<double(double beta)> taken = {}, written = {};  ///< what stands for beta in one of its places
  bool read_before_decay = false;
  PairDecay pairs = PairDecay::right;
  bool last_update_lost = false;  ///< of each tile, from the state that goes on
  bool gradient_of_solve = true;  ///< in the gradients of keys and rates
  bool in_states = true;          ///< changed where gradients are asked for: states, and
  bool in_adjoints = true;        ///< what goes backwards
};

/// (1 + L)^-1, L with its diagonal, lower triangular.
RuleSquare inverse_of_one_plus(const RuleSquare& L);

/// Few enough tokens to be evaluated so.
bool is_small_rule(const FailingRun&);

}  // namespace assay
